"""Laws of chapter 6: messages between devices, reductions, and gradients between global and local tensors."""
from __future__ import annotations

import itertools
import math
from contextlib import contextmanager

import numpy as np

import flowedu as flow
from flowedu.core.ops.define import REGISTRY
from flowedu.core.sbp.boxing.primitives import route, stops
from flowedu.core.sbp.names import as_sbp
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.sbp import Layout
from flowedu.core.sbp.tensor.global_layout import layout_of
from flowedu.core.sbp.tensor.interpreter import on
from flowedu.core.sbp.tensor.shards import Joined
from flowedu.core.values.dtype import float32
from flowedu.core.values.spec import Spec
from flowedu.distributed import set_virtual_devices
from flowedu.swap import swapped
from flowedu_course.laws import copy_function, each, holds, less, pair


# ---- pairs of layouts
def _layout(rng, size, partial):
    grid = rng.choice([(1,), (2,), (2,), (3,), *([(2, 2)] if size > 2 else [])])
    devices = list(range(rng.choice((0, 0, 1)), 8))[:math.prod(grid)]
    kinds = ["B", "S0", "S1"] + (["P", "P"] if partial else [])
    return Layout(tuple(rng.choice(kinds) for _ in grid), tuple(devices), grid)


def _pairs(partial):
    def draw(rng, size):
        while True:
            shape = tuple(0 if rng.random() < 0.05 else rng.randint(2, 2 + 2 * size) for _ in range(2))
            src, dst = _layout(rng, size, True), _layout(rng, size, partial)
            if src.fits(shape) and dst.fits(shape):
                return src, dst, shape
    return draw


def _sums(rng, size):
    """Draw pairs whose source has partial sums."""
    while True:
        case = _pairs(True)(rng, size)
        if case[0].partial:
            return case


def _smaller_pairs(case):
    src, dst, shape = case
    for i, n in enumerate(shape):
        s = (*shape[:i], n - 1, *shape[i + 1:])
        if n > 1 and src.fits(s) and dst.fits(s):
            yield src, dst, s
    if src.devices[0]:
        down = lambda at: at._replace(devices=tuple(d - 1 for d in at.devices))
        if dst.devices[0]:
            yield down(src), down(dst), shape
    for a, b in ((_row(src), dst), (src, _row(dst))):
        if (a, b) != (src, dst) and a.fits(shape) and b.fits(shape):
            yield a, b, shape


def _row(at):
    """Return the layout on the first axis of its grid only."""
    n = at.hierarchy[0]
    return at._replace(sbp=at.sbp[:1], devices=at.devices[:n], hierarchy=(n,))


def _cells(at, shape, i):
    """Return the index tuples of the elements on device number i."""
    return set(itertools.product(*(range(a, b) for a, b in at.box(shape, i))))


def _lacking(src, dst, shape):
    """Return {device of dst: elements it must receive}, for a dst without partial sums.

    A device needs every addend of its elements except the addend it already has.
    """
    have = {d: _cells(src, shape, i) for i, d in enumerate(src.devices)}
    return {d: src.slots * len(_cells(dst, shape, i)) - len(_cells(dst, shape, i) & have.get(d, set()))
            for i, d in enumerate(dst.devices)}


PAIRS = [(Layout((a,), (0, 1), (2,)), Layout((b,), devices, (2,)), shape) for a, b in
         (("S0", "B"), ("B", "S0"), ("S0", "S1"), ("P", "B"), ("P", "S0"), ("B", "B"))
         for devices in ((0, 1), (1, 2)) for shape in ((2, 2), (3, 2), (0, 2))]


def _describe_pair(case):
    return f"from {case[0]} to {case[1]}, shape {case[2]}"


@holds("each device receives exactly what it lacks", _pairs(False), _smaller_pairs, 120, _describe_pair,
       edges=PAIRS)
def arrives(case, yours):
    src, dst, shape = case
    got = yours["messages"](src, dst, shape)
    lacking = _lacking(src, dst, shape)
    have = {d: _cells(src, shape, i) for i, d in enumerate(src.devices)}
    want = {d: _cells(dst, shape, i) for i, d in enumerate(dst.devices)}
    for (a, b), n in got.items():
        if a == b or n < 1:
            return [f"  device {a} sends {n} elements to {b}: this is not a message"]
        if a not in have or b not in want or n > len(have[a] & want[b]):
            most = len(have.get(a, set()) & want.get(b, set()))
            return [f"  device {a} sends {n} elements to {b}, but has only {most} that {b} needs"]
    for d in dst.devices:
        sent = sum(n for (_, b), n in got.items() if b == d)
        if sent != lacking[d]:
            return [f"  device {d} receives {sent} elements, but needs {lacking[d]}"]
    return None


@holds("moved is the number of elements sent", _pairs(False), _smaller_pairs, 120, _describe_pair,
       edges=PAIRS)
def total(case, yours):
    src, dst, shape = case
    got, want = yours["moved"](src, dst, shape), sum(_lacking(src, dst, shape).values())
    return None if got == want else pair("should be", got, want)


@holds("moved is the sum of the messages", _pairs(True), _smaller_pairs, 80, _describe_pair)
def same_total(case, yours):
    sent, total = sum(yours["messages"](*case).values()), yours["moved"](*case)
    return None if sent == total else [f"  the messages have {sent} elements in total, but moved returns "
                                       f"{total}"]


# ---- the layout in which a sum is reduced
def _journey(*ends):
    at = lambda sbp, first, grid: Layout(sbp, tuple(range(first, first + math.prod(grid))), grid)
    return at(*ends[:3]), at(*ends[3:]), (512, 512)


JOURNEYS = [_journey(*j) for j in (     # sbp, first device, grid of the source and of the target
    (("P",), 0, (4,), ("B",), 4, (4,)), (("P",), 0, (2,), ("B",), 1, (3,)),
    (("P",), 0, (2,), ("B",), 0, (4,)),
    (("P",), 0, (4,), ("B",), 2, (4,)), (("P",), 0, (4,), ("B",), 0, (2,)),
    (("P",), 0, (3,), ("B",), 3, (2,)),
    (("P",), 2, (2,), ("B",), 0, (4,)), (("P",), 0, (4,), ("S0", "B"), 4, (2, 2)),
    (("P", "S0"), 0, (2, 2), ("S0", "B"), 0, (2, 2)), (("P", "B"), 0, (2, 2), ("B", "S0"), 4, (2, 2)),
    (("S0", "P"), 0, (2, 2), ("B", "B"), 0, (2, 2)), (("P", "P"), 0, (2, 2), ("B",), 1, (4,)))]


@holds("a stop fits the shape and has no P", _sums,
       lambda case: (c for c in _smaller_pairs(case) if c[0].partial), 120, _describe_pair, edges=JOURNEYS)
def stops_fit(case, yours):
    src, dst, shape = case
    for m in itertools.islice(yours(src, dst, Spec(shape, float32)), 1000):
        said = f"  yours           {str(m):.80}"
        if not isinstance(m, Layout):
            return [said, "  a stop must be a Layout"]
        if len(m.sbp) != len(m.hierarchy) or math.prod(m.hierarchy) != len(m.devices):
            return [said, f"  {len(m.sbp)} SBPs for a grid {m.hierarchy} of {len(m.devices)} devices"]
        if m.partial:
            return [said, "  a stop must not have P: it holds the finished sum"]
        if not m.fits(shape):
            return [said, f"  the shape {shape} cannot be split like this: a device would get no elements"]
        if not set(m.devices) <= {*src.devices, *dst.devices}:
            return [said, "  a stop may use only the devices of the two layouts"]
    return None


_STOPS = copy_function(stops)

def stops_stars(yours, seed=0):
    """Return the bytes sent in all JOURNEYS."""
    def bill():
        return sum(route.__wrapped__(src, dst, Spec(shape, float32)).bytes for src, dst, shape in JOURNEYS)

    mine = bill()
    with swapped(stops, _STOPS):
        return {"bytes": mine, "library": bill()}


# ---- conversion between global and local tensors
@contextmanager
def devices(k):
    """Simulate k devices in this process inside the context."""
    before = current().size
    set_virtual_devices(k)
    try:
        yield
    finally:
        set_virtual_devices(before)


def _borders(rng, size):
    """Draw (SBPs, grid, local shape)."""
    grid = rng.choice([(1,), (2,), (2,), (3,), *([(2, 2)] if size > 1 else [])])
    shape = tuple(rng.randint(1, 1 + size) for _ in range(rng.randint(1, 2)))
    return tuple(rng.choice(["B", "P", *(f"S{i}" for i in range(len(shape)))]) for _ in grid), grid, shape


def _smaller_borders(case):
    sbp, grid, shape = case
    if len(grid) > 1:
        yield from ((sbp[:i] + sbp[i + 1:], grid[:i] + grid[i + 1:], shape) for i in range(len(grid)))
    yield from ((sbp, grid, s) for s in each(less(1))(shape))
    if len(shape) > 1 and "S1" not in sbp:
        yield sbp, grid, shape[:1]


def _formula(sbp, grid, x):
    """Return (y, copies of x along each axis of y, factor) for y, the global tensor made from the local x."""
    times, factor = [1] * x.ndim, 1
    for s, k in zip(sbp, grid):
        if s[0] == "S":
            times[int(s[1:])] *= k
        elif s == "P":
            factor *= k
    return factor * np.tile(x, times), times, factor


def _describe_border(case):
    sbp, grid, shape = case
    return f"x {shape} becomes {', '.join(sbp)} on a grid {grid}; the loss is sum(w * y * y)"


@holds("the derivative equals the local program's", _borders, _smaller_borders, cases=60,
       told=_describe_border)
def dual(case, yours):
    sbp, grid, shape = case
    x = np.arange(1, 1 + math.prod(shape), dtype=np.float64).reshape(shape)
    names = {"B": flow.sbp.broadcast, "P": flow.sbp.partial_sum}
    with devices(4):
        place = flow.placement("cpu", np.arange(math.prod(grid)).reshape(grid).tolist())
        local = flow.tensor(x, requires_grad=True)
        y = local.to_global(place, tuple(names.get(s) or flow.sbp.split(int(s[1:])) for s in sbp))
        weight = np.arange(1.0, 1 + y.numel()).reshape(tuple(y.shape))
        (y * y * flow.tensor(weight, placement=place, sbp=(flow.sbp.broadcast,) * len(grid))).sum().backward()
        got = local.grad
    value, times, factor = _formula(sbp, grid, x)
    slope = 2 * value * weight * factor
    for axis, n in enumerate(times):                                   # sum over the copies of x
        slope = slope.reshape(*slope.shape[:axis], n, x.shape[axis], *slope.shape[axis + 1:]).sum(axis)
    copies = " and ".join(f"{n} copies along axis {a}" for a, n in enumerate(times) if n > 1)
    what = f"y is {'x' if factor == 1 else f'{factor} x'}" + (f", {copies}" if copies else "")
    if got is None or tuple(got.shape) != shape or got.is_global:
        return [f"  yours           {'no gradient' if got is None else repr(got)[:60]}",
                f"  should be       a local gradient of shape {shape}"]
    if np.allclose(got.numpy(), slope):
        return None
    return [f"  {what}", *pair("d loss / dx is", got.numpy().round(3).tolist(), slope.tolist())]


@holds("the gradient is on the device of x", _borders, _smaller_borders, cases=20, told=_describe_border)
def dual_home(case, yours):
    """Check that the gradient is moved to the device of x; here `on` doubles what it moves "elsewhere"."""
    sbp, grid, shape = case
    names = {"B": flow.sbp.broadcast, "P": flow.sbp.partial_sum}
    space = {"times": REGISTRY["mul"], "full": REGISTRY["constant"]}
    exec("def on(x, place):\n    two = full(shape=(), value=2, dtype=x.dtype)\n"
         "    return times(x, two) if place == 'elsewhere' else x\n", space)
    with devices(4), swapped(on, space["on"]):
        place = flow.placement("cpu", np.arange(math.prod(grid)).reshape(grid).tolist())
        sbps = tuple(names.get(s) or flow.sbp.split(int(s[1:])) for s in sbp)
        global_layout = layout_of(place, as_sbp(sbps, len(grid), "to_global"))
        x = flow.tensor(np.ones(shape))
        dy = flow.ones(*_formula(sbp, grid, np.ones(shape))[0].shape, dtype=flow.float64, placement=place,
                       sbp=(flow.sbp.broadcast,) * len(grid))
        got = []
        for where in (0, "elsewhere"):
            joined = Joined(x, global_layout, dy.spec)
            joined.place = where
            got.append(yours(joined, None, [dy])[0].numpy())
    if np.allclose(2 * got[0], got[1]):
        return None
    return ["  the parts of the gradient are on the devices of the global tensor, x is on another device",
            "  move the gradient to the device of x: on(part, self.place)"]
