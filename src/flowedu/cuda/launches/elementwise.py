"""Launches of elementwise programs: four elements at a time where all operands lie side by side, else by their strides."""
from __future__ import annotations

from flowedu.cuda.launch import ALL, Call, blocks, kernel
from flowedu.cuda.programs import place
from flowedu.cuda.walk import joined, packed, spread


@kernel("elementwise", types=ALL)
def elementwise(call: Call) -> None:
    """ints: [0] aligns the inputs to the right, as broadcasting does; [1, s0, s1, ...] puts the first axis of input k under
    axis sk of the output."""
    *xs, y = call.args
    n = y.size
    if n == 0:
        return
    first = call.ints[1:] if call.ints and call.ints[0] else [y.ndim - x.ndim for x in xs]
    strides = [spread(x.shape, x.strides, at, y.shape) for x, at in zip(xs, first)]
    shape, strides = joined(y.shape, [*strides, y.strides])
    where, name = place(call.formula, tuple(x.dtype.code for x in xs))
    pointers = [v.pointer for v in call.args]
    if len(shape) == 1 and all(s == [1] for s in strides) and not any(p % 16 for p in pointers):
        call.run_of(where, f"{name}_flat", n, *pointers, blocks=blocks(-(-n // 4)))
    else:
        call.run_of(where, f"{name}_strided", n, packed(shape, strides), *pointers, blocks=blocks(n))
