"""Launches of optimizer updates: one for each parameter; two where a rule needs the parameter's norms first.

The rules are those of the CPU: rows X(name, members, loop, fields) of its headers, which are read here."""
from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

from flowedu.cuda.launch import Call, blocks, kernel
from flowedu.cuda.modules import TYPES, WIDE, Module, for_type, once, text
from flowedu.cuda.view import View
from flowedu.cuda.walk import packed

BLOCK = 2048                                                         # of update.cu
NOTHING = View(0, None, ())


class Rule(NamedTuple):
    """A row. single: how many members, the last ones, are one number for each parameter; the others name functions."""
    members: int
    loop: str
    single: int = 0
    begin: str = "no_begin"
    each: str = "no_each"
    norms: str = ""
    end: str = ""


def _rules() -> dict[str, Rule]:
    found = {}
    for name, members, loop, more in re.findall(r"^ +X\((\w+), (\d+), (\w+)((?:, \.\w+ = \w+)*)\)",
                                                text("update_adaptive.h"), re.M):
        fields = dict(re.findall(r"\.(\w+) = (\w+)", more))
        found[name] = Rule(int(members), loop, int(fields.pop("single", 0)), **fields)
    return found


RULES = _rules()


def source(code: int) -> str:
    """All rules for parameters of one element type."""
    lines = []
    for name, r in RULES.items():
        lines.append(f"RULE({name}, {r.loop}, {r.begin}, {r.each})")
        if r.norms:
            lines.append(f"NORMS({name}, {r.norms}, {r.begin}, {r.each})")
        if r.end:
            lines.append(f"END({name}, {r.begin}, {r.end})")
    return "\n".join([for_type("update.cu", TYPES[code], WIDE[code]), *lines, ""])


@once
def _module(code: int) -> Module:
    return Module(source(code))


def _groups(call: Call) -> list[Sequence[View]]:
    size = RULES[call.name].members
    return [call.args[i:i + size] for i in range(2, len(call.args), size)]


def _work(call: Call) -> int:
    return 16 * max([-(-g[0].size // BLOCK) for g in _groups(call)], default=0) if RULES[call.name].norms else 0


@kernel(*RULES, work=_work)
def update(call: Call) -> None:
    """lr, step, then the members of each parameter. ints: [flag]; reals: scale, three numbers, then weight decay, l1 and l2
    of each parameter."""
    rule, (lr, step) = RULES[call.name], call.args[:2]
    for k, group in enumerate(_groups(call)):
        w = group[0]
        if w.size == 0 and not rule.end:
            continue
        arrays = [*group[:rule.members - rule.single], *[NOTHING] * 5][:5]
        walk = packed(w.shape or (1,), [v.strides or (0,) * max(w.ndim, 1) for v in arrays])
        numbers = [*group[rule.members - rule.single:], NOTHING, NOTHING][:2]
        given = (w.size, all(v.contiguous for v in arrays), walk, *[v.pointer for v in arrays], *[v.raw() for v in numbers],
                 lr.raw(), step.pointer, struct.pack("=7dq", *call.reals[:4], *call.reals[4 + 3 * k:7 + 3 * k],
                                                     call.ints[0]))
        where, many = _module(w.dtype.code), -(-w.size // BLOCK)
        if rule.norms and w.size:
            call.run_of(where, f"{call.name}_norms", *given, call.work, blocks=blocks(many, 1))
        if w.size:
            call.run_of(where, call.name, *given, call.work if rule.norms else 0, blocks=blocks(w.size))
        if rule.end:
            call.run_of(where, f"{call.name}_end", *given, blocks=1, threads=32)
