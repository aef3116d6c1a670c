/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The shapes of functions that matrix_code.c defines, in the order of enum matrix_shape:
 *
 *   SHAPE(name, first, second, third, beyond): a jump at the first instruction displaces
 *	the second one, and the third if they are short, but not those beyond
 *   CALL_SHAPE(name, first, second, third): the first instruction is a call
 */
SHAPE("work", INC("a"), INC("b"), INC("d"), INC_OTHERS)
SHAPE("look", INC("a"), "call kprobes_test_look", INC("b"), "")
CALL_SHAPE("look_first", "call kprobes_test_look", INC("a"), INC("b"))
SHAPE("count", READ_COUNT("%eax"), READ_COUNT("%ebx"), "", "")
SHAPE("count_second", INC("a"), READ_COUNT("%ebx"), "", "")
SHAPE("raise", "incb " COUNT_HERE, READ_COUNT("%ebx"), "decb " COUNT_HERE, READ_COUNT("%edx"))
SHAPE("lower", "decb " COUNT_HERE, READ_COUNT("%ebx"), "incb " COUNT_HERE, READ_COUNT("%edx"))
SHAPE("cpu", "mov " CPU_HERE ", %eax", "", "", "")
SHAPE("xadd", "xadd " DX ", " NUMBER_HERE, "mov " NUMBER_HERE ", " BX, "", "")
SHAPE("cmpxchg", EXCHANGE_PAIR, LOAD_PAIR, "", "")
SHAPE("outer", INC("a"), INC("b"), INC("d"), INC_OTHERS)
SHAPE("outer_post", INC("a"), INC("b"), INC("d"), INC_OTHERS)
