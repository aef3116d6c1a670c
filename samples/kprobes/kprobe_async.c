// SPDX-License-Identifier: GPL-2.0
/*
 * What becomes of a task in probed text when the text goes?
 *
 *	insmod kprobe_async.ko
 *	offset=$(cat /sys/module/kprobe_async/parameters/offset)
 *	echo "p:read kprobe_async:kprobe_async_read+$offset" >/sys/kernel/tracing/kprobe_events
 *	echo 1 >/sys/kernel/tracing/events/kprobes/read/enable
 *	rmmod kprobe_async
 *
 * When the module has been loaded, its init text goes, and when it is unloaded, the rest.
 * Each time the kernel tells so before it waits for the module's asynchronous functions.
 * One of those is in the middle of an instruction then, which takes nearly a second: a
 * copy of it, if it is probed. It must be able to go on there. In the init text the module
 * probes it, in the other one somebody else has to: the module's own probes go with it.
 *
 * The kernel log tells whether it has read all that it was to read.
 *
 * See Documentation/trace/kprobes.rst.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/async.h>
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/objtool.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

/* How long to read, and the least and most that is read for that. */
#define READING_NS	(700 * NSEC_PER_MSEC)
#define FEW_PAGES	(SZ_1M / PAGE_SIZE)
#define MANY_PAGES	(SZ_256M / PAGE_SIZE)

static const char *zeros;
static size_t size;
static bool entered;

#define READ_AT(name, from, count) ({					\
	asm volatile("1:\n" ANNOTATE_NOENDBR "rep lodsb\n"		\
		     ".pushsection .rodata, \"a\"\n"			\
		     ".balign 8\n"					\
		     #name ": .quad 1b\n"				\
		     ".popsection\n"					\
		     : "+S" (from), "+c" (count) : : "rax", "memory");	\
})

/* Where that instruction is. */
#define ADDRESS_OF(name) ({						\
	unsigned long __address;					\
									\
	asm("movq " #name "(%%rip), %0" : "=r" (__address));		\
	__address;							\
})

static noinline __noclone const char *kprobe_async_read(const char *from, size_t count)
{
	READ_AT(kprobe_async_insn, from, count);
	return from;
}

static noinline __noclone
const char * __init kprobe_async_init_read(const char *from, size_t count)
{
	READ_AT(kprobe_async_init_insn, from, count);
	return from;
}

static unsigned int offset;
module_param(offset, uint, 0444);
MODULE_PARM_DESC(offset, "Of the instruction in kprobe_async_read()");

static atomic_t hits;

static int count_hit(struct kprobe *kp, struct pt_regs *regs)
{
	atomic_inc(&hits);
	return 0;
}

static struct kprobe init_probe = { .pre_handler = count_hit };

static void tell(const char *where, const char *end)
{
	pr_info("read in %s: %s\n", where, end == zeros + size ? "all" : "something else");
}

static void read_in_text(void *unused, async_cookie_t cookie)
{
	WRITE_ONCE(entered, true);
	tell("text", kprobe_async_read(zeros, size));
	vunmap(zeros);
}

static void __init read_in_init_text(void *unused, async_cookie_t cookie)
{
	WRITE_ONCE(entered, true);
	tell("init text", kprobe_async_init_read(zeros, size));
	pr_info("%d hits in init text\n", atomic_read(&hits));
}

/* Until the function is in that instruction. It does not matter if it is not, yet. */
static void begin(async_func_t function)
{
	WRITE_ONCE(entered, false);
	async_schedule(function, NULL);
	while (!READ_ONCE(entered))
		usleep_range(1000, 2000);
	msleep(20);
}

/* The same page again and again. */
static int __init map_zeros(unsigned long pages)
{
	struct page **all = kmalloc_array(pages, sizeof(*all), GFP_KERNEL);

	if (!all)
		return -ENOMEM;
	for (unsigned long i = 0; i < pages; i++)
		all[i] = ZERO_PAGE(0);
	vunmap(zeros);
	zeros = vmap(all, pages, VM_MAP, PAGE_KERNEL_RO);
	size = pages * PAGE_SIZE;
	kfree(all);
	return zeros ? 0 : -ENOMEM;
}

/* Not by the functions that may be probed. */
static u64 __init measure_reading(void)
{
	const char *from = zeros;
	size_t count = size;
	u64 start = ktime_get_ns();

	asm volatile("rep lodsb" : "+S" (from), "+c" (count) : : "rax", "memory");
	return max(ktime_get_ns() - start, 1);
}

static int __init kprobe_async_init(void)
{
	int err = map_zeros(FEW_PAGES);

	if (!err)
		err = map_zeros(clamp(FEW_PAGES * READING_NS / measure_reading(), FEW_PAGES,
				      MANY_PAGES));
	if (err)
		return err;
	offset = ADDRESS_OF(kprobe_async_insn) - (unsigned long)kprobe_async_read;
	init_probe.addr = (kprobe_opcode_t *)ADDRESS_OF(kprobe_async_init_insn);
	err = register_kprobe(&init_probe);
	if (err) {
		vunmap(zeros);
		return err;
	}
	begin(read_in_init_text);
	return 0;
}

static void __exit kprobe_async_exit(void)
{
	unregister_kprobe(&init_probe);
	begin(read_in_text);
}

module_init(kprobe_async_init)
module_exit(kprobe_async_exit)
MODULE_DESCRIPTION("Tasks in probed text that goes");
MODULE_LICENSE("GPL");
