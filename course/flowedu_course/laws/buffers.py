"""Laws of chapter 7: tensors of different sizes in one allocation, and resized images."""
from __future__ import annotations

import numpy as np

from flowedu.core.buffers.tensor_list import TensorList
from flowedu_course.laws import SMALLEST, Law, Words, half, holds, less, pair, simpler


def _lists(rng, size):
    shapes = [(1, rng.randint(0, 1 + size), rng.randint(1, 1 + size))
              for _ in range(rng.randint(1, 1 + size))]
    return shapes, rng.randint(-len(shapes), len(shapes) - 1)


def _smaller_lists(case):
    shapes, i = case
    for k in range(len(shapes)):
        if k != i % len(shapes):
            rest = shapes[:k] + shapes[k + 1:]
            yield rest, (i - (k < i) if i >= 0 else i + (k > i % len(shapes)))
    for k, (_, h, w) in enumerate(shapes):
        for s in ((1, h - 1, w), (1, h, w - 1)):
            if s[1] >= 0 and s[2] >= 1:
                yield [*shapes[:k], s, *shapes[k + 1:]], i


def _make_arrays(shapes):
    arrays, at = [], 0
    for s in shapes:
        n = int(np.prod(s))
        arrays.append(np.arange(at, at + n, dtype=np.float32).reshape(s))
        at += n
    return TensorList(arrays), arrays


def _describe_item(case):
    shapes, i = case
    return f"tensor {i} of {len(shapes)}, of shape{'s' * (len(shapes) > 1)} {', '.join(map(str, shapes))}"


LISTS = [([(1, 1, 1)], 0), ([(1, 0, 2)], -1), ([(1, 0, 1), (1, 2, 1), (1, 0, 3), (1, 1, 2)], 3),
         ([(1, 2, 1), (1, 0, 2)], -2)]


@holds("tensor i is a view of the list's memory", _lists, _smaller_lists, cases=100, told=_describe_item,
       edges=LISTS)
def item(case, yours):
    shapes, i = case
    tensors, arrays = _make_arrays(shapes)
    got, want = yours(tensors, i), arrays[i]
    if getattr(got, "shape", None) != want.shape or not np.array_equal(got, want):
        return pair("should be", getattr(got, "tolist", lambda: got)(), want.tolist())
    if want.size and not np.shares_memory(got, tensors.data):
        return ["  yours           is a copy: writing to it does not change the list"]
    return None


@holds("an index outside the list raises IndexError", _lists, _smaller_lists, cases=30, edges=LISTS,
       told=lambda case: f"tensor {len(case[0])} of {len(case[0])}")
def outside(case, yours):
    shapes, _ = case
    tensors, _ = _make_arrays(shapes)
    for i in (len(shapes), -len(shapes) - 1):
        try:
            got = yours(tensors, i)
        except IndexError:
            continue
        mine = Words(f"a tensor of shape {got.shape}") if hasattr(got, "shape") else got
        return [f"{SMALLEST}tensor {i} of {len(shapes)}", *pair("should be", mine, Words("an IndexError"))]
    return None


# ---- source pixels and their weights
KINDS = ("nearest_neighbor", "bilinear", "area", "bicubic")


def _sizes(rng, size):
    return rng.randint(1, 3 * size), rng.randint(1, 3 * size), rng.choice(KINDS)


_smaller_sizes = simpler((0, less(1)), (1, less(1)), (0, half(1)), (1, half(1)))


def _describe_size(case):
    s, t, kind = case
    return f"{kind}, {s} pixel{'s' * (s > 1)} to {t}"


def _parts(case, yours):
    s, t, kind = case
    return (np.asarray(a) for a in yours(s, t, kind))


def _listed(index, weight, i):
    return f"{index[:, i].tolist()}, weights {[round(float(w), 3) for w in weight[:, i]]}"


# In floating point, 49 * (2 / 98) is less than 1.
SIZES = [(1, 1, "bilinear"), (1, 3, "bicubic"), (3, 1, "area"), (2, 98, "nearest_neighbor"), (4, 2, "area")]


@holds("weights sum to 1, pixels are in the image", _sizes, _smaller_sizes, cases=120, told=_describe_size,
       edges=SIZES)
def weights_one(case, yours):
    index, weight = _parts(case, yours)
    if index.shape != weight.shape or index.ndim != 2 or index.shape[1] != case[1]:
        return [f"  yours           indices {index.shape}, weights {weight.shape}",
                f"  should be       (taps, {case[1]})"]
    if index.min() < 0 or index.max() >= case[0]:
        return [f"  yours           reads pixel {index.max() if index.max() >= case[0] else index.min()}"]
    total = weight.sum(0)
    bad = np.argwhere(~np.isclose(total, 1, atol=1e-5))
    if bad.size:
        i = int(bad[0][0])
        return [f"  new pixel {i}     weights {weight[:, i].round(3).tolist()} sum to {total[i]:.3f}, not 1"]
    return None


@holds("positions are those of pixel centres", _sizes, _smaller_sizes, cases=150, told=_describe_size,
       edges=SIZES)
def centres(case, yours):
    """Check the values of a resized ramp at the new pixel centres, away from edges; "area" averages the ramp."""
    s, t, kind = case
    # Does not preserve ramps; see _edge_judged.
    if kind == "bicubic":
        return None
    index, weight = _parts(case, yours)
    ramp = np.arange(s) + 0.5                                        # pixel centres
    got = (ramp[index] * weight).sum(0)
    step = s / t
    if kind == "nearest_neighbor":
        want, sure = np.arange(t) * s // t + 0.5, np.ones(t, bool)
    else:
        want = (np.arange(t) + 0.5) * step
        sure = (want >= 2) & (want <= s - 2)
        if kind == "area" and t < s:                                 # weight = overlap with the new pixel
            start, i = np.arange(t)[:, None] * step, np.arange(s)
            share = np.clip(np.minimum(i + 1, start + step) - np.maximum(i, start), 0, None)
            want, sure = (share * ramp).sum(1) / step, np.ones(t, bool)
    bad = np.argwhere(sure & ~np.isclose(got, want, atol=1e-3))
    if not bad.size:
        return None
    i = int(bad[0][0])
    return [f"  new pixel {i} has its centre at position {want[i]:.3f} of the old pixels",
            f"  yours           pixels {_listed(index, weight, i)}: centre {got[i]:.3f}"]


@holds("resizing to the same size changes nothing", _sizes, _smaller_sizes, cases=60, edges=SIZES,
       told=lambda case: _describe_size((case[0], case[0], case[2])))
def unchanged(case, yours):
    s, _, kind = case
    index, weight = _parts((s, s, kind), yours)
    picture = np.random.default_rng(s).random(s).astype(np.float32)
    got = (picture[index] * weight).sum(0)
    if np.allclose(got, picture, atol=1e-5):
        return None
    i = int(np.argmax(np.abs(got - picture)))
    return [f"{SMALLEST}{_describe_size((s, s, kind))}: nothing should change",
            f"  new pixel {i}     pixels {_listed(index, weight, i)}"]


def _edge_judged(case, yours):
    """Check all pixels, including those near an edge, where the edge pixel is repeated."""
    s, t, kind = case
    kind = "bicubic" if kind == "bicubic" else "bilinear"
    index, weight = _parts((s, t, kind), yours)
    picture = np.random.default_rng(s).random(s)
    at = (np.arange(t) + 0.5) * s / t - 0.5
    low = np.floor(at)
    clip = lambda i: np.clip(i, 0, s - 1).astype(int)
    if kind == "bilinear":
        want = picture[clip(low)] * (1 - (at - low)) + picture[clip(low + 1)] * (at - low)
    else:
        want = sum(picture[clip(low + k)] * _keys(np.abs(at - low - k)) for k in (-1, 0, 1, 2))
    got = (picture[index] * weight).sum(0)
    bad = np.argwhere(~np.isclose(got, want, atol=1e-5))
    if not bad.size:
        return None
    i = int(bad[0][0])
    return [f"  new pixel {i} is at {at[i]:.3f}, between pixels {clip(low)[i]} and {clip(low + 1)[i]}",
            f"  yours           pixels {_listed(index, weight, i)}"]


def _keys(d, a=-0.75):
    return np.where(d <= 1, (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1, a * d ** 3 - 5 * a * d ** 2 + 8 * a * d
                    - 4 * a)


edges = Law("beyond an edge, its pixel is repeated", _sizes, _edge_judged, _smaller_sizes, cases=80,
            told=_describe_size, edges=SIZES)
