// SPDX-License-Identifier: GPL-2.0
/* What handlers of tests do besides writing the journal. */
#include <linux/ptrace.h>
#include <linux/uaccess.h>

#include "actions.h"
#include "probes.h"

/* Let a replacement run in place of the probed function. */
int kpt_act_go_to_replacement(struct test_probe *p, struct pt_regs *regs)
{
	const struct place *replacement = kpt_replacement_of(p->kp.symbol_name);

	instruction_pointer_set(regs, (unsigned long)replacement->function);
	return 1;
}

/* Take a page fault. Its error goes to @p->data. */
int kpt_act_read_bad_address(struct test_probe *p, struct pt_regs *regs)
{
	unsigned long value;

	p->data = copy_from_kernel_nofault(&value, BAD_ADDRESS, sizeof(value));
	return 0;
}

/* Call TARGET @p->data times. */
int kpt_act_call_target(struct test_probe *p, struct pt_regs *regs)
{
	for (unsigned long i = 0; i < p->data; i++)
		if (kpt_call(TARGET) != TARGET->result)
			kpt_note('!');
	return 0;
}

/*
 * Write '-' to the journal for each change that a handler is refused, four in all. The
 * changes are valid: probe 'b' is not registered, 'c' is enabled and 'd' disabled.
 */
void kpt_try_to_change_probes(void)
{
	struct kprobe *b = &kpt_test_probe('b')->kp;
	int errors[] = {
		register_kprobe(b), register_kprobes(&b, 1),
		disable_kprobe(&kpt_test_probe('c')->kp), enable_kprobe(&kpt_test_probe('d')->kp),
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(errors); i++)
		kpt_note(errors[i] == -EDEADLK ? '-' : '!');
}
