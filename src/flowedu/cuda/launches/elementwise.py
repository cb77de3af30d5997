"""Launches of elementwise programs: by four elements if all operands are contiguous, else by strides."""
from __future__ import annotations

import functools

from flowedu.cuda.launch import ALL, Call, blocks, kernel
from flowedu.cuda.programs import place
from flowedu.cuda.walk import joined, packed, spread
from flowedu.ops.halves import widened


@kernel("elementwise", types=ALL)
def elementwise(call: Call) -> None:
    """Queue an elementwise program.

    ints: [0] aligns the inputs to the right, as in broadcasting; [1, s0, s1, ...] aligns the first axis of
    input k with axis sk of the output.
    """
    *xs, y = call.args
    n = y.size
    if n == 0:
        return
    first = tuple(call.ints[1:]) if call.ints and call.ints[0] else tuple([y.ndim - x.ndim for x in xs])
    side_by_side, walk = _steps(tuple([v.shape for v in call.args]), tuple([v.strides for v in call.args]),
                                first)
    formula = widened(call.formula, [x.dtype for x in xs], [y.dtype])
    where, name = place(formula, tuple([x.dtype.code for x in xs]))
    pointers = [v.pointer for v in call.args]
    if side_by_side and not any(p % 16 for p in pointers):
        call.run_of(where, f"{name}_flat", n, *pointers, blocks=blocks(-(-n // 4)))
    else:
        call.run_of(where, f"{name}_strided", n, walk, *pointers, blocks=blocks(n))


@functools.lru_cache(maxsize=4096)                                   # shapes repeat from call to call
def _steps(shapes: tuple, strides: tuple, first: tuple[int, ...]) -> tuple[bool, bytes]:
    """Return (True if all operands are contiguous, struct Walk). The last operand is the output."""
    operands = [spread(shape, steps, at, shapes[-1]) for shape, steps, at in zip(shapes, strides, first)]
    shape, operands = joined(shapes[-1], [*operands, strides[-1]])
    return len(shape) == 1 and all(s == [1] for s in operands), packed(shape, operands)
