"""Laws of chapter 1: strides, broadcasting, and views."""
from __future__ import annotations

import warnings

import numpy as np

from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.dtype import float32
from flowedu.core.values.spec import Spec, row_major
from flowedu.errors import ShapeError
from flowedu_course.laws import SMALLEST, Words, each, fewer, holds, pair, same, shape, smaller_shapes

SHAPES = ((), (0,), (1,), (2, 0, 3), (1, 1), (4, 1, 2))


@holds("the strides are NumPy's, in elements", shape, smaller_shapes, told=lambda case: f"shape {case}",
       edges=SHAPES)
def as_numpy(case, yours):
    got, want = yours(case), tuple(s // 4 for s in np.empty(case, np.float32).strides)
    if 0 in case:
        want = _running(case)                      # NumPy's strides are arbitrary there; ours are never 0
    if same(got, want):
        return None
    return pair("should be", got, want)


def _running(case):
    out, step = [], 1
    for n in reversed(case):
        out.insert(0, step)
        step *= max(n, 1)
    return tuple(out)


@holds("the sizes may be a list", shape, smaller_shapes, cases=20,
       told=lambda case: f"shape {list(case)}, a list", edges=SHAPES)
def takes_lists(case, yours):
    got, want = yours(list(case)), _running(case)
    return None if same(got, want) else pair("should be", got, want)


# ---- broadcasting
def _two_shapes(rng, size):
    full = shape(rng, size + 1, rank=4)
    shapes = []
    for _ in range(rng.randint(1, 3)):
        s = [1 if rng.random() < 0.3 else n for n in full][rng.randint(0, len(full)):]
        if s and rng.random() < 0.2:
            s[rng.randrange(len(s))] += 1
        shapes.append(tuple(s))
    if len(shapes) > 1 and rng.random() < 0.15:
        shapes.insert(1, (1,) * len(shapes[0]))        # ones between two shapes that may not match
    return shapes


def _smaller_lists(case):
    return [*fewer(case), *each(smaller_shapes)(case)]


def _right(case):
    try:
        return np.broadcast_shapes(*case)
    except ValueError:
        return None


SIZES = ([], [()], [(0,)], [(0,), (1,)], [(1,), (0,)], [(0, 3), (1, 3)], [(0,), (2,)], [(1,), (1,)],
         [(2,), (), (1, 1)],
         [(2,), (3,)], [(2,), (1,), (3,)])
_joined = lambda case: f"shape{'s' * (len(case) > 1)} {' and '.join(map(str, case)) or '(none)'}"


@holds("the shape equals NumPy's broadcast shape", _two_shapes, _smaller_lists, cases=300, told=_joined,
       edges=SIZES)
def broadcasts(case, yours):
    want = _right(case)
    if want is None:
        return None
    got = yours(*case)
    if not same(got, want):
        return pair("should be", got, want)
    if not isinstance(got, tuple):
        return [*pair("should be", got, want), "  a tuple: the library compares it with shapes, which are "
                "tuples"]
    return None


@holds("shapes that do not broadcast raise an error", _two_shapes, _smaller_lists, cases=300, told=_joined,
       edges=SIZES)
def refuses(case, yours):
    if _right(case) is not None:
        return None
    said = f"{SMALLEST}{_joined(case)} do not broadcast"
    try:
        got = yours(*case)
    except ShapeError as error:
        if all(str(tuple(s)) in str(error) for s in case):
            return None
        return [said, "  your error does not name all the shapes", f"  message         "
                f"{str(error).splitlines()[0]}"]
    return [said, *pair("should be", got, Words("an error: raise ShapeError, naming the shapes"))]


# ---- slices as views. A case is (shape, start, stop, step, strides), each with an entry per axis
def _slices(rng, size):
    s = tuple(rng.randint(1, 2 + size) for _ in range(rng.randint(1, 3)))
    start = tuple(rng.randint(0, n - 1) for n in s)
    strides = list(row_major(s))
    if rng.random() < 0.4:
        rng.shuffle(strides)                       # as after a transpose
    strides = tuple(0 if rng.random() < 0.1 else t for t in strides)         # 0: broadcast
    return (s, start, tuple(rng.randint(a, n) for a, n in zip(start, s)), tuple(rng.randint(1, 3) for _ in s),
            strides)


def _smaller_slices(case):
    s, start, stop, step, strides = case
    if len(s) > 1:
        for i in range(len(s)):
            yield tuple(t[:i] + t[i + 1:] for t in case)
    for i in range(len(s)):
        cut = lambda t, v, i=i: (*t[:i], v, *t[i + 1:])
        if s[i] > max(stop[i], 1):
            yield cut(s, s[i] - 1), start, stop, step, strides
        if stop[i] > start[i] + 1:
            yield s, start, cut(stop, stop[i] - 1), step, strides
        if step[i] > 1:
            yield s, start, stop, cut(step, 1), strides
        if start[i] > 0 and stop[i] > 0:
            yield s, cut(start, start[i] - 1), cut(stop, stop[i] - 1), step, strides


def _sliced(case):
    s, start, stop, step, strides = case
    return (f"x of shape {s}, strides {strides}, "
            f"[{', '.join(f'{a}:{b}:{t}' for a, b, t in zip(start, stop, step))}]")


@holds("each element is read from its position", _slices, _smaller_slices, cases=150, told=_sliced,
       edges=[((1,), (0,), (1,), (1,), (1,)), ((3,), (1,), (3,), (2,), (0,)),
              ((2, 3), (1, 0), (1, 3), (1, 2), (3, 1)),
              ((2, 3), (1, 2), (2, 3), (1, 1), (1, 2))])
def slice_places(case, yours):
    s, start, stop, step, strides = case
    got, offset = yours(strides, start, step)
    if len(got) != len(s):
        return [f"  yours           {len(got)} strides for {len(s)} axes"]
    said = f"  yours           strides {tuple(got)}, offset {offset}"
    for at in np.ndindex(*(max(-(-(b - a) // t), 0) for a, b, t in zip(start, stop, step))):
        want = sum((a + i * t) * n for a, i, t, n in zip(start, at, step, strides))
        mine = offset + sum(i * n for i, n in zip(at, got))
        if mine != want:
            return [said, f"  element {at} is read from position {mine} of memory, should be {want}"]
    return None


# ---- reshapes as views
def _layouts(rng, size):
    """Draw (shape, order of axes, step of each axis, new shape). A step of 0 repeats an element."""
    s = tuple(0 if rng.random() < 0.04 else rng.randint(1, 1 + size) for _ in range(rng.randint(1, 3)))
    order = list(range(len(s)))
    if rng.random() < 0.5:
        rng.shuffle(order)
    step = tuple(rng.choice((2, 2, 0)) if rng.random() < 0.25 else 1 for _ in s)
    n = int(np.prod([-(-s[d] // (step[d] or 1)) for d in order]))
    if n == 0:
        new = [0, *(rng.randint(0, 3) for _ in range(rng.randint(0, 2)))]
        rng.shuffle(new)
        return s, tuple(order), step, tuple(new)
    new, left = [], n
    while left > 1 and len(new) < 3:
        d = rng.choice([k for k in range(1, left + 1) if left % k == 0])
        new.append(d)
        left //= d
    new.append(left)
    rng.shuffle(new)
    return s, tuple(order), step, tuple(new)


def _view_of(case):
    s, order, step, _ = case
    there = tuple(min(n, 1) if t == 0 else n for n, t in zip(s, step))
    x = np.broadcast_to(np.arange(int(np.prod(there)), dtype=np.float32).reshape(there), s).transpose(order)
    return x[(*(slice(None, None, step[d] or 1) for d in order), ...)]


def _can(x, new):
    """Return the strides of NumPy's view in elements, or None if the reshape needs a copy."""
    y = x.view()
    try:
        y.shape = new
    except AttributeError:
        return None
    return tuple(s // 4 for s in y.strides)


def _describe_reshape(case):
    x = _view_of(case)
    return f"shape {x.shape}, strides {tuple(s // 4 for s in x.strides)} -> {case[3]}"


def _smaller_layouts(case):
    s, order, step, new = case
    if step != (1,) * len(s):
        n = int(np.prod(s))
        if n == int(np.prod(new)):
            yield s, order, (1,) * len(s), new
    if len(new) > 1:
        for i in range(len(new) - 1):
            yield s, order, step, (*new[:i], new[i] * new[i + 1], *new[i + 2:])


# Views with several runs of axes: (3, 2, 4) has the runs 3 and 2 * 4; (2, 3, 2, 2) has 2 * 3 and 2 * 2.
_RUNS = [((2, 4, 3), (2, 0, 1), (1, 1, 1), new) for new in ((3, 8), (3, 4, 2), (6, 4), (3, 1, 8), (12, 2))]
_RUNS += [((2, 2, 2, 3), (2, 3, 0, 1), (1, 1, 1, 1), new) for new in ((6, 4), (3, 2, 4), (2, 12), (1, 6, 1, 4))]
# A view of 5,040 elements with the runs 7 * 5, 4 * 6, and 6. Also an axis of size 1 in front.
_LARGE = [((4, 6, 7, 5, 1, 6), order, (1,) * 6, new)
          for order in ((2, 3, 4, 0, 1, 5), (4, 2, 3, 0, 1, 5))
          for new in ((1, 5, 7, 3, 1, 8, 2, 3), (35, 144), (7, 5, 24, 6), (7, 5, 4, 36))]


@holds("a view if one is possible, otherwise None", _layouts, _smaller_layouts, cases=300,
       told=_describe_reshape, edges=[
           ((), (), (), ()), ((1,), (0,), (1,), ()), ((0,), (0,), (1,), (2, 0)),
           ((2, 0), (1, 0), (1, 1), (0,)),
           ((1, 1), (1, 0), (1, 1), (1,)), ((4,), (0,), (2,), (2, 1)), ((2, 3), (1, 0), (1, 1), (6,)),
           ((3,), (0,), (0,), (3, 1)), ((2, 2), (0, 1), (0, 0), (4,)),
           ((2, 1, 3), (2, 1, 0), (1, 1, 1), (3, 2)), *_RUNS],
       large=_LARGE)
def reshape_views(case, yours):
    x, new = _view_of(case), case[3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = _can(x, new)
    strides = tuple(s // 4 for s in x.strides)
    got = yours(x.shape, strides, new)
    if (got is None) != (want is None):
        return [*pair("should be", got, want), "  None means that this shape needs a copy"]
    if got is None or x.size == 0 and len(got) == len(new):
        return None
    # An axis of size 1 may have any stride.
    far = lambda t: tuple(s for s, n in zip(t, new) if n > 1)
    return None if len(got) == len(new) and far(got) == far(want) else pair("should be", got, want)


# ---- all windows
def _windows(rng, size):
    """Draw (shape, steps of a preceding slice, axis, window width, step)."""
    s = tuple(rng.randint(1, 2 + size) for _ in range(rng.randint(1, min(3, 1 + size))))
    before = tuple(2 if rng.random() < 0.2 else 1 for _ in s)
    axis = rng.randrange(len(s))
    return s, before, axis, rng.randint(1, -(-s[axis] // before[axis])), rng.randint(1, 3)


def _smaller_windows(case):
    s, before, axis, width, step = case
    for i in range(len(s)):
        if i != axis:
            yield s[:i] + s[i + 1:], before[:i] + before[i + 1:], axis - (i < axis), width, step
        if s[i] > 1 and (i != axis or -(-(s[i] - 1) // before[i]) >= width):
            yield (*s[:i], s[i] - 1, *s[i + 1:]), before, axis, width, step
    if max(before) > 1:
        yield s, (1,) * len(s), axis, width, step
    for w, t in ((width - 1, step), (width, step - 1)):
        if w >= 1 and t >= 1:
            yield s, before, axis, w, t


def _windowed(case):
    """Return (base array, the view of it that the windows are taken from)."""
    s, before, *_ = case
    block = np.arange(int(np.prod(s)), dtype=np.float32)
    return block, block.reshape(s)[tuple(slice(None, None, t) for t in before)]


def _describe_windows(case):
    _, x = _windowed(case)
    strides = tuple(t // 4 for t in x.strides)
    _, _, axis, width, step = case
    return f"x of shape {x.shape}, strides {strides}; axis {axis}, windows of {width}, step {step}"


@holds("the windows are views, nothing is copied", _windows, _smaller_windows, cases=150,
       told=_describe_windows, edges=[((1,), (1,), 0, 1, 1), ((3,), (1,), 0, 3, 1), ((3,), (1,), 0, 3, 2),
                                      ((4,), (1,), 0, 1, 3), ((5, 2), (2, 1), 0, 2, 1)])
def windows(case, yours):
    _, _, axis, width, step = case
    block, x = _windowed(case)
    want = np.lib.stride_tricks.sliding_window_view(x, width, axis)[(slice(None),
                                                                     ) * axis + (slice(None, None, step),)]
    op, spec = REGISTRY["unfold"], Spec(x.shape, float32)
    names = {"x": spec, "axis": axis, "size": width, "step": step}
    mine = op.ask(op.shape, names)
    strides = tuple(t // 4 for t in x.strides)
    if not same(mine, want.shape):
        return pair("shape should be", mine, want.shape)
    steps, offset = op.ask(op.view, {**names, "strides": strides, "out": Spec(want.shape, float32)})
    if len(steps) != want.ndim:
        return [f"  yours           {len(steps)} strides for {want.ndim} axes: the last one is for the axis "
                "inside a window"]
    places = np.full(want.shape, int(offset))
    for d, n in enumerate(want.shape):
        places += (np.arange(n) * int(steps[d])).reshape([-1 if e == d else 1 for e in range(want.ndim)])
    bad = np.argwhere(places != want)
    if not bad.size:
        return None
    at = tuple(map(int, bad[0]))
    beyond = ", outside the block" if not 0 <= places[at] < block.size else ""
    return [f"  yours           strides {tuple(steps)}, offset {offset}",
            f"  element {at}: position {places[at]} of memory{beyond}, should be {int(want[at])}"]
