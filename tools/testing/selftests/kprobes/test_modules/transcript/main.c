// SPDX-License-Identifier: GPL-2.0
/*
 * Log what callers of the kprobes API see
 *
 *	insmod kprobe_transcript.ko
 *	echo CHAPTER >/sys/module/kprobe_transcript/parameters/run
 *
 * calls functions of the API with good and bad arguments, and logs their results. The lines
 * do not differ between boots, so that the logs of two kernels can be compared. The
 * chapters:
 *
 *	errors		single registrations, most of which fail, and the fields of the probe
 *	survey		a registration at each byte of a function
 *	arrays		registrations of several probes in one call
 *	states		probes at one address that are registered, enabled, disabled and hit
 *	nested		a handler that hits other probes
 *	returns		return probes
 *	going, gone, back	probes on @victim, a function of another module: with the
 *			module loaded, after it was unloaded, and after it was loaded again
 *
 * See Documentation/trace/kprobes.rst.
 */
#include "transcript.h"

#include <linux/cleanup.h>
#include <linux/errno.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/string.h>

char *victim = "bench_nops0";
module_param(victim, charp, 0644);
MODULE_PARM_DESC(victim, "Function of another module, for the chapters going, gone and back");

unsigned int hit_delay_ms;
module_param(hit_delay_ms, uint, 0644);
MODULE_PARM_DESC(hit_delay_ms, "Milliseconds from a registration to the first hit, to have jumps by then");

void *init_text;

static int transcript_run(const char *name, const struct kernel_param *param)
{
	static const struct {
		const char *name;
		int (*log)(void);
	} chapters[] = {
		{ "errors", transcript_errors },
		{ "survey", transcript_survey_all },
		{ "arrays", transcript_arrays },
		{ "states", transcript_states },
		{ "nested", transcript_nested },
		{ "returns", transcript_returns },
		{ "going", transcript_going },
		{ "gone", transcript_gone },
		{ "back", transcript_back },
	};
	static DEFINE_MUTEX(lock);

	if (THIS_MODULE->state != MODULE_STATE_LIVE)
		return -EAGAIN;
	guard(mutex)(&lock);
	for (unsigned int i = 0; i < ARRAY_SIZE(chapters); i++) {
		if (!sysfs_streq(name, chapters[i].name))
			continue;
		pr_info("chapter %s\n", chapters[i].name);
		return chapters[i].log();
	}
	return -EINVAL;
}

static const struct kernel_param_ops run_ops = { .set = transcript_run };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "Write the name of a chapter");

static int __init transcript_init(void)
{
	init_text = transcript_init;
	return 0;
}
module_init(transcript_init);

static void __exit transcript_exit(void)
{
}
module_exit(transcript_exit);

MODULE_DESCRIPTION("Log what callers of the kprobes API see");
MODULE_LICENSE("GPL");
