/* SPDX-License-Identifier: GPL-2.0 */
/* Files with addresses to probe. */
#ifndef _SAMPLES_KPROBES_READ_TEXT_H
#define _SAMPLES_KPROBES_READ_TEXT_H

#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/slab.h>

/*
 * Read a file that is not empty as a string, which the caller frees by kvfree(), or an
 * ERR_PTR(). IPE warns of kernel_read_file() for purposes that it does not know.
 */
static inline char *read_text(const char *name)
{
	struct file *file __free(fput) = filp_open(name, O_RDONLY, 0);
	char *text __free(kvfree) = NULL;
	ssize_t size;
	loff_t pos = 0;

	if (IS_ERR(file))
		return ERR_CAST(file);
	size = i_size_read(file_inode(file));
	text = kvzalloc(size + 1, GFP_KERNEL);
	if (!text)
		return ERR_PTR(-ENOMEM);
	size = kernel_read(file, text, size, &pos);
	return size > 0 ? no_free_ptr(text) : ERR_PTR(size ?: -EINVAL);
}

/* The number of lines, each of which ends with a newline. */
static inline unsigned int count_lines(const char *text)
{
	unsigned int count = 0;

	for (; *text; text++)
		count += *text == '\n';
	return count;
}

#endif /* _SAMPLES_KPROBES_READ_TEXT_H */
