"""Ops on float16 and bfloat16: inputs are converted to float32, computed, and rounded once.

Elementwise ops do this tile by tile (`widened`, and _kernels/ops/half_tiles.h), and matrix products panel by
panel (_kernels/ops/matmul_half.pyx). Other ops whose kernels do not load 16-bit floats are computed slice by
slice (slices.py) in scratch memory (_kernels/ops/narrow.pyx).
"""
from __future__ import annotations

import importlib
from collections.abc import Sequence
from itertools import count
from typing import Any

import flowedu._kernels as kernels
from flowedu.core.ops import axes
from flowedu.core.ops.define import Op, define
from flowedu.core.ops.program import Formula
from flowedu.core.ops.record import Effects, Kernel, Laws, Meaning
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.errors import ShapeError
from flowedu.ops.slices import slices

kernels.register("matmul_half", "cast_halves")
_narrow = importlib.import_module(f"flowedu._kernels.{kernels.ISA}.narrow")


def _row(op: Op, wide: tuple[int, int], specs: Sequence[Spec], outs: Sequence[Spec],
         attrs: tuple) -> tuple[tuple[int, int], Any]:
    """Return the kernel of a call with 16-bit floats, and its `extra`."""
    written = op.mutates(len(specs)) if op.mutates else ()
    return _narrow.KERNEL, _narrow.Wide(*wide, written, slices(op, specs, outs, attrs, written))


kernels.NARROW.update({half.code: _row for half in dt.HALVES})


def widened(formula: Formula, in_types: Sequence[dt.dtype], out_types: Sequence[dt.dtype]) -> Formula:
    """Return the formula for inputs of one 16-bit float dtype, or `formula` itself for other inputs.

    The inputs are converted to float32. The result is computed in float32 and rounded once.
    """
    key = (*in_types, *out_types)
    if key in formula.cache:
        return formula.cache[key]
    halves = {t for t in in_types if t in dt.HALVES}
    if len(halves) != 1 or any(t.is_floating_point for t in {*in_types} - halves):
        return formula
    half, = halves
    names = [name for name, _, _ in formula.instrs]
    if "widen" in names or all((name, half.code) in kernels.TILES for name in names):
        # It says so itself; or `where`: bytes are only chosen.
        return formula
    number = count(formula.nslots)
    wide = {i: next(number) for i, t in enumerate(in_types) if t is half}
    ends = {o: next(number) for o, t in zip(formula.outs, out_types) if t is half}
    formula.cache[key] = wider = Formula(
        formula.nin, [*[("widen", slot, (i,)) for i, slot in wide.items()],
                      *[(name, o, tuple([wide.get(k, k) for k in slots]))
                        for name, o, slots in formula.instrs],
                      *[(half.name, slot, (o,)) for o, slot in ends.items()]],
        [ends.get(o, o) for o in formula.outs], formula.consts,
        {slot: dt.float32 if t is half else t for slot, t in formula.dtypes.items()})
    return wider


def _fits(value: Spec, ref: Spec) -> None:
    if value.shape != ref.shape:
        raise ShapeError("round_into: value does not fit", expected=str(ref.shape), got=str(value.shape))


round_into = define(
    "round_into(value, ref) -> ()",
    Meaning(lambda value: "{0},{0}->".format(axes.same(value.ndim)),
            lambda value, ref: (value.astype(ref.dtype),), shape=lambda: (), check=_fits),
    Kernel("cast", contiguous=False), Effects(mutates=lambda n: [1]), Laws([dict(shapes=[(6, 12), (6, 12)])]),
    doc="Writes value into ref, in the type of ref.")
