// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of changes to the filter of a registered ftrace_ops
 */
#include <kunit/test.h>

#include <linux/ftrace.h>
#include <linux/module.h>
#include <linux/string.h>

#include <asm/sections.h>

/* Functions to trace, all different: the compiler merges equal ones. */
#define TARGET(n)	static noinline void target_##n(void) { asm volatile("# " #n); }
TARGET(a)
TARGET(b)
TARGET(c)
TARGET(d)
TARGET(e)
TARGET(f)
TARGET(g)
TARGET(h)
TARGET(i)
TARGET(j)
TARGET(k)
TARGET(l)
TARGET(m)
TARGET(n)
TARGET(o)
TARGET(p)

static void (*const targets[])(void) = {
	target_a, target_b, target_c, target_d, target_e, target_f,
	target_g, target_h, target_i, target_j, target_k, target_l,
	target_m, target_n, target_o, target_p,
};

#define NUM_TARGETS	ARRAY_SIZE(targets)

static notrace unsigned long address(unsigned int target)
{
	return (unsigned long)dereference_function_descriptor(targets[target]);
}

struct tracer {
	struct ftrace_ops ops;
	unsigned int hits[NUM_TARGETS];
};

static notrace void count_hit(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			      struct ftrace_regs *fregs)
{
	struct tracer *tracer = container_of(ops, struct tracer, ops);
	unsigned int hit = NUM_TARGETS;

	/* The ftrace site is near the function's start. */
	for (unsigned int i = 0; i < NUM_TARGETS; i++)
		if (address(i) <= ip && (hit == NUM_TARGETS || address(i) > address(hit)))
			hit = i;
	if (hit < NUM_TARGETS && ip - address(hit) < 64)
		tracer->hits[hit]++;
}

static void end_tracer(void *ops)
{
	unregister_ftrace_function(ops);
	ftrace_free_filter(ops);
}

/* Make an ops that traces the first @num targets. */
static struct tracer *start_tracer(struct kunit *test, unsigned int num, unsigned long flags)
{
	struct tracer *tracer = kunit_kzalloc(test, sizeof(*tracer), GFP_KERNEL);
	unsigned long ips[NUM_TARGETS];

	KUNIT_ASSERT_NOT_NULL(test, tracer);
	tracer->ops.func = count_hit;
	tracer->ops.flags = flags | FTRACE_OPS_FL_RECURSION;
	for (unsigned int i = 0; i < num; i++)
		ips[i] = address(i);
	KUNIT_ASSERT_EQ(test, 0, ftrace_set_filter_ips(&tracer->ops, ips, num, 0, 0));
	KUNIT_ASSERT_EQ(test, 0, register_ftrace_function(&tracer->ops));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, end_tracer, &tracer->ops));
	return tracer;
}

static int add(struct tracer *tracer, unsigned int target)
{
	return ftrace_set_filter_ip(&tracer->ops, address(target), 0, 0);
}

static int remove(struct tracer *tracer, unsigned int target)
{
	return ftrace_set_filter_ip(&tracer->ops, address(target), 1, 0);
}

/* The targets that @tracer traces now, as a mask. Each is traced once. */
static u32 traced(struct kunit *test, struct tracer *tracer)
{
	u32 mask = 0;

	BUILD_BUG_ON(NUM_TARGETS > 32);
	memset(tracer->hits, 0, sizeof(tracer->hits));
	for (unsigned int i = 0; i < NUM_TARGETS; i++)
		targets[i]();
	for (unsigned int i = 0; i < NUM_TARGETS; i++) {
		KUNIT_EXPECT_LE(test, tracer->hits[i], 1);
		if (tracer->hits[i])
			mask |= BIT(i);
	}
	return mask;
}

static void filter_changes(struct kunit *test)
{
	struct tracer *tracer = start_tracer(test, 1, 0);

	KUNIT_EXPECT_EQ(test, 0x1, traced(test, tracer));
	KUNIT_EXPECT_EQ(test, 0, add(tracer, 2));
	KUNIT_EXPECT_EQ(test, 0x5, traced(test, tracer));
	KUNIT_EXPECT_EQ(test, 0, add(tracer, 1));
	KUNIT_EXPECT_EQ(test, 0x7, traced(test, tracer));
	KUNIT_EXPECT_EQ(test, 0, remove(tracer, 0));
	KUNIT_EXPECT_EQ(test, 0x6, traced(test, tracer));
	KUNIT_EXPECT_EQ(test, 0, add(tracer, 0));
	KUNIT_EXPECT_EQ(test, 0x7, traced(test, tracer));
}

/* All functions of the kernel are traced for a moment. */
static void empty_filter_matches_all(struct kunit *test)
{
	struct tracer *tracer = start_tracer(test, 2, 0);

	KUNIT_EXPECT_EQ(test, 0, remove(tracer, 0));
	KUNIT_EXPECT_EQ(test, 0, remove(tracer, 1));
	KUNIT_EXPECT_EQ(test, BIT(NUM_TARGETS) - 1, traced(test, tracer));
	KUNIT_EXPECT_EQ(test, 0, add(tracer, 2));
	KUNIT_EXPECT_EQ(test, 0x4, traced(test, tracer));
}

/* More entries than a small filter has room for. */
static void filter_grows_and_shrinks(struct kunit *test)
{
	struct tracer *tracer = start_tracer(test, 1, 0);
	u32 expected = 1;

	for (unsigned int i = 1; i < NUM_TARGETS; i++) {
		expected |= BIT(i);
		KUNIT_EXPECT_EQ(test, 0, add(tracer, i));
		KUNIT_EXPECT_EQ(test, expected, traced(test, tracer));
	}
	for (unsigned int i = 0; i < NUM_TARGETS - 1; i++) {
		expected &= ~BIT(i);
		KUNIT_EXPECT_EQ(test, 0, remove(tracer, i));
		KUNIT_EXPECT_EQ(test, expected, traced(test, tracer));
	}
}

static void filter_changes_by_many(struct kunit *test)
{
	struct tracer *tracer = start_tracer(test, 8, 0);
	unsigned long ips[] = {
		address(14), address(3), address(12), address(14), address(9), address(4),
	};

	KUNIT_EXPECT_EQ(test, 0, ftrace_set_filter_ips(&tracer->ops, ips, ARRAY_SIZE(ips), 0, 0));
	KUNIT_EXPECT_EQ(test, 0x52ff, traced(test, tracer));
	KUNIT_EXPECT_EQ(test, 0, ftrace_set_filter_ips(&tracer->ops, ips + 1, 3, 1, 0));
	KUNIT_EXPECT_EQ(test, 0x2f7, traced(test, tracer));
	KUNIT_EXPECT_EQ(test, 0, ftrace_set_filter_ips(&tracer->ops, ips, 1, 0, 1));
	KUNIT_EXPECT_EQ(test, 0x4000, traced(test, tracer));
}

static void filter_is_unchanged_by_errors(struct kunit *test)
{
	struct tracer *tracer = start_tracer(test, 4, 0);
	unsigned long missing[] = { address(1), address(9) }, twice[] = { address(1), address(1) };
	unsigned long bad[] = { address(9), (unsigned long)&targets };

	KUNIT_EXPECT_EQ(test, -ENOENT, remove(tracer, 9));
	KUNIT_EXPECT_EQ(test, -ENOENT, ftrace_set_filter_ips(&tracer->ops, missing, 2, 1, 0));
	KUNIT_EXPECT_EQ(test, -ENOENT, ftrace_set_filter_ips(&tracer->ops, twice, 2, 1, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, ftrace_set_filter_ips(&tracer->ops, bad, 2, 0, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, ftrace_set_filter_ip(&tracer->ops, 0, 0, 0));
	KUNIT_EXPECT_EQ(test, 0, add(tracer, 3));
	KUNIT_EXPECT_EQ(test, 0xf, traced(test, tracer));
	KUNIT_EXPECT_EQ(test, 0, remove(tracer, 3));
	KUNIT_EXPECT_EQ(test, 0x7, traced(test, tracer));
}

/* The call of a function that gets a second tracer, or loses it, changes each time. */
static void functions_are_shared(struct kunit *test)
{
	struct tracer *plain = start_tracer(test, 2, 0);
	struct tracer *saving = start_tracer(test, 1, FTRACE_OPS_FL_SAVE_REGS_IF_SUPPORTED);

	KUNIT_EXPECT_EQ(test, 0, add(saving, 1));
	KUNIT_EXPECT_EQ(test, 0, add(saving, 2));
	KUNIT_EXPECT_EQ(test, 0, add(plain, 2));
	KUNIT_EXPECT_EQ(test, 0x7, traced(test, plain));
	KUNIT_EXPECT_EQ(test, 0x7, traced(test, saving));
	KUNIT_EXPECT_EQ(test, 0, remove(saving, 0));
	KUNIT_EXPECT_EQ(test, 0, remove(plain, 1));
	KUNIT_EXPECT_EQ(test, 0x5, traced(test, plain));
	KUNIT_EXPECT_EQ(test, 0x6, traced(test, saving));
	KUNIT_EXPECT_EQ(test, 0, remove(plain, 2));
	KUNIT_EXPECT_EQ(test, 0, add(plain, 3));
	KUNIT_EXPECT_EQ(test, 0x9, traced(test, plain));
	KUNIT_EXPECT_EQ(test, 0x6, traced(test, saving));
}

static void notrace_excludes_functions(struct kunit *test)
{
	struct tracer *tracer = start_tracer(test, 4, 0);
	char name[KSYM_NAME_LEN];

	sprint_symbol_no_offset(name, (unsigned long)targets[5]);
	*strchrnul(name, ' ') = '\0';
	KUNIT_EXPECT_EQ(test, 0, ftrace_set_notrace(&tracer->ops, name, strlen(name), 0));
	KUNIT_EXPECT_EQ(test, 0, add(tracer, 5));
	KUNIT_EXPECT_EQ(test, 0, add(tracer, 6));
	KUNIT_EXPECT_EQ(test, 0x4f, traced(test, tracer));
	KUNIT_EXPECT_EQ(test, 0, remove(tracer, 5));
	KUNIT_EXPECT_EQ(test, 0x4f, traced(test, tracer));
}

/* The filter changes while nothing is traced, and holds when the ops is registered again. */
static void filter_changes_at_rest(struct kunit *test)
{
	struct tracer *tracer = start_tracer(test, 4, 0);

	KUNIT_ASSERT_EQ(test, 0, unregister_ftrace_function(&tracer->ops));
	KUNIT_EXPECT_EQ(test, 0, add(tracer, 7));
	KUNIT_EXPECT_EQ(test, 0, remove(tracer, 0));
	KUNIT_EXPECT_EQ(test, 0, traced(test, tracer));
	KUNIT_ASSERT_EQ(test, 0, register_ftrace_function(&tracer->ops));
	KUNIT_EXPECT_EQ(test, 0x8e, traced(test, tracer));
}

/* One ops alone may change the path of a function. */
static void ipmodify_excludes_others(struct kunit *test)
{
	unsigned long flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_SAVE_REGS;
	struct tracer *first, *second;
	unsigned long ips[] = { address(9), address(1), address(8) };

	if (!IS_ENABLED(CONFIG_DYNAMIC_FTRACE_WITH_REGS))
		kunit_skip(test, "no tracer may change the path");
	first = start_tracer(test, 2, flags);
	KUNIT_EXPECT_EQ(test, 0, remove(first, 0));
	second = start_tracer(test, 1, flags);

	KUNIT_EXPECT_EQ(test, -EBUSY, ftrace_set_filter_ips(&second->ops, ips, 3, 0, 0));
	KUNIT_EXPECT_EQ(test, 0x1, traced(test, second));
	KUNIT_EXPECT_EQ(test, 0x2, traced(test, first));
	/* Those that were not in the way have not been taken. */
	KUNIT_EXPECT_EQ(test, 0, add(first, 8));
	KUNIT_EXPECT_EQ(test, 0, add(first, 9));
	KUNIT_EXPECT_EQ(test, 0, remove(first, 1));
	KUNIT_EXPECT_EQ(test, 0, add(second, 1));
	KUNIT_EXPECT_EQ(test, 0x3, traced(test, second));
	KUNIT_EXPECT_EQ(test, 0x300, traced(test, first));
}

static struct kunit_case filter_cases[] = {
	KUNIT_CASE(filter_changes),
	KUNIT_CASE(empty_filter_matches_all),
	KUNIT_CASE(filter_grows_and_shrinks),
	KUNIT_CASE(filter_changes_by_many),
	KUNIT_CASE(filter_is_unchanged_by_errors),
	KUNIT_CASE(functions_are_shared),
	KUNIT_CASE(notrace_excludes_functions),
	KUNIT_CASE(filter_changes_at_rest),
	KUNIT_CASE(ipmodify_excludes_others),
	{}
};

static struct kunit_suite filter_suite = {
	.name = "ftrace-filter",
	.test_cases = filter_cases,
};

kunit_test_suite(filter_suite);

MODULE_DESCRIPTION("KUnit tests of changes to the filter of a registered ftrace_ops");
MODULE_LICENSE("GPL");
