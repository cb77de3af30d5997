"""Records of elementwise ops with one line of C, which the elementwise kernel runs by tiles.

(ops/formula.py has elementwise ops that are compositions, with one fused kernel each.)
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from types import CodeType

from flowedu.core.ops import axes
from flowedu.core.ops.define import Op, define
from flowedu.core.ops.program import Formula
from flowedu.core.ops.record import Kernel, Laws, Meaning, Split


def elementwise(signature: str, *parts: Split | Laws, tile: str | Formula, ref: Callable,
                grad: dict | Callable | None = None, dtype: Callable | None = None,
                doc: str = "") -> Op:
    """Define a broadcasting elementwise op.

    Args:
        signature: `"add(x, y) -> z"`.
        tile: the name of its formula in _kernels/core/formulas.h, or a Formula of several tiles.
        parts: see core/ops/record.py. ref, grad: as in `define`.
        dtype: function that returns the output dtype; default: that of the inputs.
    """
    names = inputs_of(signature)
    listed, scope = ", ".join(names), {"axes": axes, "what": signature.partition("(")[0]}
    equation = function(f"lambda {listed}: axes.elementwise({listed})", scope)
    shape = function(f"lambda {listed}: axes.broadcast({', '.join(s + '.shape' for s in names)}, "
                     "what=what)", scope)
    program = Formula.single(tile, len(names)) if isinstance(tile, str) else tile
    kernel = Kernel("elementwise", program=program, contiguous=False,
                    inplace=names if dtype is None else ())
    return define(signature, Meaning(equation, ref, shape=shape, dtype=dtype), kernel, *parts,
                  grad=grad, doc=doc)


def inputs_of(signature: str) -> list[str]:
    """Return the names of the inputs of "add(x, y) -> z"."""
    head = signature.partition("->")[0]
    return [n.strip() for n in head[head.index("(") + 1:head.rindex(")")].split("*")[0].split(",")
            if n.strip()]


def function(source: str, scope: dict) -> Callable:
    """Evaluate a lambda with this file's name, so that errors report the line of user code."""
    return eval(_code(source), scope)


@functools.cache                                                 # many ops have the same parameters
def _code(source: str) -> CodeType:
    return compile(source, __file__, "eval")
