"""Answers to the exercises of chapter 7."""
import numpy as np


def offsets(shapes):
    ends = [0]
    for shape in shapes:
        ends.append(ends[-1] + int(np.prod(shape)))
    return ends


def pack(arrays):
    shapes = [a.shape for a in arrays]
    return np.concatenate([a.ravel() for a in arrays]), offsets(shapes), shapes


def view(data, offsets, shapes, i):
    return data[offsets[i]:offsets[i + 1]].reshape(shapes[i])


def replace(data, offsets, shapes, i, new):
    arrays = [new if k == i else view(data, offsets, shapes, k) for k in range(len(shapes))]
    grown = new.size != offsets[i + 1] - offsets[i]
    return *pack(arrays), len(data) - offsets[i + 1] if grown else 0


def linear_taps(source, target):
    taps = []
    for k in range(target):
        at = (k + 0.5) * source / target - 0.5
        left = int(np.floor(at))
        b = at - left
        inside = [min(max(n, 0), source - 1) for n in (left, left + 1)]
        taps.append(((inside[0], 1 - b), (inside[1], b)))
    return taps


def aligned(sizes, alignment):
    height, width = (-(-max(n) // max(alignment, 1)) * max(alignment, 1) for n in zip(*sizes))
    return height, width, 1 - sum(h * w for h, w in sizes) / (len(sizes) * height * width)


def batches(sizes, count):
    """Bands of similar height, each sorted by width: area alone puts a high picture next to a wide one."""
    by_height = sorted(range(len(sizes)), key=lambda i: sizes[i])
    bands = max(1, round((len(sizes) / count) ** 0.5))
    band = -(-len(sizes) // bands // count) * count
    order = []
    for start in range(0, len(sizes), band):
        order += sorted(by_height[start:start + band], key=lambda i: sizes[i][1])
    return [order[k:k + count] for k in range(0, len(order), count)]
