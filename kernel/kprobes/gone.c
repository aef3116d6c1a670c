// SPDX-License-Identifier: GPL-2.0
/*
 * Text that is freed while it contains probes
 */
#include "internal.h"

#include <linux/init.h>

#include <asm/sections.h>

#include <kunit/visibility.h>

/**
 * kprobes_lose_text() - Disarm the sites in text that is about to be freed
 * @start: The first address of the text.
 * @end: The address after its last. The text is still mapped.
 *
 * Context: Process context, kprobe_mutex held.
 */
void kprobes_lose_text(unsigned long start, unsigned long end)
{
	struct kprobe_site *site;
	LIST_HEAD(armed);

	lockdep_assert_held(&kprobe_mutex);
	for (site = site_first_in(start, end); site; site = site_next_in(site, end))
		if (site_is_armed(site))
			site_add_to_batch(site, &armed);
	disarm_sites(&armed);
	sites_leave_batch(&armed);
	for (site = site_first_in(start, end); site; site = site_next_in(site, end))
		if (site->state != SITE_GONE)
			site_set_gone(site);
	blacklist_remove(start, end);
}
EXPORT_SYMBOL_IF_KUNIT(kprobes_lose_text);

/**
 * kprobe_free_init_mem() - Disarm the sites in the kernel's init text before it is freed
 *
 * Context: Process context, once, when no new probe can be registered there.
 */
void kprobe_free_init_mem(void)
{
	guard(mutex)(&kprobe_mutex);
	kprobes_lose_text((unsigned long)__init_begin, (unsigned long)__init_end);
}
