/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of the tests of kernel probes that is about return probes.
 *
 * They are called 'r', 's' ...: in the journal 'r' is the entry handler of
 * return probe 'r', and 'R' its handler at the return.
 */
#ifndef _TEST_KRETPROBES_H
#define _TEST_KRETPROBES_H

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/fprobe.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/llist.h>
#include <linux/minmax.h>
#include <linux/notifier.h>
#include <linux/rcupdate.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/stacktrace.h>

/**
 * struct trace - A stack trace
 * @entries:	The addresses, innermost first.
 * @length:	How many.
 */
struct trace {
	unsigned long entries[TRACE_LENGTH];
	unsigned int length;
};

/**
 * struct test_kretprobe - A return probe of a test
 * @rp:		The return probe.
 * @on_entry:	What its entry handler does besides writing the journal, or NULL.
 * @on_return:	The same of its handler at the return.
 * @data:	For these.
 * @value:	What the last call returned.
 * @caller:	Where that returned to.
 * @entry_trace: For @on_entry.
 * @return_trace: For @on_return.
 * @entries:	How many calls all tasks have made.
 * @returns:	How many of them have returned.
 */
struct test_kretprobe {
	struct kretprobe rp;
	int (*on_entry)(struct test_kretprobe *p, struct kretprobe_instance *ri,
			struct pt_regs *regs);
	void (*on_return)(struct test_kretprobe *p, struct kretprobe_instance *ri,
			  struct pt_regs *regs);
	unsigned long data;
	unsigned long value;
	unsigned long caller;
	struct trace entry_trace;
	struct trace return_trace;
	atomic_t entries;
	atomic_t returns;
};

static struct test_kretprobe return_probes[5];

static int on_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct test_kretprobe *p = container_of(get_kretprobe(ri), struct test_kretprobe, rp);

	atomic_inc(&p->entries);
	if (current != tester)
		return 0;
	note('r' + (p - return_probes));
	return p->on_entry ? p->on_entry(p, ri, regs) : 0;
}

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct test_kretprobe *p = container_of(get_kretprobe(ri), struct test_kretprobe, rp);

	atomic_inc(&p->returns);
	if (current != tester)
		return 0;
	note('R' + (p - return_probes));
	p->value = regs_return_value(regs);
	p->caller = get_kretprobe_retaddr(ri);
	if (p->on_return)
		p->on_return(p, ri, regs);
	return 0;
}

static struct test_kretprobe *test_kretprobe(char name)
{
	return &return_probes[name - 'r'];
}

/* Make the return probe called @name one with both handlers. */
static struct kretprobe *return_probe(char name, const char *symbol)
{
	struct kretprobe *rp = &test_kretprobe(name)->rp;

	rp->kp.symbol_name = symbol;
	rp->entry_handler = on_entry;
	rp->handler = on_return;
	return rp;
}

#define ASSERT_RETURN_PROBED(test, rp)	KUNIT_ASSERT_EQ(test, register_kretprobe(rp), 0)

/* -------------------------------------------------------------------- hosts */

/*
 * Functions in which a test can do something. They have that called as a
 * notifier, and return what it returns.
 */

static noinline __noclone int kprobes_test_host(struct raw_notifier_head *chain,
						unsigned long up, unsigned long down, void *data)
{
	int result = raw_notifier_call_chain(chain, up, data);

	OPTIMIZER_HIDE_VAR(result);
	return result;
}

/**
 * struct host - A function that a test can do something inside of
 * @symbol:	Its name.
 * @call:	The function.
 */
struct host {
	const char *symbol;
	int (*call)(struct raw_notifier_head *chain, unsigned long up, unsigned long down,
		    void *data);
};

static const struct host hosts[] = {
	{ "kprobes_test_host", kprobes_test_host },
	{ "raw_notifier_call_chain_robust", raw_notifier_call_chain_robust },
};

/* With a breakpoint, and through ftrace if there is that. */
#define HOST		(&hosts[0])
#define TRACED_HOST	(&hosts[1])

KUNIT_ARRAY_PARAM_DESC(host, hosts, symbol);

static u8 unprobed_hosts[ARRAY_SIZE(hosts)][TEXT_BYTES];

static const void *host_text(unsigned int i)
{
	const void *start = dereference_function_descriptor(hosts[i].call);

	OPTIMIZER_HIDE_VAR(start);	/* see text() */
	return start;
}

/**
 * struct visit - A call of a host
 * @nb:		What the host calls.
 * @inside:	What is done then.
 */
struct visit {
	struct notifier_block nb;
	int (*inside)(void *data);
};

static int run_inside(struct notifier_block *nb, unsigned long action, void *data)
{
	return container_of(nb, struct visit, nb)->inside(data);
}

/* Do something inside of a host, and return what the host returned. */
static noinline __noclone int kprobes_test_visit(const struct host *host,
						 int (*inside)(void *data), void *data)
{
	struct visit visit = { .nb.notifier_call = run_inside, .inside = inside };
	struct raw_notifier_head chain = { .head = RCU_INITIALIZER(&visit.nb) };
	int result = host->call(&chain, 0, 0, data);

	OPTIMIZER_HIDE_VAR(result);
	return result;
}

/* What is returned from inside when all is well. */
#define VISITED	1981

static int be_inside(void *unused)
{
	return VISITED;
}

static void expect_visit(struct kunit *test, const struct host *host, int (*inside)(void *data),
			 void *data, const char *events, int line)
{
	clear_journal();
	KUNIT_EXPECT_EQ_MSG(test, kprobes_test_visit(host, inside, data), VISITED,
			    "at line %d", line);
	KUNIT_EXPECT_STREQ_MSG(test, journal, events, "at line %d", line);
}

/* Do something inside: the host returns what it should, and these handlers are called. */
#define EXPECT_VISIT(test, host, inside, data, events)	\
	expect_visit(test, host, inside, data, events, __LINE__)

/* ----------------------------------------------------------------- sleepers */

#define PATIENCE	(20 * HZ)

/**
 * struct sleeper - A task that visits a host, to sleep there
 * @task:	The task.
 * @host:	The host.
 * @inside:	What it does there.
 * @arrived:	It is there.
 */
struct sleeper {
	struct task_struct *task;
	const struct host *host;
	int (*inside)(void *sleeper);
	struct completion arrived;
};

static struct sleeper sleepers[200];
static unsigned int number_of_sleepers;
static DECLARE_COMPLETION(morning);

static int sleep_inside(void *sleeper)
{
	complete(&((struct sleeper *)sleeper)->arrived);
	wait_for_completion_timeout(&morning, PATIENCE);
	return VISITED;
}

static int end_inside(void *sleeper)
{
	complete(&((struct sleeper *)sleeper)->arrived);
	kthread_exit(VISITED);
}

static int be_sleeper(void *sleeper)
{
	struct sleeper *s = sleeper;
	int result = kprobes_test_visit(s->host, s->inside, s);

	OPTIMIZER_HIDE_VAR(result);
	return result;
}

/* Start a task, and wait until it is inside of the host. */
static struct task_struct *send(struct kunit *test, const struct host *host,
				int (*inside)(void *sleeper))
{
	struct sleeper *s = &sleepers[number_of_sleepers];

	KUNIT_ASSERT_LT(test, number_of_sleepers, ARRAY_SIZE(sleepers));
	s->host = host;
	s->inside = inside;
	init_completion(&s->arrived);
	s->task = kthread_create(be_sleeper, s, "kprobes_test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(s->task));
	get_task_struct(s->task);
	number_of_sleepers++;
	wake_up_process(s->task);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&s->arrived, PATIENCE));
	return s->task;
}

static void put_to_sleep(struct kunit *test, const struct host *host, unsigned int count)
{
	while (count--)
		send(test, host, sleep_inside);
}

/* Let the visits of all sleepers end. Returns how many did not end well. */
static unsigned int wake_sleepers(void)
{
	unsigned int bad = 0;

	complete_all(&morning);
	while (number_of_sleepers)
		bad += kthread_stop_put(sleepers[--number_of_sleepers].task) != VISITED;
	reinit_completion(&morning);
	return bad;
}

#define EXPECT_WAKING(test)	KUNIT_EXPECT_EQ(test, wake_sleepers(), 0)

/* ------------------------------------------------------------------ fixture */

static int start_return_suite(struct kunit_suite *suite)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(hosts); i++)
		memcpy(unprobed_hosts[i], host_text(i), TEXT_BYTES);
	return start_suite(suite);
}

static int start_return_test(struct kunit *test)
{
	memset(return_probes, 0, sizeof(return_probes));
	return start_test(test);
}

static void end_return_test(struct kunit *test)
{
	struct kretprobe *all[ARRAY_SIZE(return_probes)];
	unsigned int i;

	wake_sleepers();
	for (i = 0; i < ARRAY_SIZE(return_probes); i++)
		all[i] = &return_probes[i].rp;
	unregister_kretprobes(all, ARRAY_SIZE(all));
	end_test(test);
	for (i = 0; i < ARRAY_SIZE(hosts); i++)
		KUNIT_EXPECT_MEMEQ(test, host_text(i), unprobed_hosts[i], TEXT_BYTES);
}

/* -------------------------------------------------------- what handlers get */

static void return_is_seen(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = return_probe('r', place->symbol);

	ASSERT_RETURN_PROBED(test, r);
	for (int i = 0; i < 2; i++) {
		test_kretprobe('r')->value = 0;
		EXPECT_CALL(test, place, "rR");
		KUNIT_EXPECT_EQ(test, test_kretprobe('r')->value, (unsigned long)place->result);
	}
	unregister_kretprobe(r);
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_EQ(test, r->nmissed, 0);
	KUNIT_EXPECT_EQ(test, r->kp.nmissed, 0);
	KUNIT_EXPECT_EQ(test, r->maxactive, 0);
}

static void return_handlers_are_optional(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = return_probe('r', place->symbol);
	struct kretprobe *s = return_probe('s', place->symbol);
	struct kretprobe *t = return_probe('t', place->symbol);

	r->handler = NULL;
	r->entry_handler = NULL;
	s->handler = NULL;
	t->entry_handler = NULL;
	ASSERT_RETURN_PROBED(test, r);
	EXPECT_CALL(test, place, "");
	ASSERT_RETURN_PROBED(test, s);
	EXPECT_CALL(test, place, "s");
	ASSERT_RETURN_PROBED(test, t);
	EXPECT_CALL(test, place, "sT");
	unregister_kretprobe(r);
	unregister_kretprobe(s);
	EXPECT_CALL(test, place, "T");
}

#ifdef CONFIG_HAVE_FUNCTION_ARG_ACCESS_API
static int keep_argument(struct test_kretprobe *p, struct kretprobe_instance *ri,
			 struct pt_regs *regs)
{
	p->data = regs_get_kernel_argument(regs, 0);
	return 0;
}

static void entry_handler_gets_arguments(struct kunit *test)
{
	const struct place *place = test->param_value;

	test_kretprobe('r')->on_entry = keep_argument;
	ASSERT_RETURN_PROBED(test, return_probe('r', place->symbol));
	EXPECT_CALL(test, place, "rR");
	KUNIT_EXPECT_EQ(test, test_kretprobe('r')->data, ARG);
}
#else
static void entry_handler_gets_arguments(struct kunit *test)
{
	kunit_skip(test, "no access to arguments");
}
#endif

static int decline(struct test_kretprobe *p, struct kretprobe_instance *ri, struct pt_regs *regs)
{
	return p->data;
}

/* Its instance is free again at once. */
static void entry_handler_declines_a_call(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = return_probe('r', place->symbol);

	r->maxactive = 1;
	test_kretprobe('r')->on_entry = decline;
	ASSERT_RETURN_PROBED(test, r);
	for (int i = 0; i < 3; i++) {
		test_kretprobe('r')->data = i - 1;
		EXPECT_CALL(test, place, i == 1 ? "rR" : "r");
	}

	/* Who shares the call is not concerned. */
	ASSERT_RETURN_PROBED(test, return_probe('s', place->symbol));
	EXPECT_CALL(test, place, "srS");
	KUNIT_EXPECT_EQ(test, r->nmissed, 0);
}

static void return_address_is_known(struct kunit *test)
{
	const struct host *host = test->param_value;
	static const char names[] = "rst";

	for (unsigned int i = 0; names[i]; i++)
		ASSERT_RETURN_PROBED(test, return_probe(names[i], host->symbol));
	EXPECT_VISIT(test, host, be_inside, NULL, "tsrRST");
	for (unsigned int i = 0; names[i]; i++) {
		unsigned long caller = test_kretprobe(names[i])->caller;

		KUNIT_EXPECT_TRUE_MSG(test, is_in(caller, "kprobes_test_visit"), "%pS",
				      (void *)caller);
		KUNIT_EXPECT_EQ(test, caller, test_kretprobe('r')->caller);
	}
}

#ifdef CONFIG_HAVE_FUNCTION_ERROR_INJECTION
static void change_value(struct test_kretprobe *p, struct kretprobe_instance *ri,
			 struct pt_regs *regs)
{
	regs_set_return_value(regs, p->data);
}

/* The next handler sees what the one before it has left, and so does the caller. */
static void return_value_is_changed(struct kunit *test)
{
	const struct place *place = test->param_value;

	test_kretprobe('r')->on_return = change_value;
	test_kretprobe('r')->data = 1812;
	test_kretprobe('s')->on_return = change_value;
	test_kretprobe('s')->data = 1789;
	ASSERT_RETURN_PROBED(test, return_probe('r', place->symbol));
	KUNIT_EXPECT_EQ(test, (unsigned long)call(place), 1812);
	ASSERT_RETURN_PROBED(test, return_probe('s', place->symbol));
	KUNIT_EXPECT_EQ(test, (unsigned long)call(place), 1789);
	KUNIT_EXPECT_EQ(test, test_kretprobe('r')->value, (unsigned long)place->result);
	KUNIT_EXPECT_EQ(test, test_kretprobe('s')->value, 1812);
}
#else
static void return_value_is_changed(struct kunit *test)
{
	kunit_skip(test, "no access to the return value");
}
#endif

/* ----------------------------------------------------- one call in another */

/**
 * struct descent - Visits inside of visits
 * @host:	Where.
 * @depth:	How many more.
 */
struct descent {
	const struct host *host;
	unsigned int depth;
};

static int descend(void *descent)
{
	struct descent *d = descent;

	if (!d->depth)
		return VISITED;
	d->depth--;
	return kprobes_test_visit(d->host, descend, d);
}

static void expect_descent(struct kunit *test, const struct host *host, unsigned int depth,
			   const char *events, int line)
{
	struct descent descent = { .host = host, .depth = depth - 1 };

	expect_visit(test, host, descend, &descent, events, line);
}

/* Call a host that calls itself, and so on, so many times. */
#define EXPECT_DESCENT(test, host, depth, events)	\
	expect_descent(test, host, depth, events, __LINE__)

static void probed_function_calls_itself(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = return_probe('r', host->symbol);
	static const struct {
		int maxactive;
		const char *events;
		int missed;
	} cases[] = {
		{ 0, "rrrrrRRRRR", 0 },
		{ -1, "rrrrrRRRRR", 0 },
		{ 5, "rrrrrRRRRR", 0 },
		{ 4, "rrrrRRRR", 1 },
		{ 1, "rR", 4 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		r->kp.addr = NULL;
		r->maxactive = cases[i].maxactive;
		ASSERT_RETURN_PROBED(test, r);
		KUNIT_EXPECT_EQ(test, r->nmissed, 0);
		EXPECT_DESCENT(test, host, 5, cases[i].events);
		KUNIT_EXPECT_EQ(test, r->nmissed, cases[i].missed);
		EXPECT_DESCENT(test, host, 5, cases[i].events);
		KUNIT_EXPECT_EQ(test, r->nmissed, 2 * cases[i].missed);
		unregister_kretprobe(r);
		KUNIT_EXPECT_EQ(test, r->kp.nmissed, 0);
	}
}

/* Fill the data, from end to end, with the number of the call. */
static int write_data(struct test_kretprobe *p, struct kretprobe_instance *ri,
		      struct pt_regs *regs)
{
	memset(ri->data, ++p->data, p->rp.data_size);
	return 0;
}

static void check_data(struct test_kretprobe *p, struct kretprobe_instance *ri,
		       struct pt_regs *regs)
{
	if (memchr_inv(ri->data, p->data--, p->rp.data_size))
		note('!');
}

static void each_call_has_data_of_its_own(struct kunit *test)
{
	static const size_t sizes[] = { 0, 1, 60, KRETPROBE_MAX_DATA_SIZE };
	const struct host *host = test->param_value;
	struct kretprobe *r = return_probe('r', host->symbol);

	test_kretprobe('r')->on_entry = write_data;
	test_kretprobe('r')->on_return = check_data;
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		r->kp.addr = NULL;
		r->data_size = sizes[i];
		ASSERT_RETURN_PROBED(test, r);
		EXPECT_DESCENT(test, host, 5, "rrrrrRRRRR");
		unregister_kretprobe(r);
	}
}

static int call_both(void *unused)
{
	if (call(TARGET) != TARGET->result || call(TRACED) != TRACED->result)
		return 0;
	return VISITED;
}

static void probed_functions_call_each_other(struct kunit *test)
{
	ASSERT_RETURN_PROBED(test, return_probe('r', HOST->symbol));
	ASSERT_RETURN_PROBED(test, return_probe('s', TRACED_HOST->symbol));
	ASSERT_RETURN_PROBED(test, return_probe('t', TARGET->symbol));
	ASSERT_RETURN_PROBED(test, return_probe('u', TRACED->symbol));
	EXPECT_VISIT(test, HOST, call_both, NULL, "rtTuUR");
	EXPECT_VISIT(test, TRACED_HOST, call_both, NULL, "stTuUS");
	EXPECT_VISIT(test, HOST, descend, (&(struct descent){ TRACED_HOST, 1 }), "rsSR");
	EXPECT_VISIT(test, TRACED_HOST, descend, (&(struct descent){ HOST, 2 }), "srrRRS");
}

/* ------------------------------------------------- several at one function */

static void return_probes_share_a_function(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = return_probe('r', place->symbol);
	struct kretprobe *s = return_probe('s', place->symbol);
	struct kretprobe *t = return_probe('t', place->symbol);

	ASSERT_RETURN_PROBED(test, r);
	ASSERT_RETURN_PROBED(test, s);
	EXPECT_CALL(test, place, "srRS");
	ASSERT_RETURN_PROBED(test, t);
	EXPECT_CALL(test, place, "tsrRST");
	unregister_kretprobe(s);
	EXPECT_CALL(test, place, "trRT");
	unregister_kretprobe(t);
	EXPECT_CALL(test, place, "rR");
	unregister_kretprobe(r);
	EXPECT_CALL(test, place, "");
}

static void probes_and_return_probes_share_a_function(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);
	struct kprobe *b = post_probe('b', place->symbol);
	struct kretprobe *r = return_probe('r', place->symbol);
	struct kretprobe *s = return_probe('s', place->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_RETURN_PROBED(test, r);
	EXPECT_CALL(test, place, "raR");
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, place, "braBR");
	ASSERT_RETURN_PROBED(test, s);
	EXPECT_CALL(test, place, "sbraBRS");
	unregister_kretprobe(r);
	EXPECT_CALL(test, place, "sbaBS");
	unregister_kprobe(a);
	unregister_kprobe(b);
	EXPECT_CALL(test, place, "sS");
	unregister_kretprobe(s);
	EXPECT_CALL(test, place, "");
}

/*
 * A handler after that of a return probe lets another function run in place of
 * the probed one, which is probed itself. That returns for both of them.
 */
static void path_is_changed_on_the_way_to_a_return(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *s = return_probe('s', "kprobes_test_replacement");
	u64 result;

	if (place->call != kprobes_test_target && !IS_ENABLED(CONFIG_64BIT))
		kunit_skip(test, "arguments differ in size");

	test_probe('a')->act = go_elsewhere;
	ASSERT_REGISTERED(test, probe('a', place->symbol));
	ASSERT_RETURN_PROBED(test, return_probe('r', place->symbol));
	ASSERT_RETURN_PROBED(test, s);
	result = call(place);
	KUNIT_EXPECT_EQ(test, result, REPLACED);
	KUNIT_EXPECT_STREQ(test, journal, "rasSR");
	KUNIT_EXPECT_EQ(test, test_kretprobe('r')->value, REPLACED);
	KUNIT_EXPECT_EQ(test, test_kretprobe('r')->caller, test_kretprobe('s')->caller);

	unregister_kretprobe(s);
	clear_journal();
	result = call(place);
	KUNIT_EXPECT_EQ(test, result, REPLACED);
	KUNIT_EXPECT_STREQ(test, journal, "raR");
}

/* ------------------------------------------------- tasks inside of functions */

static int doze(void *unused)
{
	schedule_timeout_uninterruptible(1);
	return VISITED;
}

static void probed_function_sleeps(struct kunit *test)
{
	const struct host *host = test->param_value;

	ASSERT_RETURN_PROBED(test, return_probe('r', host->symbol));
	put_to_sleep(test, host, 1);
	EXPECT_VISIT(test, host, doze, NULL, "rR");
	EXPECT_WAKING(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&test_kretprobe('r')->entries), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&test_kretprobe('r')->returns), 2);
	KUNIT_EXPECT_EQ(test, test_kretprobe('r')->rp.nmissed, 0);
}

static int migrate(void *unused)
{
	unsigned int other = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());

	return set_cpus_allowed_ptr(current, cpumask_of(other)) ? 0 : VISITED;
}

static int note_cpu(struct test_kretprobe *p, struct kretprobe_instance *ri, struct pt_regs *regs)
{
	p->data = smp_processor_id();
	return 0;
}

static void compare_cpu(struct test_kretprobe *p, struct kretprobe_instance *ri,
			struct pt_regs *regs)
{
	if (p->data == smp_processor_id())
		note('!');
}

/* An instance that comes back on another CPU is as good as any. */
static void probed_function_migrates(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = return_probe('r', host->symbol);

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	r->maxactive = 1;
	test_kretprobe('r')->on_entry = note_cpu;
	test_kretprobe('r')->on_return = compare_cpu;
	ASSERT_RETURN_PROBED(test, r);
	for (int i = 0; i < 5; i++) {
		EXPECT_VISIT(test, host, migrate, NULL, "rR");
		KUNIT_EXPECT_EQ(test, migrate(NULL), VISITED);
	}
	KUNIT_EXPECT_EQ(test, r->nmissed, 0);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

static bool is_seen(const struct host *host)
{
	clear_journal();
	kprobes_test_visit(host, be_inside, NULL);
	return !strcmp(journal, "rR");
}

/* A while after it has ended, its instances are free again. */
static void task_ends_in_a_probed_function(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = return_probe('r', host->symbol);
	unsigned long end = jiffies + PATIENCE;

	r->maxactive = 1;
	ASSERT_RETURN_PROBED(test, r);
	for (int i = 0; i < 3; i++) {
		send(test, host, end_inside);
		EXPECT_WAKING(test);
		while (!is_seen(host) && time_before(jiffies, end))
			usleep_range(100, 200);
		KUNIT_EXPECT_STREQ(test, journal, "rR");
		KUNIT_EXPECT_EQ(test, atomic_read(&test_kretprobe('r')->entries), 2 * (i + 1));
		KUNIT_EXPECT_EQ(test, atomic_read(&test_kretprobe('r')->returns), i + 1);
	}
}

/* A number that the caller gives is that of instances, no more and no less. */
static void maxactive_is_kept(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = return_probe('r', host->symbol);

	r->maxactive = 12;
	ASSERT_RETURN_PROBED(test, r);
	for (int i = 1; i <= 3; i++) {
		put_to_sleep(test, host, 17);
		EXPECT_WAKING(test);
		KUNIT_EXPECT_EQ(test, r->nmissed, 5 * i);
		KUNIT_EXPECT_EQ(test, atomic_read(&test_kretprobe('r')->entries), 12 * i);
		KUNIT_EXPECT_EQ(test, atomic_read(&test_kretprobe('r')->returns), 12 * i);
	}
	put_to_sleep(test, host, 12);
	EXPECT_WAKING(test);
	KUNIT_EXPECT_EQ(test, r->nmissed, 15);
}

/*
 * Without such a number there are enough, at the latest when as many have been
 * needed before. Making more takes a moment, which a task that comes to sleep
 * does not give.
 */
static void instances_become_more(struct kunit *test)
{
	unsigned int initial = max(10, 2 * num_possible_cpus());
	const struct host *host = test->param_value;
	struct kretprobe *r = return_probe('r', host->symbol);
	int missed = 0;

	if (IS_ENABLED(CONFIG_KRETPROBE_ON_RETHOOK) || initial > ARRAY_SIZE(sleepers) / 3)
		kunit_skip(test, "there are as many as there will be");
	ASSERT_RETURN_PROBED(test, r);
	for (unsigned int i = 0; i < ARRAY_SIZE(sleepers); i++) {
		send(test, host, sleep_inside);
		if (r->nmissed != missed)
			msleep(20);
		missed = r->nmissed;
	}
	EXPECT_WAKING(test);
	KUNIT_EXPECT_LT(test, missed, 10);

	atomic_set(&test_kretprobe('r')->returns, 0);
	put_to_sleep(test, host, ARRAY_SIZE(sleepers));
	EXPECT_WAKING(test);
	KUNIT_EXPECT_EQ(test, r->nmissed, missed);
	KUNIT_EXPECT_EQ(test, atomic_read(&test_kretprobe('r')->returns), ARRAY_SIZE(sleepers));
}

static void call_in_flight_at_registration_is_not_seen(struct kunit *test)
{
	const struct host *host = test->param_value;

	put_to_sleep(test, host, 2);
	ASSERT_RETURN_PROBED(test, return_probe('r', host->symbol));
	EXPECT_VISIT(test, host, be_inside, NULL, "rR");
	EXPECT_WAKING(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&test_kretprobe('r')->returns), 1);
}

static atomic_t late_returns;

static int count_late_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	atomic_inc(&late_returns);
	return 0;
}

static void destroy(void *rp)
{
	unregister_kretprobe(rp);
	memset(rp, 0x5a, sizeof(struct kretprobe));
	kfree(rp);
}

static struct kretprobe *create(struct kunit *test, const struct host *host, int maxactive)
{
	struct kretprobe *rp = kzalloc(sizeof(*rp), GFP_KERNEL);
	int err;

	KUNIT_ASSERT_NOT_NULL(test, rp);
	rp->kp.symbol_name = host->symbol;
	rp->handler = count_late_return;
	rp->maxactive = maxactive;
	rp->data_size = 100;
	err = register_kretprobe(rp);
	if (err)
		kfree(rp);
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, destroy, rp), 0);
	return rp;
}

/* The memory of a return probe is its owner's at once, even if calls are in flight. */
static void call_outlives_its_return_probe(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = return_probe('r', host->symbol);

	atomic_set(&late_returns, 0);
	for (unsigned int i = 0; i < 3; i++) {
		struct kretprobe *older, *newer;

		r->kp.addr = NULL;
		older = create(test, host, 0);
		ASSERT_RETURN_PROBED(test, r);
		newer = create(test, host, 2);
		put_to_sleep(test, host, 3);
		KUNIT_EXPECT_EQ(test, newer->nmissed, 1);
		kunit_release_action(test, destroy, older);
		kunit_release_action(test, destroy, newer);
		if (i == 1)
			unregister_kretprobe(r);
		EXPECT_VISIT(test, host, be_inside, NULL, i == 1 ? "" : "rR");
		EXPECT_WAKING(test);
		EXPECT_VISIT(test, host, be_inside, NULL, i == 1 ? "" : "rR");
		KUNIT_EXPECT_EQ(test, atomic_read(&late_returns), 0);
		unregister_kretprobe(r);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&test_kretprobe('r')->returns), 10);
}

static int linger_at_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	linger();
	return 0;
}

static void unregistering_waits_for_return_handlers(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = return_probe('r', place->symbol);

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	for (int entry = 0; entry < 2; entry++) {
		r->kp.addr = NULL;
		r->entry_handler = entry ? linger_at_return : NULL;
		r->handler = entry ? NULL : linger_at_return;
		ASSERT_RETURN_PROBED(test, r);
		begin_lingering(test, place);
		unregister_kretprobe(r);
		end_lingering(test);
	}
}

/**
 * struct hog - A task that gives nobody else its CPU
 * @host:	Where it makes instances run short before.
 * @ready:	It has done so.
 * @done:	It has ended.
 */
static struct hog {
	const struct host *host;
	bool ready;
	bool done;
} hog;

static int be_hog(void *unused)
{
	struct descent descent = { .host = hog.host, .depth = max(10, 2 * num_possible_cpus()) };

	kprobes_test_visit(hog.host, descend, &descent);
	WRITE_ONCE(hog.ready, true);
	mdelay(300);
	WRITE_ONCE(hog.done, true);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

static void unpin_tester(void *unused)
{
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

/*
 * What a return probe that has run short of instances has left to process context is done
 * when it has been unregistered: it is about memory that is freed then. That cannot be while
 * a hog has the CPU.
 */
static void unregistering_waits_for_work(struct kunit *test)
{
	unsigned int cpu = cpumask_last(cpu_online_mask);
	struct kretprobe *r = return_probe('r', HOST->symbol);
	struct task_struct *task;
	unsigned long start;
	bool done, late;

	if (IS_ENABLED(CONFIG_KRETPROBE_ON_RETHOOK) || num_online_cpus() < 2)
		kunit_skip(test, "needs instances that become more, and two CPUs");
	KUNIT_ASSERT_EQ(test, 0, set_cpus_allowed_ptr(current,
						      cpumask_of(cpumask_first(cpu_online_mask))));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, unpin_tester, NULL), 0);
	ASSERT_RETURN_PROBED(test, r);
	hog = (struct hog){ .host = HOST };
	task = kthread_create(be_hog, NULL, "kprobes_hog");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	set_cpus_allowed_ptr(task, cpumask_of(cpu));
	sched_set_fifo(task);
	wake_up_process(task);
	while (!READ_ONCE(hog.ready))
		cpu_relax();
	start = jiffies;
	unregister_kretprobe(r);
	done = READ_ONCE(hog.done);
	late = time_after(jiffies, start + HZ / 2);
	kthread_stop_put(task);
	if (late)
		kunit_skip(test, "others may have got the hog's CPU meanwhile");
	KUNIT_EXPECT_TRUE(test, done);
}

/* ------------------------------------------------------------ missed calls */

static void call_in_handler(struct test_kretprobe *p, struct kretprobe_instance *ri,
			    struct pt_regs *regs)
{
	if (call(TARGET) != TARGET->result)
		note('!');
}

/* What a handler runs into is missed where it is entered, and counted there. */
static void return_handler_calls_a_probed_function(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = return_probe('r', place->symbol);
	struct kretprobe *s = return_probe('s', TARGET->symbol);
	struct kprobe *a = post_probe('a', TARGET->symbol);
	bool same = place->call == TARGET->call;

	s->kp.flags = KPROBE_FLAG_REENTRANT;
	test_kretprobe('r')->on_return = call_in_handler;
	ASSERT_RETURN_PROBED(test, r);
	ASSERT_RETURN_PROBED(test, s);
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, same ? "asrARS" : "rR");
	KUNIT_EXPECT_EQ(test, r->kp.nmissed, same);
	KUNIT_EXPECT_EQ(test, s->kp.nmissed, 1);
	KUNIT_EXPECT_EQ(test, a->nmissed, 1);
	KUNIT_EXPECT_EQ(test, r->nmissed, 0);
	KUNIT_EXPECT_EQ(test, s->nmissed, 0);

	test_kretprobe('r')->on_return = NULL;
	EXPECT_CALL(test, place, same ? "asrARS" : "rR");
	EXPECT_CALL(test, TARGET, same ? "asrARS" : "asAS");
	KUNIT_EXPECT_EQ(test, s->kp.nmissed, 1);
}

/* Return probe 's' is not registered, 't' is, 'u' is disabled; for the others see there. */
static void try_to_change_return_probes(void)
{
	struct kretprobe *s = &test_kretprobe('s')->rp;
	int errors[] = {
		register_kretprobe(s), register_kretprobes(&s, 1),
		disable_kretprobe(&test_kretprobe('t')->rp),
		enable_kretprobe(&test_kretprobe('u')->rp),
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(errors); i++)
		note(errors[i] == -EDEADLK ? '-' : '!');
	try_to_change_probes();
}

static int change_probes_at_entry(struct test_kretprobe *p, struct kretprobe_instance *ri,
				  struct pt_regs *regs)
{
	try_to_change_return_probes();
	return 0;
}

static void change_probes_at_return(struct test_kretprobe *p, struct kretprobe_instance *ri,
				    struct pt_regs *regs)
{
	try_to_change_return_probes();
}

static void return_handler_cannot_change_probes(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *s = return_probe('s', OTHER_TARGET->symbol);
	struct kretprobe *t = return_probe('t', OTHER_TARGET->symbol);
	struct kretprobe *u = return_probe('u', OTHER_TARGET->symbol);
	struct kprobe *d = probe('d', OTHER_TARGET->symbol);

	test_kretprobe('r')->on_entry = change_probes_at_entry;
	test_kretprobe('r')->on_return = change_probes_at_return;
	u->kp.flags = KPROBE_FLAG_DISABLED;
	d->flags = KPROBE_FLAG_DISABLED;
	ASSERT_RETURN_PROBED(test, return_probe('r', place->symbol));
	ASSERT_RETURN_PROBED(test, t);
	ASSERT_RETURN_PROBED(test, u);
	ASSERT_REGISTERED(test, probe('c', OTHER_TARGET->symbol));
	ASSERT_REGISTERED(test, d);
	probe('b', OTHER_TARGET->symbol);

	EXPECT_CALL(test, place, "r--------R--------");
	KUNIT_EXPECT_FALSE(test, is_linked(&s->kp));
	EXPECT_CALL(test, OTHER_TARGET, "ctT");

	ASSERT_RETURN_PROBED(test, s);
	KUNIT_EXPECT_EQ(test, disable_kretprobe(t), 0);
	KUNIT_EXPECT_EQ(test, enable_kretprobe(u), 0);
	EXPECT_CALL(test, OTHER_TARGET, "scuUS");
}

static void interrupt_return_handler(struct test_kretprobe *p, struct kretprobe_instance *ri,
				     struct pt_regs *regs)
{
	be_interrupted();
}

static int interrupt_entry_handler(struct test_kretprobe *p, struct kretprobe_instance *ri,
				   struct pt_regs *regs)
{
	p->data = irqs_disabled();
	if (!p->data)
		be_interrupted();
	return 0;
}

/*
 * An interrupt that lands in a handler and calls a probed function: its return
 * is seen by those that have opted in, the others have missed its entry.
 */
static void return_handler_is_interrupted(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = return_probe('r', host->symbol);
	struct kretprobe *s = return_probe('s', TARGET->symbol);
	struct kretprobe *t = return_probe('t', TARGET->symbol);

	if (!HITS_NEST)
		kunit_skip(test, "no handler interrupts another one");
	prepare_interruption(interrupt);
	s->kp.flags = KPROBE_FLAG_REENTRANT;
	ASSERT_RETURN_PROBED(test, r);
	ASSERT_RETURN_PROBED(test, s);
	ASSERT_RETURN_PROBED(test, t);

	test_kretprobe('r')->on_return = interrupt_return_handler;
	EXPECT_VISIT(test, host, be_inside, NULL, "rRsS");
	expect_interruption(test);
	KUNIT_EXPECT_EQ(test, test_kretprobe('s')->value, (unsigned long)TARGET->result);
	KUNIT_EXPECT_EQ(test, t->kp.nmissed, 1);
	KUNIT_EXPECT_EQ(test, s->kp.nmissed + r->kp.nmissed, 0);

	test_kretprobe('r')->on_return = NULL;
	test_kretprobe('r')->on_entry = interrupt_entry_handler;
	clear_journal();
	KUNIT_EXPECT_EQ(test, kprobes_test_visit(host, be_inside, NULL), VISITED);
	if (test_kretprobe('r')->data) {	/* not in a breakpoint's handler */
		KUNIT_EXPECT_STREQ(test, journal, "rR");
	} else {
		KUNIT_EXPECT_STREQ(test, journal, "rsSR");
		KUNIT_EXPECT_EQ(test, t->kp.nmissed, 2);
	}

	test_kretprobe('r')->on_entry = NULL;
	EXPECT_VISIT(test, host, be_inside, NULL, "rR");
	EXPECT_CALL(test, TARGET, "tsST");
	KUNIT_EXPECT_EQ(test, s->nmissed + t->nmissed + r->nmissed, 0);
}

static int be_interrupted_inside(void *unused)
{
	preempt_disable();
	be_interrupted();
	preempt_enable();
	return VISITED;
}

/* Not inside of a handler, it is just a call. */
static void probed_function_is_interrupted(struct kunit *test)
{
	const struct host *host = test->param_value;

	prepare_interruption(interrupt);
	ASSERT_RETURN_PROBED(test, return_probe('r', host->symbol));
	ASSERT_RETURN_PROBED(test, return_probe('s', TARGET->symbol));
	EXPECT_VISIT(test, host, be_interrupted_inside, NULL, "rsSR");
	expect_interruption(test);
	KUNIT_EXPECT_EQ(test, test_kretprobe('s')->rp.kp.nmissed, 0);
}

#ifndef MODULE
static int become_busy(void *unused)
{
	kprobe_busy_begin();
	return VISITED;
}

/* A return that no handler may be called for is counted at the return. */
static void busy_code_returns(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = return_probe('r', host->symbol);

	ASSERT_RETURN_PROBED(test, r);
	clear_journal();
	KUNIT_EXPECT_EQ(test, kprobes_test_visit(host, become_busy, NULL), VISITED);
	kprobe_busy_end();
	KUNIT_EXPECT_STREQ(test, journal, "r");
	KUNIT_EXPECT_EQ(test, r->nmissed, 1);
	EXPECT_VISIT(test, host, be_inside, NULL, "rR");
}
#else
static void busy_code_returns(struct kunit *test)
{
	kunit_skip(test, "not for modules");
}
#endif

/* ----------------------------------------------------- enabling, disabling */

static void return_probe_is_disabled_and_enabled(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = return_probe('r', place->symbol);

	r->kp.flags = KPROBE_FLAG_DISABLED;
	ASSERT_RETURN_PROBED(test, r);
	for (int i = 0; i < 3; i++) {
		KUNIT_EXPECT_TRUE(test, kprobe_disabled(&r->kp));
		EXPECT_CALL(test, place, "");
		KUNIT_EXPECT_EQ(test, enable_kretprobe(r), 0);
		KUNIT_EXPECT_EQ(test, enable_kretprobe(r), 0);
		KUNIT_EXPECT_FALSE(test, kprobe_disabled(&r->kp));
		EXPECT_CALL(test, place, "rR");
		KUNIT_EXPECT_EQ(test, disable_kretprobe(r), 0);
		KUNIT_EXPECT_EQ(test, disable_kretprobe(r), 0);
	}
	ASSERT_RETURN_PROBED(test, return_probe('s', place->symbol));
	EXPECT_CALL(test, place, "sS");
	unregister_kretprobe(r);
	EXPECT_CALL(test, place, "sS");
	KUNIT_EXPECT_EQ(test, enable_kretprobe(r), -EINVAL);
	KUNIT_EXPECT_EQ(test, disable_kretprobe(r), -EINVAL);
}

/* ------------------------------------------------- registering and refusals */

static void leave_return_results(struct kretprobe *rp)
{
	leave_results(&rp->kp);
	rp->nmissed = 1815;
}

static void expect_return_untouched(struct kunit *test, const struct kretprobe *rp,
				    const struct kretprobe *given, int line)
{
	expect_untouched(test, &rp->kp, &given->kp, line);
	KUNIT_EXPECT_MEMEQ_MSG(test, (const void *)rp + sizeof(rp->kp),
			       (const void *)given + sizeof(rp->kp),
			       sizeof(*rp) - sizeof(rp->kp), "at line %d", line);
	KUNIT_EXPECT_TRUE_MSG(test, rp->handler == given->handler, "at line %d", line);
	KUNIT_EXPECT_TRUE_MSG(test, rp->entry_handler == given->entry_handler, "at line %d",
			      line);
	KUNIT_EXPECT_EQ_MSG(test, rp->maxactive, given->maxactive, "at line %d", line);
	KUNIT_EXPECT_EQ_MSG(test, rp->data_size, given->data_size, "at line %d", line);
}

static void expect_return_refused(struct kunit *test, struct kretprobe *rp, int err, int line)
{
	struct kretprobe given;

	leave_return_results(rp);
	memcpy(&given, rp, sizeof(given));
	KUNIT_EXPECT_EQ_MSG(test, register_kretprobe(rp), err, "at line %d", line);
	expect_return_untouched(test, rp, &given, line);
}

#define EXPECT_RETURN_UNTOUCHED(test, rp, given)	\
	expect_return_untouched(test, rp, given, __LINE__)
#define EXPECT_RETURN_REFUSED(test, rp, err)		\
	expect_return_refused(test, rp, err, __LINE__)

static void return_probe_has_an_address(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = return_probe('r', NULL);
	struct kretprobe *s = return_probe('s', NULL);

	EXPECT_RETURN_REFUSED(test, r, -EINVAL);
	r->kp.addr = (kprobe_opcode_t *)text(place);
	r->kp.symbol_name = place->symbol;
	EXPECT_RETURN_REFUSED(test, r, -EINVAL);
	r->kp.symbol_name = NULL;
	ASSERT_RETURN_PROBED(test, r);
	KUNIT_EXPECT_TRUE(test, is_linked(&r->kp));
	KUNIT_EXPECT_TRUE(test, r->kp.flags & KPROBE_FLAG_ON_FUNC_ENTRY);

	/* What it is set to means the same function. */
	s->kp.addr = r->kp.addr;
	ASSERT_RETURN_PROBED(test, s);
	KUNIT_EXPECT_PTR_EQ(test, s->kp.addr, r->kp.addr);
	EXPECT_CALL(test, place, "srRS");
}

static void only_entries_are_return_probed(struct kunit *test)
{
	struct kretprobe *r = return_probe('r', NULL);
	unsigned long entry = (unsigned long)text(TRACED);

	OPTIMIZER_HIDE_VAR(entry);	/* no address inside of it in any table */
	for (unsigned int offset = 17; offset < 25; offset++) {
		r->kp.addr = (kprobe_opcode_t *)(entry + offset);
		EXPECT_RETURN_REFUSED(test, r, -EINVAL);
		r->kp.addr = (kprobe_opcode_t *)entry;
		r->kp.offset = offset;
		EXPECT_RETURN_REFUSED(test, r, -EINVAL);
		r->kp.offset = 0;
	}
	EXPECT_CALL(test, TRACED, "");
}

/**
 * struct bad_return_probe - A return probe that is refused
 * @desc:	Why.
 * @symbol:	Of it.
 * @offset:	Of it.
 * @data_size:	Of it.
 * @maxactive:	Of it.
 * @err:	The result.
 */
struct bad_return_probe {
	const char *desc;
	const char *symbol;
	unsigned int offset;
	size_t data_size;
	int maxactive;
	int err;
};

static const struct bad_return_probe bad_return_probes[] = {
	{ "unknown symbol", "kprobes_test_no_such_function", .err = -ENOENT },
	{ "neither symbol nor address", NULL, .err = -EINVAL },
	{ "blacklisted function", "kprobes_test_blacklisted", .err = -EINVAL },
	{ "not an entry", "mktime64", .offset = 24, .err = -EINVAL },
	{ "too much data", "mktime64", .data_size = KRETPROBE_MAX_DATA_SIZE + 1, .err = -E2BIG },
	{ "very much data", "mktime64", .data_size = SIZE_MAX, .err = -E2BIG },
	{ "very many instances", "mktime64", .maxactive = INT_MAX, .err = -ENOMEM },
#ifdef CONFIG_X86_64
	{ "does not return to its caller", "__switch_to", .err = -EINVAL },
#endif
};

KUNIT_ARRAY_PARAM_DESC(bad_return_probe, bad_return_probes, desc);

static void bad_return_probe_is_refused(struct kunit *test)
{
	const struct bad_return_probe *bad = test->param_value;
	struct kretprobe *r = return_probe('r', bad->symbol);

	r->kp.offset = bad->offset;
	r->data_size = bad->data_size;
	r->maxactive = bad->maxactive;
	EXPECT_RETURN_REFUSED(test, r, bad->err);
	r->kp.flags = KPROBE_FLAG_DISABLED;
	EXPECT_RETURN_REFUSED(test, r, bad->err);
	EXPECT_CALL(test, TRACED, "");
}

static void return_batch_is_registered(struct kunit *test)
{
	struct kretprobe *all[ARRAY_SIZE(places) + 1];
	unsigned int n, i;

	for (n = 0; n < ARRAY_SIZE(places); n++)
		all[n] = return_probe('r' + n, places[n].symbol);
	all[n++] = return_probe('v', TRACED->symbol);

	for (int round = 0; round < 2; round++) {
		KUNIT_ASSERT_EQ(test, register_kretprobes(all, n), 0);
		EXPECT_CALL(test, TARGET, "rR");
		EXPECT_CALL(test, TRACED, "vsSV");
		EXPECT_CALL(test, OTHER_TARGET, "tT");
		EXPECT_CALL(test, OTHER_TRACED, "uU");

		unregister_kretprobes(all, n);
		for (i = 0; i < ARRAY_SIZE(places); i++)
			EXPECT_CALL(test, &places[i], "");
		for (i = 0; i < n; i++) {
			KUNIT_EXPECT_FALSE(test, is_linked(&all[i]->kp));
			all[i]->kp.addr = NULL;
		}
	}
}

static void return_batch_needs_probes(struct kunit *test)
{
	struct kretprobe *r = return_probe('r', TARGET->symbol);

	KUNIT_EXPECT_EQ(test, register_kretprobes(&r, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, register_kretprobes(&r, -1), -EINVAL);
	KUNIT_EXPECT_EQ(test, register_kretprobes(NULL, 0), -EINVAL);
	KUNIT_EXPECT_NULL(test, r->kp.addr);
	EXPECT_CALL(test, TARGET, "");

	ASSERT_RETURN_PROBED(test, r);
	unregister_kretprobes(&r, 0);
	unregister_kretprobes(&r, -1);
	unregister_kretprobes(NULL, 0);
	EXPECT_CALL(test, TARGET, "rR");
}

static void return_batch_is_refused(struct kunit *test, const struct bad_return_probe *bad,
				    unsigned int position)
{
	struct kretprobe *all[3], given[ARRAY_SIZE(all)];
	unsigned int n = ARRAY_SIZE(all), i;

	for (i = 0; i < n - 1; i++)
		all[i < position ? i : i + 1] = return_probe('r' + i, places[i].symbol);
	all[position] = return_probe('t', bad->symbol);
	all[position]->kp.offset = bad->offset;
	all[position]->data_size = bad->data_size;
	all[position]->maxactive = bad->maxactive;
	for (i = 0; i < n; i++) {
		all[i]->kp.addr = NULL;
		all[i]->kp.flags = KPROBE_FLAG_REENTRANT;
		leave_return_results(all[i]);
		memcpy(&given[i], all[i], sizeof(given[i]));
	}

	KUNIT_EXPECT_EQ(test, register_kretprobes(all, n), bad->err);
	for (i = 0; i < n; i++)
		EXPECT_RETURN_UNTOUCHED(test, all[i], &given[i]);
	EXPECT_CALL(test, TARGET, "uU");
	EXPECT_CALL(test, TRACED, "");

	/* Without the bad one it works. */
	for (i = position; i < n - 1; i++)
		all[i] = all[i + 1];
	KUNIT_EXPECT_EQ(test, register_kretprobes(all, n - 1), 0);
	EXPECT_CALL(test, TARGET, "ruUR");
	EXPECT_CALL(test, TRACED, "sS");
	unregister_kretprobes(all, n - 1);
}

static void return_batch_is_all_or_nothing(struct kunit *test)
{
	ASSERT_RETURN_PROBED(test, return_probe('u', TARGET->symbol));
	for (unsigned int position = 0; position < 3; position++)
		return_batch_is_refused(test, test->param_value, position);
}

static void first_error_in_a_return_array_counts(struct kunit *test)
{
	const struct bad_return_probe *bad = bad_return_probes;
	struct kretprobe *all[3] = { return_probe('r', TARGET->symbol) };

	for (unsigned int i = 0; i < ARRAY_SIZE(bad_return_probes); i++) {
		for (unsigned int j = 0; j < ARRAY_SIZE(bad_return_probes); j++) {
			if (i == j)
				continue;
			for (unsigned int k = 1; k <= 2; k++) {
				unsigned int n = k == 1 ? i : j;

				all[k] = return_probe('r' + k, bad[n].symbol);
				all[k]->kp.offset = bad[n].offset;
				all[k]->data_size = bad[n].data_size;
				all[k]->maxactive = bad[n].maxactive;
			}
			KUNIT_EXPECT_EQ_MSG(test, register_kretprobes(all, 3), bad[i].err,
					    "%s, then %s", bad[i].desc, bad[j].desc);
		}
	}
	EXPECT_CALL(test, TARGET, "");
}

/* What was made for it is given back. */
static void refused_return_probe_leaves_no_instances(struct kunit *test)
{
	struct kretprobe *r = return_probe('r', TARGET->symbol);
	struct kretprobe *s = return_probe('s', "kprobes_test_blacklisted");
	struct kretprobe *both[] = { r, s };

	if (!OWN_RETURN_PROBES)
		kunit_skip(test, "rethook has them");
	ASSERT_REGISTERED(test, probe('a', "objpool_init"));
	ASSERT_REGISTERED(test, probe('b', "objpool_fini"));
	clear_journal();
	KUNIT_EXPECT_EQ(test, register_kretprobes(both, 2), -EINVAL);
	KUNIT_EXPECT_STREQ(test, journal, "aabb");
	ASSERT_RETURN_PROBED(test, r);
	KUNIT_EXPECT_STREQ(test, journal, "aabba");
	unregister_kretprobe(r);
	KUNIT_EXPECT_STREQ(test, journal, "aabbab");
}

/* The warning is that of probe_is_registered_once(). */
static void return_probe_is_registered_once(struct kunit *test)
{
	struct kretprobe *r = return_probe('r', TARGET->symbol);
	struct kretprobe *s = return_probe('s', TARGET->symbol);
	struct kretprobe *t = return_probe('t', TRACED->symbol);
	struct kretprobe *with_registered[] = { s, r }, *with_double[] = { s, t, s };
	struct kretprobe before, given = *s, other = *t;

	ASSERT_RETURN_PROBED(test, r);
	before = *r;
	KUNIT_EXPECT_EQ(test, register_kretprobe(r), -EINVAL);
	KUNIT_EXPECT_EQ(test, register_kretprobes(with_registered, 2), -EINVAL);
	KUNIT_EXPECT_MEMEQ(test, r, &before, sizeof(before));
	EXPECT_RETURN_UNTOUCHED(test, s, &given);
	EXPECT_CALL(test, TARGET, "rR");

	KUNIT_EXPECT_EQ(test, register_kretprobes(with_double, 3), -EINVAL);
	EXPECT_RETURN_UNTOUCHED(test, s, &given);
	EXPECT_RETURN_UNTOUCHED(test, t, &other);
	EXPECT_CALL(test, TARGET, "rR");
	EXPECT_CALL(test, TRACED, "");

	unregister_kretprobe(r);
	EXPECT_CALL(test, TARGET, "");
}

static void unregistered_return_probe_is_left_alone(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = return_probe('r', place->symbol);
	struct kretprobe *s = return_probe('s', place->symbol);
	struct kretprobe *t = return_probe('t', place->symbol);
	struct kretprobe *all[] = { r, s, t };
	struct kretprobe given = *r;

	r->kp.addr = (kprobe_opcode_t *)text(OTHER_TARGET);
	unregister_kretprobe(r);
	KUNIT_EXPECT_MEMEQ(test, r, &given, sizeof(given));
	unregister_kretprobe(r);
	KUNIT_EXPECT_MEMEQ(test, r, &given, sizeof(given));

	/* Where another one is, and in an array with some that are registered. */
	ASSERT_RETURN_PROBED(test, s);
	ASSERT_RETURN_PROBED(test, t);
	r->kp.addr = s->kp.addr;
	unregister_kretprobe(r);
	KUNIT_EXPECT_MEMEQ(test, r, &given, sizeof(given));
	EXPECT_CALL(test, place, "tsST");
	unregister_kretprobes(all, ARRAY_SIZE(all));
	KUNIT_EXPECT_MEMEQ(test, r, &given, sizeof(given));
	EXPECT_CALL(test, place, "");
	unregister_kretprobe(t);
	KUNIT_EXPECT_NULL(test, t->kp.addr);

	/* One that has been refused. */
	r->data_size = KRETPROBE_MAX_DATA_SIZE + 1;
	KUNIT_EXPECT_EQ(test, register_kretprobe(r), -E2BIG);
	unregister_kretprobe(r);
	KUNIT_EXPECT_NULL(test, r->kp.addr);
}

#ifdef CONFIG_FAILSLAB
static void memory_runs_out_for_return_probes(struct kunit *test)
{
	struct kretprobe *all[] = {
		return_probe('r', TARGET->symbol), return_probe('s', TRACED->symbol),
		return_probe('t', OTHER_TRACED->symbol),
	};
	struct kretprobe given[ARRAY_SIZE(all)];
	bool failed = true;
	unsigned int i;
	int err;

	need_failing_allocations(test);
	if (!OWN_RETURN_PROBES)
		kunit_skip(test, "rethook warns of that");
	ASSERT_RETURN_PROBED(test, return_probe('u', TARGET->symbol));
	for (unsigned int nth = 1; failed; nth++) {
		KUNIT_ASSERT_LT(test, nth, 1000);
		for (i = 0; i < ARRAY_SIZE(all); i++) {
			all[i]->kp.addr = NULL;
			all[i]->kp.flags = 0;
			leave_return_results(all[i]);
			memcpy(&given[i], all[i], sizeof(given[i]));
		}
		fail_allocation(nth);
		err = register_kretprobes(all, ARRAY_SIZE(all));
		failed = has_failed();
		EXPECT_CALL(test, TARGET, err ? "uU" : "ruUR");
		EXPECT_CALL(test, TRACED, err ? "" : "sS");
		EXPECT_CALL(test, OTHER_TRACED, err ? "" : "tT");
		if (!err) {	/* there are allocations that we can do without */
			unregister_kretprobes(all, ARRAY_SIZE(all));
			continue;
		}
		KUNIT_EXPECT_TRUE(test, failed);
		KUNIT_EXPECT_EQ_MSG(test, err, -ENOMEM, "allocation %u", nth);
		for (i = 0; i < ARRAY_SIZE(all); i++)
			EXPECT_RETURN_UNTOUCHED(test, all[i], &given[i]);
	}
}

static void memory_runs_out_when_unregistering_return_probes(struct kunit *test)
{
	struct kretprobe *all[] = {
		return_probe('r', TARGET->symbol), return_probe('s', TRACED->symbol),
	};
	bool failed = true;

	need_failing_allocations(test);
	for (unsigned int nth = 1; failed; nth++) {
		KUNIT_ASSERT_LT(test, nth, 1000);
		all[0]->kp.addr = NULL;
		all[1]->kp.addr = NULL;
		KUNIT_ASSERT_EQ(test, register_kretprobes(all, 2), 0);
		fail_allocation(nth);
		unregister_kretprobes(all, 2);
		failed = has_failed();
		EXPECT_CALL(test, TARGET, "");
		EXPECT_CALL(test, TRACED, "");
	}
}
#else
static void memory_runs_out_for_return_probes(struct kunit *test)
{
	kunit_skip(test, "allocations cannot be made to fail");
}

static void memory_runs_out_when_unregistering_return_probes(struct kunit *test)
{
	kunit_skip(test, "allocations cannot be made to fail");
}
#endif

/* ------------------------------------------------------------- under load */

/*
 * Two return probes that all tasks hit; how often they have, how often these calls have
 * returned, and how often a handler was not told whose it is.
 */
static struct kretprobe owned[2];
static atomic_t owned_entries, owned_returns, orphans;

static void check_owner(struct kretprobe_instance *ri)
{
	const struct kretprobe *rp = get_kretprobe(ri);

	if (rp != &owned[0] && rp != &owned[1])
		atomic_inc(&orphans);
}

static int enter_owned(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	atomic_inc(&owned_entries);
	check_owner(ri);
	return 0;
}

static int leave_owned(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	atomic_inc(&owned_returns);
	check_owner(ri);
	return 0;
}

static void unregister_owned(void *unused)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(owned); i++)
		unregister_kretprobe(&owned[i]);
}

static void prepare_owned(struct kunit *test, const char * const *symbols)
{
	memset(owned, 0, sizeof(owned));
	atomic_set(&owned_entries, 0);
	atomic_set(&owned_returns, 0);
	atomic_set(&orphans, 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(owned); i++) {
		owned[i].kp.symbol_name = symbols[i];
		owned[i].entry_handler = enter_owned;
		owned[i].handler = leave_owned;
	}
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, unregister_owned, NULL), 0);
}

/* So often that a call comes at each moment of their coming and going. */
static void cycle_owned(struct kunit *test, unsigned int cycles)
{
	struct kretprobe *both[] = { &owned[0], &owned[1] };

	while (cycles--) {
		both[0]->kp.addr = NULL;
		both[1]->kp.addr = NULL;
		KUNIT_ASSERT_EQ(test, register_kretprobes(both, 2), 0);
		usleep_range(100, 1000);
		if (cycles % 2) {
			unregister_kretprobes(both, 2);
		} else {
			unregister_kretprobe(both[0]);
			unregister_kretprobe(both[1]);
		}
	}
}

static u64 call_both_places(u64 arg)
{
	return call_mktime64(arg) + kprobes_test_target(arg);
}

/* As long as a site is armed its return probe has an owner, which comes to handlers. */
static void return_probes_come_and_go_under_load(struct kunit *test)
{
	static const char * const symbols[] = { "mktime64", "kprobes_test_target" };
	u64 result = TARGET->result + TRACED->result;

	prepare_owned(test, symbols);
	begin_load(test, call_both_places, result, result);
	cycle_owned(test, 100);
	expect_load(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&orphans), 0);
	KUNIT_EXPECT_GT(test, atomic_read(&owned_entries), 0);
	KUNIT_EXPECT_LE(test, atomic_read(&owned_returns), atomic_read(&owned_entries));
}

static void do_irq_work(struct irq_work *work)
{
}

static struct irq_work test_irq_works[8] = {
	[0 ... 7] = IRQ_WORK_INIT(do_irq_work),
};

/* What calls of a stopped return probe may need to get rid of their instances. */
static u64 queue_irq_work(u64 arg)
{
	LLIST_HEAD(list);
	struct llist_node node;

	llist_add_batch(&node, &node, &list);
	guard(preempt)();
	irq_work_queue(&test_irq_works[smp_processor_id() % ARRAY_SIZE(test_irq_works)]);
	return arg;
}

/* There is no end of hits in hits, and the instances suffice. */
static void what_gives_instances_back_is_probed(struct kunit *test)
{
	static const char * const symbols[] = { "llist_add_batch", "irq_work_queue" };
	struct kretprobe *r = return_probe('r', HOST->symbol);

	prepare_owned(test, symbols);
	begin_load(test, queue_irq_work, ARG, ARG);
	cycle_owned(test, 100);
	KUNIT_EXPECT_EQ(test, owned[0].nmissed + owned[1].nmissed, 0);

	/* Also when it is another one that has been stopped. */
	owned[0].kp.addr = NULL;
	owned[1].kp.addr = NULL;
	ASSERT_RETURN_PROBED(test, &owned[0]);
	ASSERT_RETURN_PROBED(test, &owned[1]);
	for (unsigned int i = 0; i < 5; i++) {
		r->kp.addr = NULL;
		ASSERT_RETURN_PROBED(test, r);
		put_to_sleep(test, HOST, 8);
		unregister_kretprobe(r);
		EXPECT_WAKING(test);
	}
	KUNIT_EXPECT_EQ(test, owned[0].nmissed + owned[1].nmissed, 0);
	expect_load(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&orphans), 0);
	kunit_release_action(test, unregister_owned, NULL);
	for (unsigned int i = 0; i < ARRAY_SIZE(test_irq_works); i++)
		irq_work_sync(&test_irq_works[i]);
}

/* ------------------------------------------------------------ stack traces */

/* By frame pointers, x86 misses the caller at a function's entry. */
#if defined(CONFIG_STACKTRACE) && \
	defined(CONFIG_ARCH_CORRECT_STACKTRACE_ON_KRETPROBE) && \
	!(defined(CONFIG_X86) && !defined(CONFIG_UNWINDER_ORC))
#define CAN_TRACE	1

static void save(struct trace *trace)
{
	trace->length = stack_trace_save(trace->entries, TRACE_LENGTH, 0);
}
#else
#define CAN_TRACE	0

static void save(struct trace *trace)
{
}
#endif

static void need_traces(struct kunit *test)
{
	if (!CAN_TRACE)
		kunit_skip(test, "stack traces do not show all callers");
}

static int save_inside(void *trace)
{
	save(trace);
	return VISITED;
}

static int save_at_entry(struct test_kretprobe *p, struct kretprobe_instance *ri,
			 struct pt_regs *regs)
{
	save(&p->entry_trace);
	return 0;
}

static void save_at_return(struct test_kretprobe *p, struct kretprobe_instance *ri,
			   struct pt_regs *regs)
{
	save(&p->return_trace);
}

/* So that all traces come the same way, regardless of who makes them. */
static noinline __noclone int kprobes_test_walk(const struct host *host,
						int (*inside)(void *data), void *data)
{
	int result = kprobes_test_visit(host, inside, data);

	OPTIMIZER_HIDE_VAR(result);
	return result;
}

/* Where the caller of the host is in a trace. */
static unsigned int seek_visitor(struct kunit *test, const struct trace *trace, const char *what)
{
	unsigned int i = 0;

	while (i < trace->length && !is_in(trace->entries[i], "kprobes_test_visit"))
		i++;
	if (i < trace->length)
		return i;
	for (i = 0; i < trace->length; i++)
		kunit_info(test, "%pS\n", (void *)trace->entries[i]);
	KUNIT_FAIL_AND_ABORT(test, "%s: nothing of the caller", what);
	return 0;
}

static bool in_same_function(unsigned long a, unsigned long b)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol_no_offset(name, b);
	return is_in(a, strim(strreplace(name, '[', '\0')));
}

/* Does a trace show the same callers of the host as the one of an unprobed host? */
static void expect_callers(struct kunit *test, const struct trace *trace,
			   const struct trace *unprobed, const char *what)
{
	unsigned int i = seek_visitor(test, trace, what);
	unsigned int j = seek_visitor(test, unprobed, "unprobed");

	KUNIT_EXPECT_EQ_MSG(test, trace->entries[i], unprobed->entries[j], "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, trace->length - i, unprobed->length - j, "%s", what);
	while (++i < trace->length && ++j < unprobed->length)
		KUNIT_EXPECT_TRUE_MSG(test, in_same_function(trace->entries[i],
							     unprobed->entries[j]),
				      "%s: %pS instead of %pS", what,
				      (void *)trace->entries[i], (void *)unprobed->entries[j]);
}

/* And nothing else above them? */
static void expect_same_trace(struct kunit *test, const struct trace *trace,
			      const struct trace *unprobed, const char *what)
{
	unsigned int same = seek_visitor(test, unprobed, "unprobed");

	expect_callers(test, trace, unprobed, what);
	KUNIT_ASSERT_EQ_MSG(test, trace->length, unprobed->length, "%s", what);
	for (unsigned int i = 0; i < same; i++)
		KUNIT_EXPECT_TRUE_MSG(test, in_same_function(trace->entries[i],
							     unprobed->entries[i]),
				      "%s: %pS instead of %pS", what,
				      (void *)trace->entries[i], (void *)unprobed->entries[i]);
}

static struct trace unprobed_trace, trace_inside;

static struct kretprobe *tracing_probe(char name, const char *symbol)
{
	test_kretprobe(name)->on_entry = save_at_entry;
	test_kretprobe(name)->on_return = save_at_return;
	return return_probe(name, symbol);
}

static void expect_real_callers(struct kunit *test, char name)
{
	if (!CAN_TRACE)
		return;
	/* Elsewhere the caller may still be in a register, which is not looked at. */
	if (IS_ENABLED(CONFIG_X86_64))
		expect_callers(test, &test_kretprobe(name)->entry_trace, &unprobed_trace,
			       "at the entry");
	expect_callers(test, &test_kretprobe(name)->return_trace, &unprobed_trace,
		       "at the return");
}

static void real_callers_are_in_traces(struct kunit *test)
{
	const struct host *host = test->param_value;

	need_traces(test);
	kprobes_test_walk(host, save_inside, &unprobed_trace);
	for (char name = 'r'; name <= 't'; name++)
		ASSERT_RETURN_PROBED(test, tracing_probe(name, host->symbol));
	KUNIT_EXPECT_EQ(test, kprobes_test_walk(host, save_inside, &trace_inside), VISITED);
	expect_same_trace(test, &trace_inside, &unprobed_trace, "inside");
	for (char name = 'r'; name <= 't'; name++)
		expect_real_callers(test, name);
}

/* Another function returns for the probed one, as after a jump at its end. */
static int go_to_host(struct test_probe *p, struct pt_regs *regs)
{
	instruction_pointer_set(regs, (unsigned long)kprobes_test_host);
	return 1;
}

static void real_callers_are_in_traces_on_a_changed_path(struct kunit *test)
{
	need_traces(test);
	kprobes_test_walk(HOST, save_inside, &unprobed_trace);
	test_probe('a')->act = go_to_host;
	ASSERT_REGISTERED(test, probe('a', TRACED_HOST->symbol));
	ASSERT_RETURN_PROBED(test, tracing_probe('r', TRACED_HOST->symbol));
	ASSERT_RETURN_PROBED(test, tracing_probe('s', HOST->symbol));
	KUNIT_EXPECT_EQ(test, kprobes_test_walk(TRACED_HOST, save_inside, &trace_inside), VISITED);
	KUNIT_EXPECT_STREQ(test, journal, "rasSR");
	expect_same_trace(test, &trace_inside, &unprobed_trace, "inside");
	expect_real_callers(test, 'r');
	expect_real_callers(test, 's');
}

static struct trace trace_in_interrupt;

static enum hrtimer_restart interrupt_and_trace(struct hrtimer *timer)
{
	save(&trace_in_interrupt);
	return interrupt(timer);
}

static void real_callers_are_in_traces_of_interrupts(struct kunit *test)
{
	const struct host *host = test->param_value;

	need_traces(test);
	prepare_interruption(interrupt_and_trace);
	kprobes_test_walk(host, save_inside, &unprobed_trace);
	ASSERT_RETURN_PROBED(test, return_probe('r', host->symbol));
	ASSERT_RETURN_PROBED(test, return_probe('s', host->symbol));
	test_kretprobe('r')->on_return = interrupt_return_handler;
	KUNIT_EXPECT_EQ(test, kprobes_test_walk(host, be_interrupted_inside, NULL), VISITED);
	expect_interruption(test);
	expect_callers(test, &trace_in_interrupt, &unprobed_trace, "in an interrupt of a handler");
	test_kretprobe('r')->on_return = NULL;
	KUNIT_EXPECT_EQ(test, kprobes_test_walk(host, be_interrupted_inside, NULL), VISITED);
	expect_interruption(test);
	expect_callers(test, &trace_in_interrupt, &unprobed_trace, "in an interrupt");
}

#if CAN_TRACE
/* On one CPU only the task that asks runs there. */
#ifdef CONFIG_SMP
#define RUNS(task)	READ_ONCE((task)->on_cpu)
#else
#define RUNS(task)	((task) == current)
#endif

static bool is_asleep(struct task_struct *task)
{
	return READ_ONCE(task->__state) == TASK_UNINTERRUPTIBLE && !RUNS(task);
}

static void save_sleeper(struct kunit *test, const struct host *host, struct trace *trace)
{
	struct task_struct *task = send(test, host, sleep_inside);
	unsigned long end = jiffies + PATIENCE;

	while (!is_asleep(task) && time_before(jiffies, end))
		usleep_range(100, 200);
	KUNIT_ASSERT_TRUE(test, is_asleep(task));
	trace->length = stack_trace_save_tsk(task, trace->entries, TRACE_LENGTH, 0);
}

#if defined(CONFIG_HAVE_RELIABLE_STACKTRACE) && !defined(MODULE)
static void expect_reliable_trace(struct kunit *test, struct task_struct *task)
{
	int length = stack_trace_save_tsk_reliable(task, trace_inside.entries, TRACE_LENGTH);

	KUNIT_ASSERT_GT(test, length, 0);
	trace_inside.length = length;
	expect_callers(test, &trace_inside, &unprobed_trace, "reliably");
}
#else
static void expect_reliable_trace(struct kunit *test, struct task_struct *task)
{
}
#endif

static void real_callers_are_in_traces_of_other_tasks(struct kunit *test)
{
	const struct host *host = test->param_value;

	save_sleeper(test, host, &unprobed_trace);
	ASSERT_RETURN_PROBED(test, return_probe('r', host->symbol));
	ASSERT_RETURN_PROBED(test, return_probe('s', host->symbol));
	save_sleeper(test, host, &trace_inside);
	expect_same_trace(test, &trace_inside, &unprobed_trace, "sleeping");
	expect_reliable_trace(test, sleepers[1].task);
}
#else
static void real_callers_are_in_traces_of_other_tasks(struct kunit *test)
{
	need_traces(test);
}
#endif

/* ------------------------------------------- beside others who see a return */

#ifdef CONFIG_FPROBE
static struct trace fprobe_trace;

static int fprobe_entered(struct fprobe *fp, unsigned long ip, unsigned long caller,
			  struct pt_regs *regs, void *data)
{
	if (current == tester)
		note('f');
	return 0;
}

static void fprobe_returned(struct fprobe *fp, unsigned long ip, unsigned long caller,
			    struct pt_regs *regs, void *data)
{
	if (current != tester)
		return;
	note(regs_return_value(regs) == VISITED ? 'F' : '!');
	save(&fprobe_trace);
}

/*
 * Not static: of an ftrace_ops in the kernel's own data ftrace keeps the trampoline,
 * and a link in a list, also when it is no longer registered.
 */
static struct fprobe *test_fprobe;

static void remove_fprobe(void *unused)
{
	unregister_fprobe(test_fprobe);
	kfree(test_fprobe);
}

static void add_fprobe(struct kunit *test, const struct host *host)
{
	int err;

	test_fprobe = kzalloc(sizeof(*test_fprobe), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, test_fprobe);
	test_fprobe->entry_handler = fprobe_entered;
	test_fprobe->exit_handler = fprobe_returned;
	err = register_fprobe(test_fprobe, host->symbol, NULL);
	if (err)
		kfree(test_fprobe);
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, remove_fprobe, NULL), 0);
}

/* Which of two is seen depends on the order in which ftrace calls them. */
static void expect_fprobed(struct kunit *test, const char *events, const char *or)
{
	KUNIT_EXPECT_TRUE_MSG(test, !strcmp(journal, events) || !strcmp(journal, or),
			      "\"%s\" instead of \"%s\" or \"%s\"", journal, events, or);
	clear_journal();
	if (!CAN_TRACE)
		return;
	expect_same_trace(test, &trace_inside, &unprobed_trace, "inside");
	expect_callers(test, &fprobe_trace, &unprobed_trace, "in fprobe");
}

/* In either order, each finds what the other one has left in the stack. */
static void fprobe_shares_a_function(struct kunit *test)
{
	kprobes_test_walk(TRACED_HOST, save_inside, &unprobed_trace);
	for (int fprobe_first = 0; fprobe_first < 2; fprobe_first++) {
		if (fprobe_first)
			add_fprobe(test, TRACED_HOST);
		for (char name = 'r'; name <= 's'; name++) {
			test_kretprobe(name)->rp.kp.addr = NULL;
			ASSERT_RETURN_PROBED(test, tracing_probe(name, TRACED_HOST->symbol));
		}
		if (!fprobe_first)
			add_fprobe(test, TRACED_HOST);

		KUNIT_EXPECT_EQ(test, kprobes_test_walk(TRACED_HOST, save_inside, &trace_inside),
				VISITED);
		expect_fprobed(test, "fsrRSF", "srfFRS");
		for (char name = 'r'; name <= 's'; name++)
			expect_real_callers(test, name);

		unregister_kretprobe(&test_kretprobe('r')->rp);
		unregister_kretprobe(&test_kretprobe('s')->rp);
		KUNIT_EXPECT_EQ(test, kprobes_test_walk(TRACED_HOST, save_inside, &trace_inside),
				VISITED);
		expect_fprobed(test, "fF", "fF");
		kunit_release_action(test, remove_fprobe, NULL);
	}
}

/* And with one that is between two return probes. */
static void fprobe_is_between_return_probes(struct kunit *test)
{
	kprobes_test_walk(HOST, save_inside, &unprobed_trace);
	test_probe('a')->act = go_to_host;
	for (int fprobe_first = 0; fprobe_first < 2; fprobe_first++) {
		test_kretprobe('r')->rp.kp.addr = NULL;
		test_kretprobe('s')->rp.kp.addr = NULL;
		test_probe('a')->kp.addr = NULL;
		if (fprobe_first)
			add_fprobe(test, TRACED_HOST);
		ASSERT_REGISTERED(test, probe('a', TRACED_HOST->symbol));
		ASSERT_RETURN_PROBED(test, tracing_probe('r', TRACED_HOST->symbol));
		ASSERT_RETURN_PROBED(test, tracing_probe('s', HOST->symbol));
		if (!fprobe_first)
			add_fprobe(test, TRACED_HOST);

		KUNIT_EXPECT_EQ(test, kprobes_test_walk(TRACED_HOST, save_inside, &trace_inside),
				VISITED);
		expect_fprobed(test, "frasSRF", "rafsSFR");
		for (char name = 'r'; name <= 's'; name++)
			expect_real_callers(test, name);

		unregister_kretprobe(&test_kretprobe('r')->rp);
		unregister_kretprobe(&test_kretprobe('s')->rp);
		unregister_kprobe(&test_probe('a')->kp);
		kunit_release_action(test, remove_fprobe, NULL);
	}
}
#else
static void fprobe_shares_a_function(struct kunit *test)
{
	kunit_skip(test, "no fprobe");
}

static void fprobe_is_between_return_probes(struct kunit *test)
{
	kunit_skip(test, "no fprobe");
}
#endif

static struct kunit_case kretprobes_cases[] = {
	KUNIT_CASE_PARAM(return_is_seen, place_gen_params),
	KUNIT_CASE_PARAM(return_handlers_are_optional, place_gen_params),
	KUNIT_CASE_PARAM(entry_handler_gets_arguments, place_gen_params),
	KUNIT_CASE_PARAM(entry_handler_declines_a_call, place_gen_params),
	KUNIT_CASE_PARAM(return_address_is_known, host_gen_params),
	KUNIT_CASE_PARAM(return_value_is_changed, place_gen_params),
	KUNIT_CASE_PARAM(probed_function_calls_itself, host_gen_params),
	KUNIT_CASE_PARAM(each_call_has_data_of_its_own, host_gen_params),
	KUNIT_CASE(probed_functions_call_each_other),
	KUNIT_CASE_PARAM(return_probes_share_a_function, place_gen_params),
	KUNIT_CASE_PARAM(probes_and_return_probes_share_a_function, place_gen_params),
	KUNIT_CASE_PARAM(path_is_changed_on_the_way_to_a_return, place_gen_params),
	KUNIT_CASE_PARAM(probed_function_sleeps, host_gen_params),
	KUNIT_CASE_PARAM(probed_function_migrates, host_gen_params),
	KUNIT_CASE_PARAM(task_ends_in_a_probed_function, host_gen_params),
	KUNIT_CASE_PARAM(maxactive_is_kept, host_gen_params),
	KUNIT_CASE_PARAM(instances_become_more, host_gen_params),
	KUNIT_CASE_PARAM(call_in_flight_at_registration_is_not_seen, host_gen_params),
	KUNIT_CASE_PARAM(call_outlives_its_return_probe, host_gen_params),
	KUNIT_CASE_PARAM(unregistering_waits_for_return_handlers, place_gen_params),
	KUNIT_CASE(unregistering_waits_for_work),
	KUNIT_CASE_PARAM(return_handler_calls_a_probed_function, place_gen_params),
	KUNIT_CASE_PARAM(return_handler_cannot_change_probes, place_gen_params),
	KUNIT_CASE_PARAM(return_handler_is_interrupted, host_gen_params),
	KUNIT_CASE_PARAM(probed_function_is_interrupted, host_gen_params),
	KUNIT_CASE_PARAM(busy_code_returns, host_gen_params),
	KUNIT_CASE_PARAM(return_probe_is_disabled_and_enabled, place_gen_params),
	KUNIT_CASE_PARAM(return_probe_has_an_address, place_gen_params),
	KUNIT_CASE(only_entries_are_return_probed),
	KUNIT_CASE_PARAM(bad_return_probe_is_refused, bad_return_probe_gen_params),
	KUNIT_CASE(return_batch_is_registered),
	KUNIT_CASE(return_batch_needs_probes),
	KUNIT_CASE_PARAM(return_batch_is_all_or_nothing, bad_return_probe_gen_params),
	KUNIT_CASE(first_error_in_a_return_array_counts),
	KUNIT_CASE(refused_return_probe_leaves_no_instances),
	KUNIT_CASE(return_probe_is_registered_once),
	KUNIT_CASE_PARAM(unregistered_return_probe_is_left_alone, place_gen_params),
	KUNIT_CASE(memory_runs_out_for_return_probes),
	KUNIT_CASE(memory_runs_out_when_unregistering_return_probes),
	KUNIT_CASE_SLOW(return_probes_come_and_go_under_load),
	KUNIT_CASE_SLOW(what_gives_instances_back_is_probed),
	KUNIT_CASE_PARAM(real_callers_are_in_traces, host_gen_params),
	KUNIT_CASE(real_callers_are_in_traces_on_a_changed_path),
	KUNIT_CASE_PARAM(real_callers_are_in_traces_of_interrupts, host_gen_params),
	KUNIT_CASE_PARAM(real_callers_are_in_traces_of_other_tasks, host_gen_params),
	KUNIT_CASE(fprobe_shares_a_function),
	KUNIT_CASE(fprobe_is_between_return_probes),
	{ }
};

static struct kunit_suite kretprobes_suite = {
	.name = "kretprobes",
	.suite_init = start_return_suite,
	.init = start_return_test,
	.exit = end_return_test,
	.test_cases = kretprobes_cases,
};

kunit_test_suite(kretprobes_suite);

#endif /* _TEST_KRETPROBES_H */
