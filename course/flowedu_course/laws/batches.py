"""Laws of chapter 7: images of different sizes in one tensor, and the choice of images that form a batch."""
from __future__ import annotations

import random

import numpy as np

from flowedu.core.buffers.tensor_buffer import TensorBuffer
from flowedu.core.values.dtype import as_dtype
from flowedu.errors import ShapeError
from flowedu.utils.data.buckets import padding
from flowedu_course.laws import Words, each, fewer, holds, less, pair, simpler


# ---- images of different sizes in one tensor
def _pictures(rng, size):
    """Draw ([(height, width)], channels, dtype, alignment)."""
    sizes = tuple((rng.randint(1, 2 * size), rng.randint(1, 2 * size))
                  for _ in range(rng.randint(1, 1 + size)))
    return sizes, rng.choice((1, 3)), rng.choice(("uint8", "float32")), rng.choice((0, 1, 2, 4))


_fewer_pixels = simpler((0, fewer), (0, each(simpler((0, less(1)), (1, less(1))))))


def _smaller_pictures(case):
    yield from _fewer_pixels(case)
    if case[1] > 1 or case[2] != "uint8":
        yield case[0], 1, "uint8", case[3]


def _make_buffer(case):
    """Return (buffer, maximum shape, dtype)."""
    sizes, channels, dtype, _ = case
    arrays, at = [], 1
    for h, w in sizes:
        n = h * w * channels
        arrays.append((np.arange(at, at + n) % 250 + 1).astype(dtype).reshape(h, w, channels))
        at += n
    return TensorBuffer(arrays), (64, 64, channels), as_dtype(dtype)


def _describe(case):
    sizes, channels, _, alignment = case
    given = ", ".join(f"{h} x {w}" for h, w in sizes)
    many = f"image{'s' * (len(sizes) > 1)} {given}, {channels} channel{'s' * (channels > 1)}"
    return f"{many}, alignment {alignment}"


EDGES = [(((1, 1),), 1, "uint8", 0), (((4, 4),), 1, "uint8", 4), (((5, 3), (4, 8)), 3, "float32", 4)]


@holds("each image is in its corner, the rest is 0", _pictures, _smaller_pictures, cases=120, told=_describe,
       edges=EDGES)
def corners(case, yours):
    sizes, channels, dtype, alignment = case
    buffer, limit, kind = _make_buffer(case)
    got = yours(buffer, limit, kind, alignment)
    up = lambda n: n if not alignment else (n + alignment - 1) // alignment * alignment
    want = (len(sizes), up(max(h for h, _ in sizes)), up(max(w for _, w in sizes)), channels)
    right = Words(f"shape {want}, {dtype}")
    if not hasattr(got, "shape"):
        return pair("should be", got, right)
    if (got.shape, str(got.dtype)) != (want, dtype):
        return pair("should be", Words(f"shape {got.shape}, {got.dtype}"), right)
    for i, (a, (h, w)) in enumerate(zip(buffer.items, sizes)):
        if not np.array_equal(got[i, :h, :w], a):
            return [f"  image {i} is not in its corner",
                    *pair("should be", got[i, :h, :w, 0].tolist(), a[..., 0].tolist())]
        rest = got[i].copy()
        rest[:h, :w] = 0
        if rest.any():
            return [f"  image {i} has {np.count_nonzero(rest)} elements around it that are not 0"]
    return None


@holds("an image larger than shape raises an error", _pictures, _smaller_pictures, cases=60, told=_describe,
       edges=EDGES)
def too_large(case, yours):
    sizes, channels, _, alignment = case
    buffer, _, kind = _make_buffer(case)
    height, width = max(h for h, _ in sizes), max(w for _, w in sizes)
    up = lambda n: n if not alignment else (n + alignment - 1) // alignment * alignment
    for limit in ((up(height), up(width), channels), (up(height), up(width) - 1, channels),
                  (up(height) - 1, 99, channels)):
        fits = up(height) * up(width) <= limit[0] * limit[1]
        try:
            yours(buffer, limit, kind, alignment)
        except ShapeError:
            if fits:
                return [f"  shape {limit}: raises an error, but {up(height)} x {up(width)} fits"]
            continue
        if not fits:
            return [f"  shape {limit}: should be a ShapeError: {up(height)} x {up(width)} does not fit"]
    try:
        yours(buffer, (99, 99, channels + 1), kind, alignment)
    except ShapeError:
        return None
    return [f"  shape (99, 99, {channels + 1}): should be a ShapeError: no image has so many channels"]


# ---- images that form a batch
def _sizes(rng, size):
    n = rng.randint(1, 6 * size)
    return tuple((rng.randint(1, 9), rng.randint(1, 9)) for _ in range(n)), rng.randint(1, 2 * size)


def _describe_call(case):
    return f"similar({list(case[0])}, {case[1]})"[:82]


@holds("each index once, batches of equal size", _sizes, simpler((0, fewer), (1, less(1))), cases=120,
       told=_describe_call, edges=[(((3, 4),) * n, 4) for n in (0, 1, 3, 4, 5, 8)])
def each_once(case, yours):
    sizes, count = case
    got = [list(b) for b in yours(list(sizes), count)]
    said = f"  yours           {got}"[:100]
    all_ = [i for b in got for i in b]
    if sorted(all_, key=str) != sorted(range(len(sizes)), key=str):
        twice = next((i for i in all_ if all_.count(i) > 1), None)
        missing = next((i for i in range(len(sizes)) if i not in all_), None)
        return [said, f"  index {missing} is in no batch" if twice is None else f"  index {twice} comes more "
                f"than once"]
    if any(len(b) != count for b in got[:-1]) or got and not 1 <= len(got[-1]) <= count:
        return [said, f"  batches of {[len(b) for b in got]}; all but the last should have {count}"]
    return None


def similar_stars(yours, seed=0):
    """Return the padding of 240 images in batches of 8 and of 12, as chosen and in the given order."""
    rng, mine, given = random.Random(seed + 3), 0, 0
    for count in (8, 12):
        sizes = [(rng.randint(20, 99), rng.randint(20, 99)) for _ in range(240)]
        batches = [list(b) for b in yours(list(sizes), count)]
        each_once.accept((tuple(sizes), count), each_once.judge((sizes, count), lambda *args, b=batches: b))
        mine += padding(sizes, batches)
        given += padding(sizes, [range(i, i + count) for i in range(0, 240, count)])
    return {"padding": mine, "given": given}
