// SPDX-License-Identifier: GPL-2.0
/*
 * Free probed text while an async function runs a copied instruction
 *
 *	insmod kprobe_async.ko
 *	offset=$(cat /sys/module/kprobe_async/parameters/offset)
 *	echo "p:read kprobe_async:kprobe_async_read+$offset" >/sys/kernel/tracing/kprobe_events
 *	echo 1 >/sys/kernel/tracing/events/kprobes/read/enable
 *	rmmod kprobe_async
 *
 * The init text of a module is freed after its init function, and the rest when the module
 * is unloaded. Both times the kernel calls the module notifiers before it waits for the
 * module's async functions. At that moment, an async function of this module executes a
 * string instruction that takes most of a second. If the instruction is probed, the
 * function executes a copy of it, which must stay until the function has left it.
 *
 * The module itself probes the instruction in its init text. The one in the other text
 * must be probed by another user, since a module unregisters its own probes in its exit
 * function.
 *
 * The kernel log says whether each string instruction has read all bytes.
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
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/objtool.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include <asm/asm.h>

/* Duration of the string instruction, and limits of the size that it reads. */
#define READING_NS	(700 * NSEC_PER_MSEC)
#define FEW_PAGES	(SZ_1M / PAGE_SIZE)
#define MANY_PAGES	((IS_ENABLED(CONFIG_64BIT) ? SZ_256M : SZ_64M) / PAGE_SIZE)

static const char *zeros;
static size_t size;
static bool entered;

#define READ_AT(name, from, count) ({					\
	asm volatile("1:\n" ANNOTATE_NOENDBR "\nrep lodsb\n"		\
		     ".pushsection .rodata, \"a\"\n"			\
		     _ASM_ALIGN "\n"					\
		     #name ":" _ASM_PTR "1b\n"				\
		     ".popsection\n"					\
		     : "+S" (from), "+c" (count) : : _ASM_AX, "memory");	\
})

/* The address of the instruction of READ_AT(@name). */
#define ADDRESS_OF(name) ({						\
	unsigned long __address;					\
									\
	asm("mov " _ASM_RIP(name) ", %0" : "=r" (__address));		\
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
MODULE_PARM_DESC(offset, "Offset of the string instruction in kprobe_async_read(), in bytes");

static atomic_t hits;

static int kprobe_async_pre_handler(struct kprobe *kp, struct pt_regs *regs)
{
	atomic_inc(&hits);
	return 0;
}

static struct kprobe init_probe = { .pre_handler = kprobe_async_pre_handler };

static void kprobe_async_log_read(const char *where, const char *end)
{
	pr_info("read in %s: %s\n", where, end == zeros + size ? "complete" : "incomplete");
}

static void kprobe_async_read_in_text(void *unused, async_cookie_t cookie)
{
	WRITE_ONCE(entered, true);
	kprobe_async_log_read("text", kprobe_async_read(zeros, size));
	vunmap(zeros);
}

static void __init kprobe_async_read_in_init_text(void *unused, async_cookie_t cookie)
{
	WRITE_ONCE(entered, true);
	kprobe_async_log_read("init text", kprobe_async_init_read(zeros, size));
	pr_info("%d hits in init text\n", atomic_read(&hits));
}

/*
 * Start an async function and give it the time to reach the string instruction. The
 * caller tests less if the function is late, but does not fail.
 */
static void kprobe_async_start(async_func_t function)
{
	WRITE_ONCE(entered, false);
	async_schedule(function, NULL);
	while (!READ_ONCE(entered))
		usleep_range(1000, 2000);
	msleep(20);
}

/* Map the zero page @pages times. */
static int __init kprobe_async_map_zeros(unsigned long pages)
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

/* Read with another instruction, which is never probed. */
static u64 __init kprobe_async_measure_read(void)
{
	const char *from = zeros;
	size_t count = size;
	u64 start = ktime_get_ns();

	asm volatile("rep lodsb" : "+S" (from), "+c" (count) : : _ASM_AX, "memory");
	return max(ktime_get_ns() - start, 1);
}

static int __init kprobe_async_init(void)
{
	unsigned long pages;
	int err;

	err = kprobe_async_map_zeros(FEW_PAGES);
	if (err)
		return err;
	pages = clamp(div64_u64((u64)FEW_PAGES * READING_NS, kprobe_async_measure_read()),
		      FEW_PAGES, MANY_PAGES);
	err = kprobe_async_map_zeros(pages);
	if (err) {
		vunmap(zeros);
		return err;
	}
	offset = ADDRESS_OF(kprobe_async_insn) - (unsigned long)kprobe_async_read;
	init_probe.addr = (kprobe_opcode_t *)ADDRESS_OF(kprobe_async_init_insn);
	err = register_kprobe(&init_probe);
	if (err) {
		vunmap(zeros);
		return err;
	}
	kprobe_async_start(kprobe_async_read_in_init_text);
	return 0;
}

static void __exit kprobe_async_exit(void)
{
	unregister_kprobe(&init_probe);
	kprobe_async_start(kprobe_async_read_in_text);
}

module_init(kprobe_async_init)
module_exit(kprobe_async_exit)
MODULE_DESCRIPTION("Free probed text while an async function runs in it");
MODULE_LICENSE("GPL");
