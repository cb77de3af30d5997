"""Laws of chapter 7: tensors of different sizes in one allocation, and resized images."""
from __future__ import annotations

import numpy as np

from flowedu.learn.laws import Law, Words, case_of, pair


def _lists(rng, size):
    shapes = [(1, rng.randint(0, 1 + size), rng.randint(1, 1 + size)) for _ in range(rng.randint(1, 1 + size))]
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


def _made(shapes):
    from flowedu.core.buffers.tensor_list import TensorList
    arrays, at = [], 0
    for s in shapes:
        n = int(np.prod(s))
        arrays.append(np.arange(at, at + n, dtype=np.float32).reshape(s))
        at += n
    return TensorList(arrays), arrays


def _item_said(case):
    shapes, i = case
    return f"  smallest case   tensor {i} of {len(shapes)}, of shape{'s' * (len(shapes) > 1)} {', '.join(map(str, shapes))}"


def _item_judged(case, yours):
    shapes, i = case
    tensors, arrays = _made(shapes)
    got, want = yours(tensors, i), arrays[i]
    said = _item_said(case)
    if getattr(got, "shape", None) != want.shape or not np.array_equal(got, want):
        return [said, *pair("should be", getattr(got, "tolist", lambda: got)(), want.tolist())]
    if want.size and not np.shares_memory(got, tensors.data):
        return [said, "  yours           is a copy: what is written into it does not reach the list"]
    return None


def _outside_judged(case, yours):
    shapes, _ = case
    tensors, _ = _made(shapes)
    for i in (len(shapes), -len(shapes) - 1):
        try:
            got = yours(tensors, i)
        except IndexError:
            continue
        mine = Words(f"a tensor of shape {got.shape}") if hasattr(got, "shape") else got
        return [f"  smallest case   tensor {i} of {len(shapes)}", *pair("should be", mine, Words("an IndexError"))]
    return None


item = Law("tensor i, a view of the list's memory", _lists, _item_judged, _smaller_lists, cases=100,
           told=case_of(_item_said))
outside = Law("an IndexError outside of the list", _lists, _outside_judged, _smaller_lists, cases=30,
              told=lambda case: f"tensor {len(case[0])} of {len(case[0])}")


# ---- which pixels, which weights
KINDS = ("nearest_neighbor", "bilinear", "area", "bicubic")


def _sizes(rng, size):
    return rng.randint(1, 3 * size), rng.randint(1, 3 * size), rng.choice(KINDS)


def _smaller_sizes(case):
    s, t, kind = case
    others = ((s - 1, t), (s, t - 1), (s // 2, t), (s, t // 2))
    yield from ((a, b, kind) for a, b in others if a >= 1 and b >= 1 and (a, b) != (s, t))


def _size_said(case):
    s, t, kind = case
    return f"  smallest case   {kind}, {s} pixel{'s' * (s > 1)} to {t}"


def _parts(case, yours):
    s, t, kind = case
    index, weight = (np.asarray(a) for a in yours(s, t, kind))
    return index, weight, _size_said(case)


def _listed(index, weight, i):
    return f"{index[:, i].tolist()}, weights {[round(float(w), 3) for w in weight[:, i]]}"


def _one_judged(case, yours):
    index, weight, said = _parts(case, yours)
    if index.shape != weight.shape or index.ndim != 2 or index.shape[1] != case[1]:
        return [said, f"  yours           indices {index.shape}, weights {weight.shape}",
                f"  should be       (taps, {case[1]})"]
    if index.min() < 0 or index.max() >= case[0]:
        return [said, f"  yours           looks at pixel {index.max() if index.max() >= case[0] else index.min()}"]
    total = weight.sum(0)
    bad = np.argwhere(~np.isclose(total, 1, atol=1e-5))
    if bad.size:
        i = int(bad[0][0])
        return [said, f"  new pixel {i}     weights {weight[:, i].round(3).tolist()} sum to {total[i]:.3f}, not 1"]
    return None


def _places_judged(case, yours):
    """A ramp becomes the ramp of centres, where no edge is near; area: the mean of what a pixel covers."""
    s, t, kind = case
    if kind == "bicubic":                                            # does not keep ramps; see _edge_judged
        return None
    index, weight, said = _parts(case, yours)
    ramp = np.arange(s) + 0.5                                        # the pixel's centre
    got = (ramp[index] * weight).sum(0)
    step = s / t
    if kind == "nearest_neighbor":
        want, sure = np.floor(np.arange(t) * step) + 0.5, np.ones(t, bool)
    else:
        want = (np.arange(t) + 0.5) * step
        sure = (want >= 2) & (want <= s - 2)
        if kind == "area" and t < s:                                 # as much of each pixel as the new one covers
            start, i = np.arange(t)[:, None] * step, np.arange(s)
            share = np.clip(np.minimum(i + 1, start + step) - np.maximum(i, start), 0, None)
            want, sure = (share * ramp).sum(1) / step, np.ones(t, bool)
    bad = np.argwhere(sure & ~np.isclose(got, want, atol=1e-3))
    if not bad.size:
        return None
    i = int(bad[0][0])
    return [said, f"  new pixel {i} has its centre at {want[i]:.3f} of the old ones",
            f"  yours           pixels {_listed(index, weight, i)}: centre {got[i]:.3f}"]


def _same_judged(case, yours):
    s, _, kind = case
    index, weight, _ = _parts((s, s, kind), yours)
    picture = np.random.default_rng(s).random(s).astype(np.float32)
    got = (picture[index] * weight).sum(0)
    if np.allclose(got, picture, atol=1e-5):
        return None
    i = int(np.argmax(np.abs(got - picture)))
    return [f"{_size_said((s, s, kind))}: nothing should change",
            f"  new pixel {i}     pixels {_listed(index, weight, i)}"]


def _edge_judged(case, yours):
    """Near the edge, too: the pixel at the edge again."""
    s, t, kind = case
    kind = "bicubic" if kind == "bicubic" else "bilinear"
    index, weight, said = _parts((s, t, kind), yours)
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
    return [said, f"  new pixel {i} lies at {at[i]:.3f}, between pixels {clip(low)[i]} and {clip(low + 1)[i]}",
            f"  yours           pixels {_listed(index, weight, i)}"]


weights_one = Law("weights sum to 1, pixels are there", _sizes, _one_judged, _smaller_sizes, cases=120,
                  told=case_of(_size_said))
centres = Law("a new pixel lies where its centre does", _sizes, _places_judged, _smaller_sizes, cases=150,
              told=case_of(_size_said))
unchanged = Law("equal sizes change nothing", _sizes, _same_judged, _smaller_sizes, cases=60,
                told=case_of(lambda case: _size_said((case[0], case[0], case[2]))))
def _keys(d, a=-0.75):
    return np.where(d <= 1, (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1, a * d ** 3 - 5 * a * d ** 2 + 8 * a * d - 4 * a)


edges = Law("beyond the edge the pixel at it", _sizes, _edge_judged, _smaller_sizes, cases=80, told=case_of(_size_said))
