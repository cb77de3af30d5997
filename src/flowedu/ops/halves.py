"""Every op of float32 takes float16 and bfloat16: numbers are read into float32, computed with there, and rounded once.

Elementwise ops do it tile by tile (core/ops/program.pyx), products panel by panel (_kernels/ops/matmul_half.pyx). The
others, where no kernel loads 16-bit floats itself, go slice by slice (slices.py) through scratch (_kernels/ops/narrow.pyx).
"""
from __future__ import annotations

import importlib
from collections.abc import Sequence

import flowedu._kernels as kernels
from flowedu.core.ops import axes
from flowedu.core.ops.define import define
from flowedu.core.ops.record import Effects, Kernel, Laws, Meaning
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.errors import ShapeError
from flowedu.ops.slices import slices

kernels.register("matmul_half")
_narrow = importlib.import_module(f"flowedu._kernels.{kernels.ISA}.narrow")


def _row(op, wide: tuple[int, int], specs: Sequence[Spec], outs: Sequence[Spec], attrs: tuple):
    """The kernel of a call with 16-bit floats, and its `extra`."""
    written = op.mutates(len(specs)) if op.mutates else ()
    return _narrow.KERNEL, _narrow.Wide(*wide, written, slices(op, specs, outs, attrs, written))


kernels.NARROW.update({half.code: _row for half in dt.HALVES})


def _fits(value, ref):
    if value.shape != ref.shape:
        raise ShapeError("round_into: value does not fit", expected=str(ref.shape), got=str(value.shape))


round_into = define(
    "round_into(value, ref) -> ()",
    Meaning(lambda value: "{0},{0}->".format(axes.same(value.ndim)), lambda value, ref: (value.astype(ref.dtype),),
            shape=lambda: (), check=_fits),
    Kernel("cast", contiguous=False), Effects(mutates=lambda n: [1]), Laws([dict(shapes=[(6, 12), (6, 12)])]),
    doc="Writes value into ref, in the type of ref.")
