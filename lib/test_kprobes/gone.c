// SPDX-License-Identifier: GPL-2.0
/*
 * Many sites at one address: a module has been unloaded and another one loaded there, again and
 * again, and a probe stayed each time. Their sites are gone. All that looks at sites gets past
 * them, also what does so in pieces and lets others change them meanwhile.
 */
#include "../../kernel/kprobes/internal.h"

#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/jiffies.h>
#include <linux/mman.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "optimize.h"
#include "probes.h"

/* More than background work looks at in one go. */
static struct kprobe crowd[2 * SITES_AT_A_TIME + 10];

/* As if the text were unloaded, but it stays, and can be probed again. */
static void lose_text_at(const kprobe_opcode_t *addr)
{
	guard(mutex)(&kprobe_mutex);
	kprobes_forget_text((unsigned long)addr, (unsigned long)(addr + 1));
}

static void unregister_crowd(void *unused)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(crowd); i++)
		unregister_kprobe(&crowd[i]);
}

/* Until the end of the test, there are many sites at TARGET that are gone. */
static void gather_crowd(struct kunit *test)
{
	memset(crowd, 0, sizeof(crowd));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, unregister_crowd, NULL), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(crowd); i++) {
		crowd[i].symbol_name = TARGET->symbol;
		ASSERT_REGISTERED(test, &crowd[i]);
		lose_text_at(crowd[i].addr);
		KUNIT_ASSERT_TRUE(test, kprobe_gone(&crowd[i]));
	}
}

static void close_file(void *file)
{
	fput(file);
}

static struct file *open_file(struct kunit *test, const char *name, int flags)
{
	struct file *file;

	scoped_with_init_fs()
		file = filp_open(name, flags, 0);
	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(file), "%s: %pe", name, file);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, close_file, file), 0);
	return file;
}

static char __user *user_buffer(struct kunit *test)
{
	unsigned long addr = kunit_vm_mmap(test, NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE,
					   MAP_ANONYMOUS | MAP_PRIVATE, 0);

	KUNIT_ASSERT_NE(test, addr, 0);
	return (char __user *)addr;
}

/* Read on, a few lines at a time. Returns their number. */
static unsigned int read_lines(struct kunit *test, struct file *file, unsigned int pieces)
{
	char __user *buffer = user_buffer(test);
	unsigned int lines = 0;
	char text[200];
	ssize_t len;

	while (pieces--) {
		len = file->f_op->read(file, buffer, sizeof(text), &file->f_pos);
		KUNIT_ASSERT_GE(test, len, 0);
		if (!len)
			break;
		KUNIT_ASSERT_EQ(test, copy_from_user(text, buffer, len), 0);
		for (ssize_t i = 0; i < len; i++)
			lines += text[i] == '\n';
	}
	return lines;
}

static unsigned int count_lines(struct kunit *test, const char *name)
{
	return read_lines(test, open_file(test, name, O_RDONLY), UINT_MAX);
}

static const char * const files[] = {
	"/sys/kernel/debug/kprobes/list",
	"/sys/kernel/debug/kprobes/sites",
};

static void name_file(const char * const *file, char *desc)
{
	strscpy(desc, kbasename(*file), KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(file, files, name_file);

/* The number of lines when all sites without a probe, which only one file shows, are freed. */
static unsigned int count_lines_at_rest(struct kunit *test)
{
	unsigned long end = jiffies + PATIENCE;
	unsigned int lines;

	do {
		KUNIT_ASSERT_TRUE(test, time_before(jiffies, end));
		msleep(100);
		lines = count_lines(test, files[0]);
	} while (count_lines(test, files[1]) != lines);
	return lines;
}

static void reader_gets_past_many_sites(struct kunit *test)
{
	const char *const *name = test->param_value;
	unsigned int others = count_lines_at_rest(test);

	gather_crowd(test);
	ASSERT_REGISTERED(test, kpt_probe('a', TARGET->symbol));
	KUNIT_EXPECT_EQ(test, count_lines(test, *name), others + ARRAY_SIZE(crowd) + 1);
}

/* Sites at the address that is being read are freed. The reader still meets all others. */
static void sites_are_freed_while_they_are_read(struct kunit *test)
{
	const char *const *name = test->param_value;
	unsigned int others = count_lines_at_rest(test), lines;
	struct file *file;

	gather_crowd(test);
	file = open_file(test, *name, O_RDONLY);
	lines = read_lines(test, file, 20);
	KUNIT_ASSERT_GT(test, lines, others);
	KUNIT_ASSERT_LT(test, lines, ARRAY_SIZE(crowd) * 3 / 4);
	kunit_release_action(test, unregister_crowd, NULL);
	synchronize_rcu_tasks();
	msleep(500);
	KUNIT_EXPECT_EQ(test, read_lines(test, file, UINT_MAX),
			others + ARRAY_SIZE(crowd) - lines);
}

#ifdef CONFIG_OPTPROBES
static void text_with_many_sites_is_lost(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_probe('b', OTHER_TARGET->symbol);

	gather_crowd(test);
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, a);
	lose_text_at(a->addr);
	KUNIT_EXPECT_TRUE(test, kprobe_gone(a));
	KUNIT_EXPECT_FALSE(test, kprobe_gone(b));
	EXPECT_CALL(test, TARGET, "");
	EXPECT_CALL(test, OTHER_TARGET, "b");
	unregister_kprobe(a);
	a->addr = NULL;
	a->flags = 0;
	ASSERT_REGISTERED(test, a);
	kunit_release_action(test, unregister_crowd, NULL);
	EXPECT_CALL(test, TARGET, "a");
}
#endif

static void set_enabled(struct kunit *test, char value)
{
	struct file *file = open_file(test, "/sys/kernel/debug/kprobes/enabled", O_WRONLY);
	char __user *buffer = user_buffer(test);
	loff_t pos = 0;

	KUNIT_ASSERT_EQ(test, copy_to_user(buffer, &value, 1), 0);
	KUNIT_EXPECT_EQ(test, file->f_op->write(file, buffer, 1, &pos), 1);
}

static void probe_among_many_is_switched_off_and_on(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	gather_crowd(test);
	ASSERT_REGISTERED(test, a);
	set_enabled(test, '0');
	EXPECT_CALL(test, TARGET, "");
	set_enabled(test, '1');
	EXPECT_CALL(test, TARGET, "a");
	KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
	EXPECT_CALL(test, TARGET, "");
	KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
	EXPECT_CALL(test, TARGET, "a");
}

static struct kunit_case kprobes_gone_cases[] = {
	KUNIT_CASE_PARAM(reader_gets_past_many_sites, file_gen_params),
	KUNIT_CASE_PARAM(sites_are_freed_while_they_are_read, file_gen_params),
#ifdef CONFIG_OPTPROBES
	KUNIT_CASE(text_with_many_sites_is_lost),
#endif
	KUNIT_CASE(probe_among_many_is_switched_off_and_on),
	{ }
};

static struct kunit_suite kprobes_gone_suite = {
	.name = "kprobes-gone",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_gone_cases,
};

kunit_test_suite(kprobes_gone_suite);
