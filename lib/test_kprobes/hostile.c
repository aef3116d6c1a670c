// SPDX-License-Identifier: GPL-2.0
/*
 * Hostile input: what no caller should pass, and much of it. Each call returns an error
 * that is documented for it, and changes nothing.
 */
#include <linux/cpumask.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/prandom.h>
#include <linux/sched/task_stack.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "probes.h"

/* Tries for each kind of address, and the shares of kinds that take longer. */
#define FEW		(IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN) ||	\
			 IS_BUILTIN(CONFIG_KPROBES_SANITY_TEST))
#define TRIES		(FEW ? 4000 : 100000)
#define TEXT_TRIES	(TRIES / 50)
#define ARRAY_TRIES	(TRIES / 50)

/* Flags that a registered probe may have. */
#define ALL_FLAGS	(KPROBE_FLAG_GONE | KPROBE_FLAG_DISABLED | KPROBE_FLAG_OPTIMIZED |	\
			 KPROBE_FLAG_FTRACE | KPROBE_FLAG_ON_FUNC_ENTRY | KPROBE_FLAG_REENTRANT)
#define CALLERS_FLAGS	(KPROBE_FLAG_DISABLED | KPROBE_FLAG_REENTRANT)

static unsigned int seed = 20261123;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "What the hostile input follows from");

static struct rnd_state rnd;
static struct kprobe hostile[16];

static u32 below(u32 limit)
{
	return prandom_u32_state(&rnd) % limit;
}

static unsigned long any_long(void)
{
	unsigned long value;

	prandom_bytes_state(&rnd, &value, sizeof(value));
	return value;
}

/*
 * All bytes of a probe are random, its links included, except for what names the place. A link is
 * followed: with 32 bits, one of so many leads to registers of a device. Right after high_memory
 * nothing is mapped, on x86 and arm.
 */
static void fill(struct kprobe *p)
{
	prandom_bytes_state(&rnd, p, sizeof(*p));
	p->symbol_name = NULL;
	p->addr = NULL;
	p->offset = 0;
	p->flags |= KPROBE_FLAG_DISABLED;	/* so random handlers are not called */
	if (!IS_ENABLED(CONFIG_64BIT) && (void *)p->list.next >= high_memory)
		p->list.next = high_memory + (unsigned long)p->list.next % PAGE_SIZE;
}

/*
 * The links may differ: they are what says that the probe is not registered. If its symbol was
 * found, @addr has the address of that.
 */
static bool is_untouched(const struct kprobe *p, struct kprobe *given)
{
	given->list = p->list;
	given->hlist = p->hlist;
	if (given->symbol_name && !given->addr)
		given->addr = p->addr;
	return !memcmp(p, given, sizeof(*p)) && !kpt_is_linked(p);
}

static bool is_registered_as(const struct kprobe *p, const struct kprobe *given)
{
	return kpt_is_linked(p) && p->addr && !p->nmissed && !(p->flags & ~ALL_FLAGS) &&
	       (p->flags & CALLERS_FLAGS) == (given->flags & CALLERS_FLAGS) &&
	       p->pre_handler == given->pre_handler && p->post_handler == given->post_handler;
}

/* Register @p and unregister it again. Returns the error; *@good is false after a fault. */
static int try_to_register(struct kprobe *p, bool *good)
{
	struct kprobe given;
	int err;

	memcpy(&given, p, sizeof(given));
	err = register_kprobe(p);
	if (err) {
		*good = is_untouched(p, &given);
		return err;
	}
	*good = is_registered_as(p, &given);
	unregister_kprobe(p);
	*good &= !kpt_is_linked(p);
	return 0;
}

/* ------------------------------------------------------------------ addresses */

/* What the memory is, and so which results are right. Symbols of modules take long. */
enum memory { NO_SYMBOL, NO_TEXT, TEXT };

static unsigned int tries_for(enum memory memory)
{
	return memory == NO_SYMBOL ? TRIES : TEXT_TRIES;
}

static unsigned long far_address(void)
{
	return any_long() | 1UL << (BITS_PER_LONG - 1);
}

static unsigned long near_null(void)
{
	return 1 + (any_long() & (PAGE_SIZE - 2));
}

static unsigned long user_address(void)
{
	return PAGE_SIZE + (any_long() >> (2 + below(BITS_PER_LONG - 16)));
}

static unsigned long error_pointer(void)
{
	return -1 - (unsigned long)below(MAX_ERRNO);
}

static unsigned long stack_address(void)
{
	return (unsigned long)task_stack_page(current) + below(THREAD_SIZE);
}

static void *slab_memory, *vmalloc_memory;

static unsigned long slab_address(void)
{
	return (unsigned long)slab_memory + below(PAGE_SIZE);
}

static unsigned long vmalloc_address(void)
{
	return (unsigned long)vmalloc_memory + below(2 * PAGE_SIZE);
}

static DEFINE_PER_CPU(long, hostile_counter);

static unsigned long per_cpu_address(void)
{
	return (unsigned long)per_cpu_ptr(&hostile_counter, 0) + below(sizeof(long));
}

static unsigned long data_address(void)
{
	return (unsigned long)&hostile + below(sizeof(hostile));
}

static unsigned long constant_address(void)
{
	return (unsigned long)&kpt_places + below(sizeof(kpt_places));
}

static unsigned long kernel_data_address(void)
{
	return (unsigned long)&jiffies + below(sizeof(jiffies));
}

static unsigned long blacklisted_address(void)
{
	return (unsigned long)kprobes_test_blacklisted + below(4);
}

static unsigned long target_address(void)
{
	return (unsigned long)kprobes_test_target + below(64);
}

static unsigned long kernel_text_address_near(void)
{
	unsigned long near = (unsigned long)register_kprobe;

	/* A relocation to the middle of another function would look like a call of it. */
	OPTIMIZER_HIDE_VAR(near);
	return near - SZ_1M + below(4 * SZ_1M);
}

/**
 * struct region - Where addresses are
 * @desc:	Its name.
 * @choose:	Returns an address there.
 * @memory:	What is there.
 */
struct region {
	const char *desc;
	unsigned long (*choose)(void);
	enum memory memory;
};

static const struct region regions[] = {
	{ "random", far_address, IS_ENABLED(CONFIG_64BIT) ? NO_SYMBOL : TEXT },
	{ "near NULL", near_null, NO_SYMBOL },
	{ "user", user_address, NO_SYMBOL },
	{ "error pointer", error_pointer, NO_SYMBOL },
	{ "stack", stack_address, NO_SYMBOL },
	{ "slab", slab_address, NO_SYMBOL },
	{ "vmalloc", vmalloc_address, NO_SYMBOL },
	{ "per-CPU", per_cpu_address, NO_TEXT },
	{ "data", data_address, NO_TEXT },
	{ "constant", constant_address, NO_TEXT },
	{ "kernel data", kernel_data_address, NO_TEXT },
	{ "blacklisted text", blacklisted_address, NO_TEXT },
	{ "target", target_address, TEXT },
	{ "kernel text", kernel_text_address_near, TEXT },
};

KUNIT_ARRAY_PARAM_DESC(region, regions, desc);

static bool is_right(int err, const struct kprobe *p, enum memory memory)
{
	switch (err) {
	case 0:
	case -EILSEQ:
	case -EOPNOTSUPP:
		return memory == TEXT;
	case -EINVAL:
		return memory != NO_SYMBOL || !p->addr;
	case -ENOENT:
		return p->addr;
	}
	return false;
}

/* A part of the address is in the offset, also a negative one. */
static void set_address(struct kprobe *p, unsigned long addr)
{
	if (below(2))
		p->offset = prandom_u32_state(&rnd);
	p->addr = (kprobe_opcode_t *)(addr - p->offset);
}

static void address_is_probed_or_refused(struct kunit *test)
{
	const struct region *region = test->param_value;
	unsigned int tries = tries_for(region->memory);
	struct kprobe *p = &hostile[0];
	unsigned long addr;
	int err, again;
	bool good;

	while (tries--) {
		addr = region->choose();
		fill(p);
		set_address(p, addr);
		err = try_to_register(p, &good);
		KUNIT_ASSERT_TRUE_MSG(test, good, "%lx: error %d", addr, err);
		KUNIT_ASSERT_TRUE_MSG(test, is_right(err, p, region->memory), "%lx: error %d",
				      addr, err);
		if (tries % 16 == 0) {
			fill(p);
			p->addr = (kprobe_opcode_t *)addr;
			again = try_to_register(p, &good);
			KUNIT_ASSERT_TRUE(test, good);
			KUNIT_ASSERT_EQ_MSG(test, again, err, "%lx", addr);
		}
		cond_resched();
	}
}

static void address_and_symbol_are_refused(struct kunit *test)
{
	struct kprobe *p = &hostile[0];
	bool good;

	for (unsigned int i = 0; i < TEXT_TRIES; i++) {
		fill(p);
		if (below(2)) {
			p->symbol_name = TARGET->symbol;
			p->addr = (kprobe_opcode_t *)(any_long() | 1);
		}
		p->offset = prandom_u32_state(&rnd);
		KUNIT_ASSERT_EQ(test, try_to_register(p, &good), -EINVAL);
		KUNIT_ASSERT_TRUE(test, good);
	}
}

/* A probe that was never registered cannot be changed, whatever its bytes are. */
static void random_probe_is_not_registered(struct kunit *test)
{
	struct kprobe *p = &hostile[0];

	for (unsigned int i = 0; i < TRIES; i++) {
		fill(p);
		p->addr = (kprobe_opcode_t *)any_long();
		KUNIT_ASSERT_EQ(test, enable_kprobe(p), -EINVAL);
		KUNIT_ASSERT_EQ(test, disable_kprobe(p), -EINVAL);
		unregister_kprobe(p);
		KUNIT_ASSERT_NULL(test, p->addr);
		cond_resched();
	}
}

/* -------------------------------------------------------------------- symbols */

static char name[SZ_16K];

static const char * const odd_names[] = {
	"", " ", "\n", ":", "::", "%s%s%s%n", "%px", "../../etc", "kernel_clone\n",
	" kernel_clone", "kernel_clone ", "kernel_clone+0", "kernel_clone+0x10", "0x0",
	"vmlinux:", ":kernel_clone", "a:b:kernel_clone", "kprobes_test_target*", "\xff\xfe",
};

static void choose_name(void)
{
	unsigned int length, at;

	switch (below(4)) {
	case 0:
		strscpy(name, odd_names[below(ARRAY_SIZE(odd_names))]);
		break;
	case 1:		/* random bytes */
		length = below(64);
		prandom_bytes_state(&rnd, name, length);
		name[length] = '\0';
		break;
	case 2:		/* of any length, also beyond KSYM_NAME_LEN and a page */
		length = below(below(16) ? 1024 : sizeof(name));
		memset(name, 'a' + below(26), length);
		name[length] = '\0';
		break;
	case 3:		/* a symbol, with one character that none has */
		strscpy(name, TARGET->symbol);
		at = below(strlen(name));
		name[at] = "\n\t %/\\:+-\"'*"[below(12)];
		break;
	}
}

static void name_is_refused(struct kunit *test)
{
	struct kprobe *p = &hostile[0];
	bool good;
	int err;

	for (unsigned int i = 0; i < 2 * TEXT_TRIES; i++) {
		choose_name();
		fill(p);
		p->symbol_name = name;
		p->offset = below(2) ? 0 : prandom_u32_state(&rnd);
		err = try_to_register(p, &good);
		KUNIT_ASSERT_TRUE_MSG(test, good, "error %d, '%.64s'", err, name);
		/* Data has short names, and a large offset leads anywhere. */
		if (err != -ENOENT && !p->offset)
			KUNIT_ASSERT_EQ_MSG(test, err, -EINVAL, "'%.64s'", name);
		cond_resched();
	}
}

static void offset_is_probed_or_refused(struct kunit *test)
{
	struct kprobe *p = &hostile[0];
	bool good;
	int err;

	for (unsigned int i = 0; i < TEXT_TRIES; i++) {
		fill(p);
		p->symbol_name = TARGET->symbol;
		p->offset = prandom_u32_state(&rnd) >> below(32);
		err = try_to_register(p, &good);
		KUNIT_ASSERT_TRUE_MSG(test, good, "%x: error %d", p->offset, err);
		KUNIT_ASSERT_TRUE_MSG(test, is_right(err, p, TEXT) || err == -ENOENT,
				      "%x: error %d", p->offset, err);
	}
}

/* --------------------------------------------------------------------- arrays */

/* Give @p a place. Returns the error with which it is refused. */
static int choose_place(struct kprobe *p)
{
	fill(p);
	INIT_LIST_HEAD(&p->list);
	INIT_HLIST_NODE(&p->hlist);
	switch (below(24)) {
	case 0:
		return -EINVAL;
	case 1:
		p->symbol_name = "kprobes_test_no_such_function";
		return -ENOENT;
	case 2:
		p->addr = BAD_ADDRESS;
		return -ENOENT;
	case 3:
		p->symbol_name = "kprobes_test_blacklisted";
		return -EINVAL;
	case 4:
		p->symbol_name = TARGET->symbol;
		p->addr = (kprobe_opcode_t *)kprobes_test_target;
		return -EINVAL;
	default:
		p->symbol_name = kpt_places[below(PLACES)].symbol;
		return 0;
	}
}

/* The caller's array; the probes as they were, and the errors of each alone. */
static struct kprobe *array[2 * ARRAY_SIZE(hostile)];
static struct kprobe given[ARRAY_SIZE(hostile)];
static int errors[ARRAY_SIZE(hostile)];

/* Fill the array. Returns the error with which it is refused. */
static int choose_array(unsigned int num)
{
	unsigned long seen = 0;
	bool bad = false;
	int err = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(hostile); i++)
		errors[i] = choose_place(&hostile[i]);
	memcpy(given, hostile, sizeof(given));
	for (unsigned int i = 0; i < num; i++) {
		unsigned int k = below(8) ? i : below(ARRAY_SIZE(hostile));

		if (!below(32)) {
			array[i] = NULL;
			bad = true;
			continue;
		}
		array[i] = &hostile[k];
		bad |= seen & BIT(k);
		seen |= BIT(k);
		err = err ?: errors[k];
	}
	return bad ? -EINVAL : err;
}

static void array_is_registered_or_refused(struct kunit *test)
{
	int num, err, expected;

	for (unsigned int t = 0; t < ARRAY_TRIES; t++) {
		num = 1 + below(ARRAY_SIZE(hostile));
		expected = choose_array(num);
		err = register_kprobes(array, num);
		KUNIT_ASSERT_EQ_MSG(test, err, expected, "array %u of %d", t, num);
		if (err) {
			for (unsigned int i = 0; i < ARRAY_SIZE(hostile); i++)
				KUNIT_ASSERT_TRUE(test, is_untouched(&hostile[i], &given[i]));
			continue;
		}
		/* Each probe twice. */
		memcpy(array + num, array, num * sizeof(array[0]));
		unregister_kprobes(array, 2 * num);
		for (int i = 0; i < num; i++) {
			KUNIT_ASSERT_FALSE(test, kpt_is_linked(array[i]));
			KUNIT_ASSERT_NULL(test, array[i]->addr);
		}
		cond_resched();
	}
}

static void number_is_refused(struct kunit *test)
{
	static const struct { int num, err; } numbers[] = {
		{ 0, -EINVAL }, { -1, -EINVAL }, { INT_MIN, -EINVAL }, { INT_MAX, -ENOMEM },
	};
	struct kprobe *a = kpt_probe('a', TARGET->symbol), *b = kpt_probe('b', TARGET->symbol);
	struct kretprobe rp = { .kp.symbol_name = TARGET->symbol }, *rps = &rp;
	struct jprobe jp = { .kp.symbol_name = TARGET->symbol }, *jps = &jp;
	struct kprobe unused;
	int num, err;

	ASSERT_REGISTERED(test, b);
	memcpy(&unused, a, sizeof(unused));
	for (unsigned int i = 0; i < ARRAY_SIZE(numbers); i++) {
		num = numbers[i].num;
		err = numbers[i].err;
		KUNIT_EXPECT_EQ(test, register_kprobes(&a, num), err);
		EXPECT_UNTOUCHED(test, a, &unused);
		KUNIT_EXPECT_EQ(test, register_kretprobes(&rps, num),
				IS_ENABLED(CONFIG_KRETPROBES) ? err : -EOPNOTSUPP);
		KUNIT_EXPECT_EQ(test, register_jprobes(&jps, num),
				IS_ENABLED(CONFIG_JPROBES) ? err : -EOPNOTSUPP);
		if (num > 0)
			continue;
		unregister_kprobes(&b, num);
		unregister_kretprobes(&rps, num);
		EXPECT_CALL(test, TARGET, "b");
	}
}

#ifdef CONFIG_KRETPROBES

/**
 * struct limit - Fields of a return probe that are at or over a limit
 * @maxactive:	The field of this name.
 * @data_size:	The field of this name.
 * @err:	What register_kretprobe() returns.
 * @per_cpu:	The field @maxactive is as large for each possible CPU.
 */
struct limit {
	int maxactive;
	size_t data_size;
	int err;
	bool per_cpu;
};

static const struct limit limits[] = {
	{ 0, KRETPROBE_MAX_DATA_SIZE, 0 },
	{ 0, KRETPROBE_MAX_DATA_SIZE + 1, -E2BIG },
	{ 0, INT_MAX, -E2BIG },
	{ 1, SIZE_MAX, -E2BIG },
	{ INT_MAX, SIZE_MAX, -E2BIG },
	{ -1, KRETPROBE_MAX_DATA_SIZE, 0 },
	{ INT_MIN, 0, 0 },
	{ 1, 1, 0 },
#ifndef CONFIG_KRETPROBE_ON_RETHOOK
	{ INT_MAX, 0, -ENOMEM },
	{ INT_MAX, KRETPROBE_MAX_DATA_SIZE, -ENOMEM },
	/*
	 * The size of all instances does not fit in 32 bits. What is left of it is a size that
	 * can be allocated.
	 */
	{ 1 << 20, KRETPROBE_MAX_DATA_SIZE, -ENOMEM, .per_cpu = true },
	{ 1 << 21, 2000, -ENOMEM, .per_cpu = true },
	{ 1 << 24, KRETPROBE_MAX_DATA_SIZE, -ENOMEM },
#endif
};

static void return_probe_beyond_limits_is_refused(struct kunit *test)
{
	struct kretprobe rp, before;

	for (unsigned int i = 0; i < ARRAY_SIZE(limits); i++) {
		const struct limit *limit = &limits[i];

		memset(&rp, 0, sizeof(rp));
		rp.kp.symbol_name = TARGET->symbol;
		rp.maxactive = limit->maxactive;
		if (limit->per_cpu)
			rp.maxactive *= num_possible_cpus();
		rp.data_size = limit->data_size;
		memcpy(&before, &rp, sizeof(before));
		KUNIT_EXPECT_EQ_MSG(test, register_kretprobe(&rp), limit->err, "limit %u", i);
		EXPECT_CALL(test, TARGET, "");
		if (limit->err)
			EXPECT_UNTOUCHED(test, &rp.kp, &before.kp);
		unregister_kretprobe(&rp);
	}
}

/* As address_is_probed_or_refused(). Instances are released before the call returns. */
static void return_probe_anywhere_is_refused(struct kunit *test)
{
	struct kretprobe rp = { };

	for (unsigned int i = 0; i < TEXT_TRIES; i++) {
		const struct region *region = &regions[below(ARRAY_SIZE(regions))];
		int err;

		if (region->memory == TEXT)
			continue;
		fill(&rp.kp);
		set_address(&rp.kp, region->choose());
		rp.maxactive = (int)prandom_u32_state(&rnd) >> (16 + below(16));
		rp.data_size = any_long() >> below(BITS_PER_LONG);
		err = register_kretprobe(&rp);
		if (err != -E2BIG || rp.data_size <= KRETPROBE_MAX_DATA_SIZE)
			KUNIT_ASSERT_TRUE_MSG(test, is_right(err, &rp.kp, region->memory),
					      "%s: error %d", region->desc, err);
		KUNIT_ASSERT_FALSE(test, kpt_is_linked(&rp.kp));
		cond_resched();
	}
}

#endif /* CONFIG_KRETPROBES */

static struct kunit_case kprobes_hostile_cases[] = {
	KUNIT_CASE_PARAM(address_is_probed_or_refused, region_gen_params),
	KUNIT_CASE(address_and_symbol_are_refused),
	KUNIT_CASE(random_probe_is_not_registered),
	KUNIT_CASE(name_is_refused),
	KUNIT_CASE(offset_is_probed_or_refused),
	KUNIT_CASE(array_is_registered_or_refused),
	KUNIT_CASE(number_is_refused),
#ifdef CONFIG_KRETPROBES
	KUNIT_CASE(return_probe_beyond_limits_is_refused),
	KUNIT_CASE(return_probe_anywhere_is_refused),
#endif
	{ }
};

static int start_suite(struct kunit_suite *suite)
{
	slab_memory = kmalloc(PAGE_SIZE, GFP_KERNEL);
	vmalloc_memory = vmalloc(PAGE_SIZE);	/* and the page after it, a hole */
	return slab_memory && vmalloc_memory ? kpt_start_suite(suite) : -ENOMEM;
}

static void end_suite(struct kunit_suite *suite)
{
	vfree(vmalloc_memory);
	kfree(slab_memory);
}

static int start_test(struct kunit *test)
{
	kunit_info(test, "seed %u\n", seed);
	prandom_seed_state(&rnd, seed);
	return kpt_start_test(test);
}

static struct kunit_suite kprobes_hostile_suite = {
	.name = "kprobes-hostile",
	.suite_init = start_suite,
	.suite_exit = end_suite,
	.init = start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_hostile_cases,
};

kunit_test_suite(kprobes_hostile_suite);
