/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Annotations for functions that must not be probed
 */
#ifndef _ASM_GENERIC_KPROBES_H
#define _ASM_GENERIC_KPROBES_H

#if defined(__KERNEL__) && !defined(__ASSEMBLY__)

#ifdef CONFIG_KPROBES

/*
 * NOKPROBE_SYMBOL(function) after the definition excludes the function from
 * probing. It stores the function's address in a section that the blacklist is
 * made from. The macro includes the semicolon, as many users omit theirs.
 */
#define __NOKPROBE_SYMBOL(function)					\
	static unsigned long __used __section("_kprobe_blacklist")	\
	_kbl_addr_##function = (unsigned long)(function);
#define NOKPROBE_SYMBOL(function)	__NOKPROBE_SYMBOL(function)

/*
 * Exclude a function from probing by placing it in a section of such functions. It is not
 * traced either: a tracer's callback may be probed.
 */
#define __kprobes		notrace __section(".kprobes.text")

/* An inline function in excluded code must not be emitted out of line. */
#define nokprobe_inline		__always_inline

#else /* !CONFIG_KPROBES */

#define NOKPROBE_SYMBOL(function)
#define __kprobes
#define nokprobe_inline		inline

#endif /* CONFIG_KPROBES */

#endif /* __KERNEL__ && !__ASSEMBLY__ */
#endif /* _ASM_GENERIC_KPROBES_H */
