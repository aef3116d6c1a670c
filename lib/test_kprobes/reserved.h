/* SPDX-License-Identifier: GPL-2.0 */
/* Instructions of the test module that must not be probed. */
#ifndef _TEST_KPROBES_RESERVED_H
#define _TEST_KPROBES_RESERVED_H

void kpt_probe_reserved_early(void);

#endif /* _TEST_KPROBES_RESERVED_H */
