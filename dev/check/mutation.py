# SPDX-License-Identifier: GPL-2.0
"""One-place changes of C code in the kernel's style, and of assembly.

statements() finds the statements of all functions, or the instructions, and candidates() the
changes that can be made to one of them. choose() orders them by chance, but in the same way
each time: whether a statement is chosen depends on its text and place, not on that of others.
"""
import re
from collections import Counter, namedtuple
from itertools import pairwise
from random import Random

# The text of a file, and which of its lines may be changed, or None: all.
Code = namedtuple("Code", "text lines")
# start, end: the statement's place in the file's text; control: it is the head of if, for ...;
# next: the end of the statement after it, if that can be put before it, or 0
Statement = namedtuple("Statement", "function returns start end control last next")
# the text from start to end of the file is replaced by new
Change = namedtuple("Change", "kind start end new")
Mutant = namedtuple("Mutant", "file line function kind old new text")

# These are preferred: most statements have a change of another kind.
RARE = ("lock", "wait", "counter")

COMMENT_OR_STRING = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
                               r"|^#else\b.*?^#endif|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", re.S | re.M)
CONTROL = re.compile(r"(if|while|for|switch|scoped_guard|\w*for_each\w*)\b\s*\(")
# Its head begins, and its body ends, in the first column.
FUNCTION = re.compile(r"^(?P<returns>(?:[a-zA-Z_][^;{}=()]*?\b)?)(?P<name>\w+)\((?:[^;{}=\n]|\n[ \t])*\)\s*\n"
                      r"\{\n(?P<body>.*?)^\}", re.S | re.M)
LABEL = re.compile(r"(?:case\b[^:;{}]*|default\s*):")
SKIPPED = re.compile(r"else\b|do\b|[{}\s]")
DECLARATION = re.compile(r"(?:static|const|struct|enum|union|unsigned|signed|extern|register)\b"
                         r"|(?!return\b|goto\b)\w+ \**\w+(?: = |\[|;|,)|LIST_HEAD\(|DECLARE_|DEFINE_|static_assert\(")

# Statements that only help to find faults, or give way to others: nothing depends on them.
ASSERTION = re.compile(r"(?:lockdep_|WARN|BUG|BUILD_BUG|might_|instrumentation_|cond_resched|pr_|barrier_nospec"
                       r"|kasan_|kmsan_|kcsan_|ASSERT|__?set_current_state|break\b|continue\b|goto\b)")
WAIT = re.compile(r"synchronize_|call_rcu|kfree_rcu|kvfree_rcu|rcu_barrier|flush_|cancel_\w+_sync|wait_|\w*_wait_"
                  r"|\w*text_poke_sync|\w*arch_sync_|sync_core|on_each_cpu|irq_work_sync|cpus_read_lock\(\);\s*cpus")
COUNTER = re.compile(r"[^;=]*(?:\+\+|--);|(?:\+\+|--)[^;=]*;|atomic\w*_(?:inc|dec|add|sub)|\w*(?:_inc|inc_|_dec\b)\w*\("
                     r"|this_cpu_(?:inc|dec|add)|[^;=]* [+-]= ")
LOCK = re.compile(r"guard\(|\w*(?:lock|unlock)\w*\(|preempt_(?:dis|en)able\w*\(|\w*preempt_count_(?:add|sub)\("
                  r"|rcu_read_|local_irq_|ct_nmi_")
BARRIER = re.compile(r"smp_\w*mb\w*\(\);|barrier\(\);")
DROPPED = {"barrier": BARRIER, "wait": WAIT, "lock": LOCK, "counter": COUNTER}
WEAKER = (
    ("barrier", re.compile(r"\bsmp_store_release\("), "WRITE_ONCE(*"),
    ("barrier", re.compile(r"\bsmp_load_acquire\("), "READ_ONCE(*"),
    ("barrier", re.compile(r"\brcu_assign_pointer\("), "RCU_INIT_POINTER("),
    ("barrier", re.compile(r"\b(h?list_\w+)_rcu\((?=\S+, )"), r"\1("),
    ("barrier", re.compile(r"\bREAD_ONCE\("), "("),
    ("wait", re.compile(r"\b(list_del)_rcu\("), r"\1("),
    ("wait", re.compile(r"\b(kv?free)_rcu\(([^,;]+), \w+\)"), r"\1(\2)"),
    ("wait", re.compile(r"\bcall_rcu\(([^,;]+), (\w+)\)"), r"\2(\1)"),
    ("wait", re.compile(r"\bsynchronize_rcu_tasks\("), "synchronize_rcu("),
)
# What is put before no other statement, and what may depend on the order.
FIXED = re.compile(rf"return\b|{ASSERTION.pattern}|{DECLARATION.pattern}")
CALL = re.compile(r"\b(?:[a-z]\w*|READ_ONCE|WRITE_ONCE)\(")
# {operator or word: the kind of change, and what replaces it}
OTHER = {"<": ("bound", "<="), "<=": ("bound", "<"), ">": ("bound", ">="), ">=": ("bound", ">"),
         "==": ("condition", "!="), "!=": ("condition", "=="), "&&": ("condition", "||"), "||": ("condition", "&&"),
         "+ 1": ("bound", "+ 0"), "- 1": ("bound", "- 0"), "min": ("bound", "max"), "max": ("bound", "min"),
         "true": ("value", "false"), "false": ("value", "true"), "0": ("value", "1"), "1": ("value", "0"),
         "++": ("counter", "--"), "--": ("counter", "++")}
OPERATORS = [re.compile(pattern) for pattern in (
    r"(?<=[ \t])(<=|>=|==|!=|<|>)(?=\s)", r"(?<=[ \t])(&&|\|\|)(?=\s)", r"(?<=\w|\)|\]) ([+-] 1)\b(?!U?L?\s*<<)",
    r"\b(min|max)(?=\()", r"\b(true|false)\b", r"(?<== )(0|1)(?=;)", r"(\+\+|--)")]
ERRORS = ("EINVAL", "ENOENT", "ENOMEM", "EOPNOTSUPP", "EBUSY")

# Of assembly: what names the code that follows, instructions, and what can be made of one.
ASSEMBLY = re.compile(r"^\.macro|^SYM_CODE_START", re.M)
NAME = re.compile(r"SYM_\w*(?:START|LABEL)\w*\((\w+)|\.macro\s+(\w+)")
INSTRUCTION = re.compile(r"^[ \t]+((?!\.|UNWIND_HINT|ANNOTATE|OFFSET|BRANCH_OUT|BEGIN_T|END_T|OPCODE_|SYM_|_ASM_PTR)"
                         r"[A-Za-z_][^\n]*?)[ \t]*$", re.M)
REVERSED = {"je": "jne", "jne": "je", "jz": "jnz", "jnz": "jz", "incl": "decl", "decl": "incl",
            "addq": "subq", "subq": "addq"}


def mask(text):
    """The text with blanks for comments, strings, directives and what is after an #else, as stubs are."""
    return COMMENT_OR_STRING.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def closing(text, at):
    """The place after the bracket that closes the one at the place at."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in "({[") - (text[i] in ")}]")
        if not depth:
            return i + 1
    raise ValueError("a bracket is not closed")


def instructions(code):
    """All instructions of a file, from masked text."""
    for match in INSTRUCTION.finditer(code):
        names = NAME.findall(code, 0, match.start())
        yield Statement("".join(names[-1]) if names else "", "", *match.span(1), False, False, 0)


def end_of_swap(code, this, following):
    """The end of the following statement, if that can be put before this one, or 0."""
    (start, stop, _), (second, end, control) = this, following
    texts = code[start:stop], code[second:end]
    columns = {at - code.rfind("\n", 0, at) for at in (start, second)}
    if control or code[stop:second].strip() or len(columns) > 1 or FIXED.match(texts[1]):
        return 0
    shared = set.intersection(*(set(re.findall(r"(?<![>.])\b[a-z]\w*\b(?!\()", text)) for text in texts))
    # Nothing depends on the order of assignments of different fields, unless they call something.
    depends = any(map(CALL.search, texts)) or any(
        re.search(re.escape(one.split(" = ")[0]) + r"\b", other) for one, other in (texts, texts[::-1]))
    return end if shared and depends else 0


def statements(code):
    """All statements that may be changed in a file."""
    text = mask(code.text)
    for statement in instructions(text) if ASSEMBLY.search(code.text) else c_statements(text):
        first, last, swap = (code.text.count("\n", 0, at) + 1 for at in (statement.start, statement.end, statement.next))
        if code.lines is None or code.lines.issuperset(range(first, max(last, swap) + 1)):
            yield statement
        elif code.lines.issuperset(range(first, last + 1)):
            yield statement._replace(next=0)


def c_statements(code):
    """All statements in the functions of a file, from masked text."""
    for function in FUNCTION.finditer(code):
        (at, end), found = function.span("body"), []
        while at < end:
            if match := SKIPPED.match(code, at) or LABEL.match(code, at):
                at = match.end()
                continue
            if match := CONTROL.match(code, at):
                stop = closing(code, match.end() - 1)
                control = code[stop:stop + 1] != ";"
                stop += not control
            else:
                stop, control = at, False
                while code[stop] != ";":
                    stop = closing(code, stop) if code[stop] in "({[" else stop + 1
                stop += 1
            found.append((at, stop, control))
            at = stop
        for this, following in pairwise([*found, (end, end, True)]):
            yield Statement(function["name"], function["returns"], *this, following[0] == end,
                            end_of_swap(code, this, following))


def operators(code, start, end, control=False):
    """Changes of one operator or word."""
    for pattern in OPERATORS:
        for match in pattern.finditer(code, start, end):
            kind, new = OTHER[match[1]]
            if not (control and kind == "counter"):
                yield Change(kind, *match.span(1), new)
    for match in re.compile(r"-(E[A-Z]+)\b").finditer(code, start, end):
        yield Change("error", *match.span(1), next(error for error in ERRORS if error != match[1]))
    for kind, pattern, new in WEAKER:
        for match in pattern.finditer(code, start, end):
            yield Change(kind, match.start(), match.end(), match.expand(new))


def candidates(source, code, statement):
    """The changes that can be made to a statement of source; code is its masked text."""
    start, end = statement.start, statement.end
    text = code[start:end]
    if ASSEMBLY.search(source):
        word = text.split()[0]
        return [Change("instruction", start, end, "")] + (
            [Change("condition", start, start + len(word), REVERSED[word])] if word in REVERSED else [])
    void = re.search(r"\bvoid\b(?!\s*\*)", statement.returns)
    if text == ";" or ASSERTION.match(text):
        return []
    if statement.control:
        word = CONTROL.match(text)[1]
        inner = start + text.index("(") + 1
        found = [] if "for_each" in word else list(operators(code, inner, end, True))
        if word in ("if", "while"):
            found += [Change("condition", inner, end - 1, f"!({source[inner:end - 1]})")] * 2
        elif word == "scoped_guard":
            found = [Change("lock", start, end, "if (1)")]
        return found
    found = list(operators(code, start, end))
    if match := re.match(r"return\b\s*([^;]*);", text):
        value = match[1]
        if not statement.last:
            found.append(Change("return", start, end, ";"))
        if re.search(r"\bbool\b", statement.returns) and value not in ("true", "false"):
            value = source[start + match.start(1):start + match.end(1)]
            found += [Change("condition", start, end, f"return !({value});")] * 2
        elif re.match(r"-E[A-Z]+$", value):
            found.append(Change("error", start, end, "return 0;"))
        elif value == "0" and re.search(r"\bint\b", statement.returns):
            found.append(Change("error", start, end, "return -EINVAL;"))
        return found
    if DECLARATION.match(text):
        return found
    kind = next((kind for kind, pattern in DROPPED.items() if pattern.match(text)), "statement")
    found += [Change(kind, start, end, ";")] * (1 + (kind != "statement"))
    if void and not statement.last and kind == "statement":
        found.append(Change("return", start, end, "return;"))
    if stop := statement.next:
        second = stop - len(code[end:stop].lstrip())
        found.append(Change("order", start, stop, source[second:stop] + source[end:second] + source[start:end]))
    return found


def squeeze(text):
    return " ".join(text.split())


def make_mutant(file, text, code, statement, change):
    # The lines of the rest of the file stay where they are.
    lines = text.count("\n", change.start, change.end) - change.new.count("\n")
    new = text[:change.start] + change.new + "\n" * lines + text[change.end:]
    start, end = statement.start, max(statement.end, change.end)
    return Mutant(file, text.count("\n", 0, change.start) + 1, statement.function, change.kind,
                  squeeze(code[start:end]), squeeze(mask(new)[start:end + len(new) - len(text)]), new)


def every_mutant(file, code, functions=None):
    """All mutants of all statements of a file, or of some functions."""
    masked = mask(code.text)
    for statement in statements(code):
        if functions and statement.function not in functions:
            continue
        for change in set(candidates(code.text, masked, statement)):
            yield make_mutant(file, code.text, masked, statement, change)


def choose(sources, seed):
    """One mutant of each statement of {file: Code} that has any, in the order to take them."""
    found = []
    for file, code in sources.items():
        masked, seen = mask(code.text), Counter()
        for statement in statements(code):
            # The place of the statement among equal ones of its function.
            key = statement.function, squeeze(masked[statement.start:statement.end])
            seen[key] += 1
            if changes := candidates(code.text, masked, statement):
                chance = Random(repr((seed, file, key, seen[key])))
                rare = [change for change in changes if change.kind in RARE]
                mutant = make_mutant(file, code.text, masked, statement, chance.choice(rare or changes))
                found.append((chance.random() / (4 if rare else 1), mutant))
    return [mutant for _, mutant in sorted(found)]
