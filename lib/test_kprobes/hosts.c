// SPDX-License-Identifier: GPL-2.0
/* Functions that a test can do something inside. */
#include <linux/compiler.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kallsyms.h>
#include <linux/string.h>

#include "hosts.h"
#include "probes.h"

noinline __noclone int kprobes_test_host(struct raw_notifier_head *chain,
					 unsigned long up, unsigned long down, void *data)
{
	int result = raw_notifier_call_chain(chain, up, data);

	OPTIMIZER_HIDE_VAR(result);	/* no tail call */
	return result;
}

const struct host kpt_hosts[HOSTS] = {
	{ "kprobes_test_host", kprobes_test_host },
	{ "raw_notifier_call_chain_robust", raw_notifier_call_chain_robust },
};

KUNIT_ARRAY_PARAM_DESC(host, kpt_hosts, symbol);

/* Parameters of a test: HOST, TRACED_HOST. */
const void *kpt_host_gen_params(struct kunit *test, const void *prev, char *desc)
{
	return host_gen_params(test, prev, desc);
}

static u8 unprobed_hosts[HOSTS][TEXT_BYTES];

static const void *host_text(unsigned int i)
{
	const void *start = dereference_function_descriptor(kpt_hosts[i].call);

	OPTIMIZER_HIDE_VAR(start);	/* see kpt_text() */
	return start;
}

/* The hosts are not probed. */
void kpt_save_host_text(void)
{
	for (unsigned int i = 0; i < HOSTS; i++)
		memcpy(unprobed_hosts[i], host_text(i), TEXT_BYTES);
}

static bool host_text_is_restored(void)
{
	for (unsigned int i = 0; i < HOSTS; i++)
		if (memcmp(host_text(i), unprobed_hosts[i], TEXT_BYTES))
			return false;
	return true;
}

/* A worker restores it after probes have been dropped. */
void kpt_wait_for_host_text(void)
{
	unsigned long end = jiffies + PATIENCE;

	while (!host_text_is_restored() && time_before(jiffies, end))
		msleep(20);
}

/* The text of the hosts is what it was without probes. */
void kpt_expect_host_text(struct kunit *test)
{
	for (unsigned int i = 0; i < HOSTS; i++)
		KUNIT_EXPECT_MEMEQ(test, host_text(i), unprobed_hosts[i], TEXT_BYTES);
}

/**
 * struct visit - A call of a host
 * @nb:		The notifier that the host calls.
 * @inside:	What the notifier calls.
 */
struct visit {
	struct notifier_block nb;
	int (*inside)(void *data);
};

static int call_inside(struct notifier_block *nb, unsigned long action, void *data)
{
	return container_of(nb, struct visit, nb)->inside(data);
}

/* Call @host, and @inside(@data) inside it. Returns what @host returned. */
noinline __noclone int kprobes_test_visit(const struct host *host,
					  int (*inside)(void *data), void *data)
{
	struct visit visit = { .nb.notifier_call = call_inside, .inside = inside };
	struct raw_notifier_head chain = { .head = RCU_INITIALIZER(&visit.nb) };
	int result = host->call(&chain, 0, 0, data);

	OPTIMIZER_HIDE_VAR(result);	/* no tail call */
	return result;
}

int kpt_do_nothing_inside(void *unused)
{
	return VISITED;
}

int kpt_recurse_inside(void *recursion)
{
	struct recursion *r = recursion;

	if (!r->depth)
		return VISITED;
	r->depth--;
	return kprobes_test_visit(r->host, kpt_recurse_inside, r);
}

void kpt_expect_visit(struct kunit *test, const struct host *host, int (*inside)(void *data),
		      void *data, const char *events, int line)
{
	kpt_clear_journal();
	KUNIT_EXPECT_EQ_MSG(test, kprobes_test_visit(host, inside, data), VISITED,
			    "at line %d", line);
	KUNIT_EXPECT_STREQ_MSG(test, kpt_journal, events, "at line %d", line);
}
