"""Launches of data movement kernels: copy, concat, slice_grad, slice_part, fill; and cast and range."""
from __future__ import annotations

from flowedu.core.ops.program import raw_number
from flowedu.core.values.dtype import BY_CODE
from flowedu.cuda.launch import ALL, NUMBERS, Call, blocks, kernel
from flowedu.cuda.modules import HEAD, Module, once, text
from flowedu.cuda.view import View
from flowedu.cuda.walk import joined, packed


@kernel("copy", file="copy.cu", types=ALL, moved=True)
def copy(call: Call) -> None:
    move(call, *call.args)


def move(call: Call, x: View, y: View) -> None:
    """Queue a copy of x to y, which has the same shape."""
    n = y.size
    if n == 0:
        return
    # Axes in the order of the destination's memory, so that neighbouring threads write neighbours.
    order = sorted(range(y.ndim), key=lambda d: -abs(y.strides[d]))
    shape, (xs, ys) = joined([y.shape[d] for d in order], [[v.strides[d] for d in order] for v in (x, y)])
    if (len(shape) > 1 and ys[-1] == 1 and xs[-1] != 1 and 1 in xs and min(shape[-1],
                                                                           shape[xs.index(1)]) >= 16):
        _transpose(call, x, y, shape, xs, ys)
    else:
        call.each("copy_strided", n, packed(shape, [xs, ys]), x.pointer, y.pointer, n=n)


def _transpose(call: Call, x: View, y: View, shape, xs, ys) -> None:
    """Queue a copy between arrays that are contiguous along different axes."""
    k, rest = xs.index(1), range(len(shape) - 1)
    outer = [d for d in rest if d != k]
    sizes, steps = (([shape[d] for d in outer], [[s[d] for d in outer] for s in (xs, ys)]) if outer
                    else ([1], [[0], [0]]))
    count = 1
    for n in sizes:
        count *= n
    tiles = count * -(-shape[k] // 32) * -(-shape[-1] // 32)
    call.run("copy_transposed", count, packed(sizes, steps), shape[k], shape[-1], xs[-1], ys[k], x.pointer,
             y.pointer, blocks=blocks(tiles, 1), threads=(32, 8, 1))


@kernel("concat", file="copy.cu", types=ALL, moved=True)
def concat(call: Call) -> None:
    """ints: [axis]. Each input is copied into its band of the output."""
    *xs, y = call.args
    at = 0
    for x in xs:
        move(call, x, y.band(call.ints[0], at, x.shape[call.ints[0]]))
        at += x.shape[call.ints[0]]


@kernel("slice_grad", file="copy.cu", types=ALL, moved=True)
def slice_grad(call: Call) -> None:
    """ints: start of every axis, then step of every axis. Fills dx with zeros, and copies dy to its slice."""
    dy, dx = call.args
    if dy.size != dx.size:
        call.each("fill", dx.size, 0, dx.pointer, n=dx.size)
    start, step = call.ints[:dx.ndim], call.ints[dx.ndim:]
    first = sum(a * s for a, s in zip(start, dx.strides)) * dx.dtype.bytes
    move(call, dy, View(dx.pointer + first, dx.dtype, dy.shape, [a * s for a, s in zip(step, dx.strides)]))


def _pack_slice_part(names: dict) -> tuple:
    return tuple(n for a in ("start", "stop", "step", "first") for n in names[a]), ()


@kernel("slice_part", file="copy.cu", types=ALL, moved=True, pack=_pack_slice_part)
def slice_part(call: Call) -> None:
    """Copy the elements of a slice that x, a part of an array, contains. The other elements of y are zeros.

    ints: start, stop and step of every axis, then the position of x's first element in the whole array.
    """
    x, y = call.args
    d = x.ndim
    # (n, start, stop, step, first)
    axes = [*zip(x.shape, *[call.ints[k * d:k * d + d] for k in range(4)])]
    low = [max(-(-(f - a) // s), 0) for _, a, _, s, f in axes]  # first index of y that x contains
    size = [max(min(-(-(f + n - a) // s), -(-(b - a) // s)) - at, 0)
            for at, (n, a, b, s, f) in zip(low, axes)]
    call.each("fill", y.size, 0, y.pointer, n=y.size)
    if 0 not in size:
        from_ = sum((a + at * s - f) * t for at, t, (_, a, _, s, f) in zip(low, x.strides,
                                                                           axes)) * x.dtype.bytes
        to = sum(at * t for at, t in zip(low, y.strides)) * y.dtype.bytes
        move(call, View(x.pointer + from_, x.dtype, size,
                        [t * s for t, (_, _, _, s, _) in zip(x.strides, axes)]),
             View(y.pointer + to, y.dtype, size, y.strides))


@kernel("fill", file="copy.cu", types=ALL, moved=True)
def fill(call: Call) -> None:
    """reals: [value] for floating outputs, ints: [value] for the others."""
    y = call.args[-1]
    value = call.reals[0] if y.dtype.is_floating_point else call.ints[0]
    call.each("fill", y.size, int.from_bytes(raw_number(value, y.dtype), "little", signed=True), y.pointer,
              n=y.size)


def cast_source(code: int) -> str:
    """Return the source of the casts from one element type to all others."""
    return HEAD + f"#define FROM {code}\n" + text("cast.cu")


@once
def _casts(code: int) -> Module:
    return Module(cast_source(code))


@kernel("cast", types=ALL)
def cast(call: Call) -> None:
    x, y = call.args
    if y.size:
        shape, strides = joined(y.shape, [x.strides])
        call.run_of(_casts(call.row.code), f"cast_to_{BY_CODE[y.dtype.code].name}", y.size,
                    packed(shape, strides), x.pointer, y.pointer,
                    blocks=blocks(y.size))


@kernel("range", file="range.cu", types=NUMBERS)
def range_(call: Call) -> None:
    """ints: [start, step]."""
    y = call.args[0]
    call.each("range", y.size, *call.ints, y.pointer, n=y.size)
