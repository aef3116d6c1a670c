/* SPDX-License-Identifier: GPL-2.0 */
/* Files with addresses to probe. */
#ifndef _SAMPLES_KPROBES_READ_TEXT_H
#define _SAMPLES_KPROBES_READ_TEXT_H

#include <linux/err.h>
#include <linux/kernel_read_file.h>
#include <linux/limits.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

/* Read a file as a string, which the caller frees by kvfree(), or an ERR_PTR(). */
static inline char *read_text(const char *file)
{
	void *data = NULL;
	ssize_t size;
	char *text;

	size = kernel_read_file_from_path(file, 0, &data, INT_MAX, NULL, READING_UNKNOWN);
	if (size < 0)
		return ERR_PTR(size);
	text = kvzalloc(size + 1, GFP_KERNEL);
	if (text)
		memcpy(text, data, size);
	vfree(data);
	return text ?: ERR_PTR(-ENOMEM);
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
