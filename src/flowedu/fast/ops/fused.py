"""fused: a chain of elementwise ops as one kernel. The pass `fuse` inserts the op (fast/passes/fuse.py)."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowedu.core.ops import axes
from flowedu.core.ops.define import REGISTRY, define
from flowedu.core.ops.program import Formula
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.errors import ShapeError
from flowedu.ops.types import Ints, Shape


def _starts(xs: Sequence[Spec | np.ndarray], shape: Shape, ints: Ints) -> list[int]:
    """Return the output axis that is aligned with the first axis of each operand."""
    return [ints[1 + i] if ints[0] else len(shape) - x.ndim for i, x in enumerate(xs)]


def _fused_axes(xs: Sequence[Spec], shape: Shape, ints: Ints) -> str:
    out = axes.same(len(shape))
    terms = ["".join("1" if n == 1 and shape[s + d] != 1 else out[s + d] for d, n in enumerate(x.shape))
             for x, s in zip(xs, _starts(xs, shape, ints))]
    return ",".join(terms) + "->" + out


def _check_fused(xs: Sequence[Spec], shape: Shape, ints: Ints) -> None:
    for x, s in zip(xs, _starts(xs, shape, ints)):
        if s < 0 or any(n not in (1, shape[s + d]) for d, n in enumerate(x.shape)):
            raise ShapeError("fused: an operand does not broadcast", expected=str(tuple(shape)),
                             got=str(x.shape))


def _fused_ref(xs: tuple[np.ndarray, ...], formula: Formula, shape: Shape, ints: Ints) -> np.ndarray:
    lifted = [x.reshape(x.shape + (1,) * (len(shape) - s - x.ndim))
              for x, s in zip(xs, _starts(xs, shape, ints))]
    types = formula.types("fused", [as_dtype(x.dtype) for x in xs])
    values = dict(enumerate(lifted)) | {i: np.asarray(v, types[i].numpy) for i, v in formula.consts.items()}
    for name, out, operands in formula.instrs:
        op = REGISTRY[name]
        values[out] = op.ask(op.ref, dict(zip(op.inputs, [values[o] for o in operands])))
    return np.broadcast_to(values[formula.outs[0]], shape)


fused = define(
    "fused(*xs, formula, shape, dtype=None, ints=(0,)) -> y",
    Meaning(_fused_axes, _fused_ref, shape=lambda shape: shape, dtype=lambda xs, dtype: dtype or xs[0].dtype,
            check=_check_fused),
    Kernel("elementwise", pack=lambda ints: (ints, ()), contiguous=False, inplace=["xs"]),
    Split(localize=lambda out: {"shape": out.shape}),
    Laws([dict(shapes=[(6, 12), (12,), (6, 12)], shape=(6, 12), formula=Formula(
        3, [("mul", 4, (0, 1)), ("exp", 5, (4,)), ("sub", 6, (5, 2)), ("mul", 7, (6, 3))], [7], {3: 0.5}))]),
    doc="A chain of elementwise ops as one kernel.")
