# SPDX-License-Identifier: GPL-2.0
"""For gdb, with a vmlinux: step through the hits of a guest that runs dev/guest/profile.

dev/measure/profile sets `socket`, QEMU's; `module`, the file of kprobe_bench, and `entry`, how
far its ENTRY is from the start of its text; and `functions`, of each kind the name of
kprobe_bench's functions. Prints as JSON, for each kind that was hit, the calls of the probed
functions in turn, twice, and of one that is not probed: for each instruction the address,
the function, or null, the distance from its start, and the text.
"""
import json
import re
import time

COPIES = 4              # functions that kprobe_bench calls in turn
SKIPPED = 130           # hits of the first of them: the second of the rounds has begun
# The guest enters it, then kprobe_bench's function, with each kind that it is to measure.
GATE, ENTRY = "param_attr_store", "bench_run"
STEPS = 20000           # the most from one to the other, and in a call


def run(command):
    return gdb.execute(command, to_string=True)


def value(expression):
    return int(gdb.parse_and_eval(f"(unsigned long){expression}"))


def insn():
    """The next one to execute."""
    address, function, distance, text = re.match(r"=> (\w+)(?: <([^+>]+)(?:\+(\d+))?>)?:\s+(.*)", run("x/i $pc")).groups()
    return int(address, 16), function, int(distance or 0), re.sub(r"0x[0-9a-f]+ <(.+?)>", r"\1", text)


def step_until(reached):
    """The instructions from this one to the one before that where it is reached."""
    trace = []
    while not reached(now := insn()):
        # Each iteration of a REP prefix is a step.
        if not trace or now[0] != trace[-1][0]:
            trace.append(now)
        if len(trace) > STEPS:
            raise gdb.GdbError(f"{STEPS} instructions without end")
        run("stepi")
    return trace


def go_to(address, times=1):
    """Run to an address for the given time; False if another breakpoint is reached before."""
    # In hardware, since kprobes and ftrace write to the text.
    there = gdb.Breakpoint(f"*{address}", gdb.BP_HARDWARE_BREAKPOINT)
    there.ignore_count = times - 1
    run("continue")
    there.delete()
    return value("$pc") == address


def next_call(functions):
    """Step to the next call of one of the functions, and through it."""
    step_until(lambda now: now[0] in functions)
    stack = value("$sp")
    back = value("*(long *)$sp")
    return step_until(lambda now: now[0] == back and value("$sp") == stack + 8)


def enter_module(loaded):
    """Step to kprobe_bench's function."""
    step_until(lambda now: now[1] in (None, ENTRY))
    if not loaded:
        run(f"add-symbol-file {module} {value('$pc') - entry}")


def calls(function):
    """Those of a kind, or None if the functions are not called."""
    probed = [value(f"&{function}{i}") for i in range(COPIES)]
    plain = value(f"&{function.replace('bench_', 'bench_unprobed_')}0")
    if not go_to(probed[0], SKIPPED):
        return None
    found = [next_call(probed) for _ in range(2 * COPIES)]
    go_to(plain)
    return found + [next_call([plain])]


for setting in "confirm off", "pagination off", "print symbol-filename off", "width 0":
    run(f"set {setting}")
run("set remotetimeout 300")
for attempt in range(300):
    try:
        run(f"target remote {socket}")
        break
    except gdb.error:
        time.sleep(0.1)
hits = {}
loaded = False
for kind, function in functions.items():
    go_to(value(f"&{GATE}"))
    enter_module(loaded)
    loaded = True
    done = gdb.Breakpoint(f"*{value('*(long *)$sp')}", gdb.BP_HARDWARE_BREAKPOINT)
    if traces := calls(function):
        hits[kind] = traces
        run("continue")
    done.delete()
run("detach")
print(json.dumps(hits))
