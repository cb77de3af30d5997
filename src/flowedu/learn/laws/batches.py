"""Laws of chapter 7: images of many sizes in one tensor, and the choice of images that form a batch."""
from __future__ import annotations

import random

import numpy as np

from flowedu.learn.laws import Law, Words, case_of, pair


# ---- one tensor of many sizes
def _pictures(rng, size):
    """([(height, width)], channels, dtype, alignment)"""
    sizes = tuple((rng.randint(1, 2 * size), rng.randint(1, 2 * size)) for _ in range(rng.randint(1, 1 + size)))
    return sizes, rng.choice((1, 3)), rng.choice(("uint8", "float32")), rng.choice((0, 1, 2, 4))


def _smaller_pictures(case):
    sizes, channels, dtype, alignment = case
    if len(sizes) > 1:
        yield from ((sizes[:i] + sizes[i + 1:], channels, dtype, alignment) for i in range(len(sizes)))
    for i, (h, w) in enumerate(sizes):
        for s in ((h - 1, w), (h, w - 1)):
            if min(s) >= 1:
                yield (*sizes[:i], s, *sizes[i + 1:]), channels, dtype, alignment
    if channels > 1 or dtype != "uint8":
        yield sizes, 1, "uint8", alignment


def _made(case):
    """(buffer, shape as its limit, dtype)"""
    from flowedu.core.buffers.tensor_buffer import TensorBuffer
    from flowedu.core.values.dtype import as_dtype
    sizes, channels, dtype, _ = case
    arrays, at = [], 1
    for h, w in sizes:
        n = h * w * channels
        arrays.append((np.arange(at, at + n) % 250 + 1).astype(dtype).reshape(h, w, channels))
        at += n
    return TensorBuffer(arrays), (64, 64, channels), as_dtype(dtype)


def _said(case):
    sizes, channels, _, alignment = case
    given = ", ".join(f"{h} x {w}" for h, w in sizes)
    many = f"picture{'s' * (len(sizes) > 1)} {given}, {channels} channel{'s' * (channels > 1)}"
    return f"  smallest case   {many}, alignment {alignment}"


def _aligned_judged(case, yours):
    sizes, channels, dtype, alignment = case
    buffer, limit, kind = _made(case)
    got = yours(buffer, limit, kind, alignment)
    up = lambda n: n if not alignment else (n + alignment - 1) // alignment * alignment
    want = (len(sizes), up(max(h for h, _ in sizes)), up(max(w for _, w in sizes)), channels)
    right = Words(f"shape {want}, {dtype}")
    if not hasattr(got, "shape"):
        return [_said(case), *pair("should be", got, right)]
    if (got.shape, str(got.dtype)) != (want, dtype):
        return [_said(case), *pair("should be", Words(f"shape {got.shape}, {got.dtype}"), right)]
    for i, (a, (h, w)) in enumerate(zip(buffer.items, sizes)):
        if not np.array_equal(got[i, :h, :w], a):
            return [_said(case), f"  picture {i} is not in its corner",
                    *pair("should be", got[i, :h, :w, 0].tolist(), a[..., 0].tolist())]
        rest = got[i].copy()
        rest[:h, :w] = 0
        if rest.any():
            return [_said(case), f"  picture {i} has {np.count_nonzero(rest)} numbers beside it that are not 0"]
    return None


def _large_judged(case, yours):
    from flowedu.errors import ShapeError
    sizes, channels, _, alignment = case
    buffer, _, kind = _made(case)
    height, width = max(h for h, _ in sizes), max(w for _, w in sizes)
    up = lambda n: n if not alignment else (n + alignment - 1) // alignment * alignment
    for limit in ((up(height), up(width), channels), (up(height), up(width) - 1, channels), (up(height) - 1, 99, channels)):
        fits = up(height) * up(width) <= limit[0] * limit[1]
        try:
            yours(buffer, limit, kind, alignment)
        except ShapeError:
            if fits:
                return [_said(case), f"  shape {limit}: refused, and {up(height)} x {up(width)} fits"]
            continue
        if not fits:
            return [_said(case), f"  shape {limit}: should be a ShapeError, {up(height)} x {up(width)} does not fit"]
    try:
        yours(buffer, (99, 99, channels + 1), kind, alignment)
    except ShapeError:
        return None
    return [_said(case), f"  shape (99, 99, {channels + 1}): should be a ShapeError, no picture has so many channels"]


corners = Law("each picture in its corner, zeros elsewhere", _pictures, _aligned_judged, _smaller_pictures, cases=120,
              told=case_of(_said))
too_large = Law("what does not fit into shape is refused", _pictures, _large_judged, _smaller_pictures, cases=60,
                told=case_of(_said))


# ---- which pictures go together
def _sizes(rng, size):
    n = rng.randint(1, 6 * size)
    return tuple((rng.randint(1, 9), rng.randint(1, 9)) for _ in range(n)), rng.randint(1, 2 * size)


def _smaller_sizes(case):
    sizes, count = case
    yield from ((sizes[:i] + sizes[i + 1:], count) for i in range(len(sizes)) if len(sizes) > 1)
    if count > 1:
        yield sizes, count - 1


def _call_said(case):
    return f"  smallest case   similar({list(case[0])}, {case[1]})"


def _each_judged(case, yours):
    sizes, count = case
    given = list(sizes)
    got = [list(b) for b in yours(given, count)]
    if given != list(sizes):
        return [_call_said(case)[:100], f"  yours           changes sizes to {given}"[:100],
                "  they are somebody else's, who counts on their order"]
    said = [_call_said(case)[:100], f"  yours           {got}"[:100]]
    all_ = [i for b in got for i in b]
    if sorted(all_, key=str) != sorted(range(len(sizes)), key=str):
        twice = next((i for i in all_ if all_.count(i) > 1), None)
        missing = next((i for i in range(len(sizes)) if i not in all_), None)
        return [*said, f"  index {missing} is in no batch" if twice is None else f"  index {twice} comes more than once"]
    if any(len(b) != count for b in got[:-1]) or not 1 <= len(got[-1]) <= count:
        return [*said, f"  batches of {[len(b) for b in got]}; all but the last have {count}"]
    return None


each_once = Law("every index once, batches of one size", _sizes, _each_judged, _smaller_sizes, cases=120,
                told=case_of(_call_said))


def similar_stars(yours, seed=0):
    """Padding of 240 pictures in batches of 8, and of 12, against the order they come in."""
    from flowedu.utils.data.buckets import padding
    rng, mine, given = random.Random(seed + 3), 0, 0
    for count in (8, 12):
        sizes = [(rng.randint(20, 99), rng.randint(20, 99)) for _ in range(240)]
        mine += padding(sizes, [list(b) for b in yours(list(sizes), count)])
        given += padding(sizes, [range(i, i + count) for i in range(0, 240, count)])
    return {"padding": mine, "given": given}
