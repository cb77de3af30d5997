"""Explanations of a signature choice, and errors of calls without a valid signature."""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.core.sbp.rules import RULES
from flowedu.core.sbp.sbp import pretty
from flowedu.core.sbp.signature import names_of, text
from flowedu.core.values.place import format_devices
from flowedu.errors import JobBuildAndInferError

MOST = 16                     # candidates listed one by one


def size(n: float) -> str:
    """Format a number of bytes: "96 bytes", "1.2 MB"."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if n >= factor:
            return f"{n / factor:.3g} {unit}"
    return f"{int(n)} byte{'s' * (n != 1)}"


def _grid(devices: Sequence[int], hierarchy: Sequence[int]) -> str:
    return f"{format_devices(devices)}" + (f" ({'x'.join(map(str, hierarchy))})" if len(hierarchy) > 1
                                           else "")


# ---- a choice
def explained(choice) -> str:
    """List the candidates (on a grid, the best ones) with their bytes, and mark and explain the choice."""
    lines = [f"{choice.name} ({choice.op.name}) on device{'s' * (len(choice.devices) > 1)} "
             f"{_grid(choice.devices, choice.hierarchy)}:"]
    # Omit candidates that need a partial maximum or minimum, because few values have one.
    listed = [c for c in choice.candidates if not c.fault.endswith(("no partial maximum",
                                                                    "no partial minimum"))]
    for c in listed[:MOST]:
        mark = "->" if c.signature == choice.signature else "  "
        cost = c.fault or f"{int(c.bytes)} bytes, inputs in place: {c.matches}"
        lines.append(f" {mark} {_text(choice.op, c.signature, choice.hierarchy)}: {cost}")
    if len(listed) > MOST:
        lines.append(f"    and {len(listed) - MOST} more, none of them better")
    lines.append(f" because: {because(choice)}")
    for n, r in zip(names_of(choice.op, len(choice.routes)), choice.routes):
        if r is not None and r.hops:
            lines.append(f" {n}: {r.src} -> {r.dst}: {r.name}, {size(r.bytes)}")
    return "\n".join(lines)


def because(choice) -> str:
    """Return the criterion that separates the choice from the next best candidate."""
    first, *others = choice.candidates
    others = [c for c in others if not c.fault]
    if not others:
        return "no other is possible"
    rule = RULES[choice.rule]
    step = next((i for i, (a, b) in enumerate(zip(first.key, others[0].key)) if a != b), 0)
    reason = rule.because[min(step, len(rule.because) - 1)]
    if choice.rule == "bytes" and step == 0:
        reason += f": {size(first.bytes)}, the next one {size(others[0].bytes)}"
    elif choice.rule == "bytes":
        reason = f"others move {size(first.bytes)} too; {reason}"
    return reason + ("" if choice.rule == "bytes" else f" (rule \"{choice.rule}\")")


def _text(op, signature, hierarchy) -> str:
    """Format a signature. Grid axes for which a faulty signature has no entry become ellipses."""
    missing = len(hierarchy) - len(signature[0]) if signature else 0
    return text(op, [(*s, *("...",) * missing) for s in signature])


# ---- no valid signature
def refusal(question, candidates, name: str, line: str) -> JobBuildAndInferError:
    """Return the error of a call (a Question of choose.py) without a usable candidate."""
    return (_layouts_error if question.strict else _hints_error)(question, candidates, name, line)


def _hints_error(question, candidates, name: str, line: str) -> JobBuildAndInferError:
    """Return the error for hints that no signature meets, with the legal signatures of each hint."""
    op, specs = question.op, question.specs
    devices, hierarchy = question.devices, question.hierarchy
    names = names_of(op, len(specs))
    wanted = [(n, h) for n, h in zip(names, question.hints) if h is not None]
    sizes = ", ".join(f"{n} {s.shape}" for n, s in zip(names, specs))
    asked = ", ".join(f"{n}={pretty(h)}" for n, h in wanted)
    possible = [c.signature for c in candidates if _possible(c) and not any(
        s[0] == "P" for v in c.signature[:len(specs)] for s in v)]
    partners = []
    for n, h in wanted:
        legal = sorted(text(op, s) for s in possible if s[names.index(n)] == h)
        partners.append(f"{n}={pretty(h)} goes with {_abbreviate(legal)}" if legal
                        else f"{n} cannot be {pretty(h)} here")
    return JobBuildAndInferError(
        f"{name}: no signature of {op.name} on {_count(devices, hierarchy)} devices has {asked}", at=line,
        expected="one of " + _abbreviate(sorted(text(op, s) for s in possible)),
        got=f"{asked} ({sizes}): {'. '.join(partners)}",
        fix="leave a with_distribute out, ask for one of the above, or flow.parallel_cast the blob before "
        "the op")


def _layouts_error(question, candidates, name: str, line: str) -> JobBuildAndInferError:
    """Return the error for input layouts that match no signature.

    It lists the legal partners of an input that is split or partial, and the bytes of the boxing that helps.
    """
    op, specs, present = question.op, question.specs, question.present
    names = names_of(op, len(specs))
    have = [p[0].sbp for p in present]
    legal = sorted((c for c in candidates if _possible(c) and c.way.calls is not None), key=lambda c: (
        any(s[0] == "P" for v in c.signature[:len(specs)] for s in v), c.number))
    fewest = min((c for c in legal if c.layouts), key=lambda c: c.key, default=None)
    moves = [] if fewest is None else [(n, r) for n, r in zip(names, fewest.routes) if r is not None]
    anchor = next((i for i, s in enumerate(have) if any(x != "B" for x in s)
                   and any(c.signature[i] == s for c in legal)), None)
    problem = " but ".join([f"{name}: {names[0]} is {pretty(have[0])}", *[
        f"{n} is {pretty(s)}" for n, s in zip(names[1:], have[1:])][:1]]) if len(names) == 2 else \
        f"{name}: " + ", ".join(f"{n} is {pretty(s)}" for n, s in zip(names, have))
    if len(names) == 2 and anchor == 1:
        problem = f"{name}: {names[1]} is {pretty(have[1])} but {names[0]} is {pretty(have[0])}"
    if anchor is None:
        partners = f"one of {_abbreviate([text(op, c.signature) for c in legal])}"
        cannot = [f"{n} cannot be {pretty(s)} here" for i, (n, s) in enumerate(zip(names, have))
                  if not any(c.signature[i] == s for c in legal)]
        got = ", ".join(cannot)
    else:
        partners = f"legal partners of {names[anchor]}={pretty(have[anchor])}: " + _abbreviate(
            [_describe_other_values(op, names, c.signature, anchor) for c in legal
             if c.signature[anchor] == have[anchor]])
        got = ", ".join(f"{n}={pretty(s)} {x.shape}" for n, s, x in zip(names, have, specs))
    fix = " and ".join(f"box {n} to {pretty(r.dst.sbp)} ({size(r.bytes)})" for n, r in moves)
    return JobBuildAndInferError(problem, expected=partners, got=got, fix=fix, at=line)


def _possible(c) -> bool:
    return "element" not in c.fault and "uneven" not in c.fault and "two ways" not in c.fault


def _describe_other_values(op, names, signature, anchor: int) -> str:
    n = len(names)
    left = ", ".join(f"{a}={pretty(s)}" for i, (a, s) in enumerate(zip(names, signature)) if i != anchor)
    right = ", ".join(f"{a}={pretty(s)}" for a, s in zip(op.outputs, signature[n:]))
    return f"{left} -> {right}".strip()


def _abbreviate(texts: Sequence[str], most: int = 8) -> str:
    more = f"; and {len(texts) - most} more" if len(texts) > most else ""
    return "; ".join(texts[:most]) + more


def _count(devices, hierarchy) -> str:
    return "x".join(map(str, hierarchy)) if len(hierarchy) > 1 else str(len(devices))
