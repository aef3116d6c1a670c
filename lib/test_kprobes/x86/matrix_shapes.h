/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The shapes of functions that matrix_code.c defines, in the order of enum matrix_shape:
 *
 *   SHAPE(name, first, second, third, beyond): a jump at the first instruction displaces
 *	the second one, and the third if they are short, but not those beyond
 *   CALL_SHAPE(name, first, second, third): the first instruction is a call
 */
SHAPE("work", "inc %eax", "inc %ebx", "inc %edx", "inc %r8d\n inc %r9d")
SHAPE("look", "inc %eax", "call kprobes_test_look", "inc %ebx", "")
CALL_SHAPE("look_first", "call kprobes_test_look", "inc %eax", "inc %ebx")
SHAPE("count", READ_COUNT("%eax"), READ_COUNT("%ebx"), "", "")
SHAPE("count_second", "inc %eax", READ_COUNT("%ebx"), "", "")
SHAPE("raise", "incb " COUNT_HERE, READ_COUNT("%ebx"), "decb " COUNT_HERE, READ_COUNT("%edx"))
SHAPE("lower", "decb " COUNT_HERE, READ_COUNT("%ebx"), "incb " COUNT_HERE, READ_COUNT("%edx"))
SHAPE("cpu", "mov " CPU_HERE ", %eax", "", "", "")
SHAPE("xadd", "xadd %rdx, " NUMBER_HERE, "mov " NUMBER_HERE ", %rbx", "", "")
SHAPE("cmpxchg", "cmpxchg16b " PAIR_HERE, "mov " PAIR_HERE ", %r8", "", "")
SHAPE("outer", "inc %eax", "inc %ebx", "inc %edx", "inc %r8d")
SHAPE("outer_post", "inc %eax", "inc %ebx", "inc %edx", "inc %r8d")
