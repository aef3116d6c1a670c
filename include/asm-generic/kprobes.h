/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Marks for functions that must not be probed.
 */
#ifndef _ASM_GENERIC_KPROBES_H
#define _ASM_GENERIC_KPROBES_H

#if defined(__KERNEL__) && !defined(__ASSEMBLY__)

#ifdef CONFIG_KPROBES

/*
 * NOKPROBE_SYMBOL(function) after its definition keeps probes away from the
 * function: its address goes into a section that the blacklist is made from. The semicolon is
 * part of it: many leave theirs out.
 */
#define __NOKPROBE_SYMBOL(function)					\
	static unsigned long __used __section("_kprobe_blacklist")	\
	_kbl_addr_##function = (unsigned long)(function);
#define NOKPROBE_SYMBOL(function)	__NOKPROBE_SYMBOL(function)

/* The same for a function that is put into a section of such functions. */
#define __kprobes		__section(".kprobes.text")

/* An inline function of either kind of function must not end out of line. */
#define nokprobe_inline		__always_inline

#else /* !CONFIG_KPROBES */

#define NOKPROBE_SYMBOL(function)
#define __kprobes
#define nokprobe_inline		inline

#endif /* CONFIG_KPROBES */

#endif /* __KERNEL__ && !__ASSEMBLY__ */
#endif /* _ASM_GENERIC_KPROBES_H */
