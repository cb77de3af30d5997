"""Launches of optimizer updates: one for up to 32 parameters, or two if a rule needs the parameters' norms.

A parameter that is not contiguous has its own launch. The rules are those of the CPU: this module reads the
rows X(name, members, loop, fields) of its headers.
"""
from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

from flowedu.core.values.dtype import FLOATS
from flowedu.cuda.launch import MOST_BLOCKS, Call, kernel
from flowedu.cuda.launches.many import Table, pieces
from flowedu.cuda.modules import TYPES, WIDE, Module, for_type, once, text
from flowedu.cuda.view import View
from flowedu.cuda.walk import packed
from flowedu.errors import UnsupportedError

ROWS = 32                                                            # rows of a Table in update.cu
_SETTINGS = struct.Struct("=4dq")                                    # struct Settings
_NO_WALK = packed((), [()] * 5)


class Rule(NamedTuple):
    """Row of the header's table.

    single: number of members, the last ones, that have one element for each parameter. loop, begin, each,
    norms, and end name device functions.
    """
    members: int
    loop: str
    single: int = 0
    begin: str = "no_begin"
    each: str = "no_each"
    norms: str = ""
    end: str = ""


def _rules() -> dict[str, Rule]:
    rules = {}
    for name, members, loop, options in re.findall(r"^ +X\((\w+), (\d+), (\w+)((?:, \.\w+ = \w+)*)\)",
                                                   text("update_adaptive.h"), re.M):
        fields = dict(re.findall(r"\.(\w+) = (\w+)", options))
        rules[name] = Rule(int(members), loop, int(fields.pop("single", 0)), **fields)
    return rules


RULES = _rules()


def source(code: int) -> str:
    """Return the source of all rules, for parameters of one element type."""
    lines = []
    for name, r in RULES.items():
        lines.append(f"RULE({name}, {r.loop}, {r.begin}, {r.each}, {str(bool(r.norms)).lower()})")
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
    return 16 * sum(pieces(g[0].size) for g in _groups(call)) if RULES[call.name].norms else 0


def _table() -> Table:
    return Table("7q3d", ROWS)


def _add(table: Table, arrays: Sequence[View], numbers: Sequence[View], decays: Sequence[float]) -> None:
    """Add a struct Row: the arrays that change, up to two 0-dim arrays, and the parameter's decays."""
    pointers = [v.pointer for v in arrays] + [0] * (5 - len(arrays)) + [v.pointer for v in numbers]
    table.add(arrays[0].size, *pointers, *[0] * (7 - len(pointers)), *decays)


@kernel(*RULES, work=_work)
def update(call: Call) -> None:
    """args: lr, step, then the members of each parameter.

    ints: [flag]; reals: scale, three numbers, then weight decay, l1 and l2 of each parameter.
    """
    rule = RULES[call.name]
    tables: dict[int, Table] = {}                                    # {dtype code: table that is not full}
    for k, group in enumerate(_groups(call)):
        code, arrays = group[0].dtype.code, group[:rule.members - rule.single]
        if group[0].dtype not in FLOATS:
            kind = group[0].dtype.name
            raise UnsupportedError(f"{call.name}: there is no CUDA kernel for {kind}", got=kind,
                                   expected="float32 or float64", fix="keep parameters in float32")
        flat = all(v.contiguous for v in arrays)
        table = tables.setdefault(code, _table()) if flat else _table()
        _add(table, arrays, group[len(arrays):], call.reals[4 + 3 * k:7 + 3 * k])
        if not flat:
            shape = group[0].shape or (1,)
            steps = [v.strides or (0,) for v in arrays]
            _queue(call, rule, code, table, packed(shape, [*steps, *[(0,) * len(shape)] * (5 - len(steps))]))
        elif table.full:
            _queue(call, rule, code, tables.pop(code))
    for code, table in tables.items():
        _queue(call, rule, code, table)


def _queue(call: Call, rule: Rule, code: int, table: Table, walk: bytes = _NO_WALK) -> None:
    """Queue the kernels of a table. walk: the layout of its only parameter, if that is not contiguous."""
    lr, step = call.args[:2]
    arguments = (table.raw(), int(walk is _NO_WALK), walk, lr.raw(), step.pointer,
                 _SETTINGS.pack(*call.reals[:4], call.ints[0]), call.work)
    where, name = _module(code), call.name
    if table.pieces:
        for function in [f"{name}_norms", name] if rule.norms else [name]:
            call.run_of(where, function, *arguments, blocks=min(table.pieces, MOST_BLOCKS),
                        threads=table.threads)
    if rule.end:
        call.run_of(where, f"{name}_end", *arguments, blocks=1, threads=32)
