"""Laws of chapter 6: messages between devices, reductions, and gradients between global and local tensors."""
from __future__ import annotations

import itertools
import math
from contextlib import contextmanager

import numpy as np

from flowedu.learn.laws import Law, case_of, pair
from flowedu.learn.laws.plans import _own as own


# ---- pairs of layouts
def _layout(rng, size, partial):
    from flowedu.core.sbp.sbp import Layout
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
    """Pairs whose source has partial sums."""
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
    """Its first axis alone."""
    n = at.hierarchy[0]
    return at._replace(sbp=at.sbp[:1], devices=at.devices[:n], hierarchy=(n,))


def _cells(at, shape, i):
    """What device number i has, element by element."""
    return set(itertools.product(*(range(a, b) for a, b in at.box(shape, i))))


def _lacking(src, dst, shape):
    """{device of dst: elements it has to be sent}, where dst has no partial sums: of every addend, but for its own."""
    have = {d: _cells(src, shape, i) for i, d in enumerate(src.devices)}
    return {d: src.slots * len(_cells(dst, shape, i)) - len(_cells(dst, shape, i) & have.get(d, set()))
            for i, d in enumerate(dst.devices)}


def _pair_said(case):
    return f"  smallest case   from {case[0]} to {case[1]}, shape {case[2]}"


_pair_words = case_of(_pair_said)


def _messages_judged(case, yours):
    src, dst, shape = case
    got = yours["messages"](src, dst, shape)
    said, lacking = _pair_said(case), _lacking(src, dst, shape)
    have = {d: _cells(src, shape, i) for i, d in enumerate(src.devices)}
    want = {d: _cells(dst, shape, i) for i, d in enumerate(dst.devices)}
    for (a, b), n in got.items():
        if a == b or n < 1:
            return [said, f"  device {a} sends {n} elements to {b}: that is no message"]
        if a not in have or b not in want or n > len(have[a] & want[b]):
            most = len(have.get(a, set()) & want.get(b, set()))
            return [said, f"  device {a} sends {n} elements to {b}, and has {most} that {b} wants"]
    for d in dst.devices:
        sent = sum(n for (_, b), n in got.items() if b == d)
        if sent != lacking[d]:
            return [said, f"  device {d} is sent {sent} elements and lacks {lacking[d]}"]
    return None


def _moved_judged(case, yours):
    src, dst, shape = case
    got, want = yours["moved"](src, dst, shape), sum(_lacking(src, dst, shape).values())
    return None if got == want else [_pair_said(case), *pair("should be", got, want)]


def _same_total_judged(case, yours):
    sent, total = sum(yours["messages"](*case).values()), yours["moved"](*case)
    return None if sent == total else [_pair_said(case), f"  messages of {sent} elements in all, moved says {total}"]


arrives = Law("everybody is sent just what it lacks", _pairs(False), _messages_judged, _smaller_pairs, 120, _pair_words)
total = Law("moved: the elements that travel", _pairs(False), _moved_judged, _smaller_pairs, 120, _pair_words)
same_total = Law("moved is the sum of the messages", _pairs(True), _same_total_judged, _smaller_pairs, 80, _pair_words)


# ---- where a sum is finished
def _stops_judged(case, yours):
    from flowedu.core.sbp.sbp import Layout
    from flowedu.core.values.dtype import float32
    from flowedu.core.values.spec import Spec
    src, dst, shape = case
    for m in itertools.islice(yours(src, dst, Spec(shape, float32)), 1000):
        said = [_pair_said(case), f"  yours           {str(m):.80}"]
        if not isinstance(m, Layout):
            return [*said, "  a stop is a Layout"]
        if len(m.sbp) != len(m.hierarchy) or math.prod(m.hierarchy) != len(m.devices):
            return [*said, f"  {len(m.sbp)} SBPs for a grid {m.hierarchy} of {len(m.devices)} devices"]
        if m.partial:
            return [*said, "  on the way the sum is to be finished: no P"]
        if not m.fits(shape):
            return [*said, f"  the shape {shape} cannot be cut so: a device would get nothing"]
        if not set(m.devices) <= {*src.devices, *dst.devices}:
            return [*said, "  a device that takes no part in it"]
    return None


stops_fit = Law("a stop fits the value and has no P", _sums, _stops_judged,
                lambda case: (c for c in _smaller_pairs(case) if c[0].partial), 120, _pair_words)
_STOPS = own("stops", "flowedu.core.sbp.boxing.primitives")

JOURNEYS = (                           # sbp, first device, grid of the source and of the target, of (512, 512) float32
    (("P",), 0, (4,), ("B",), 4, (4,)), (("P",), 0, (2,), ("B",), 1, (3,)), (("P",), 0, (2,), ("B",), 0, (4,)),
    (("P",), 0, (4,), ("B",), 2, (4,)), (("P",), 0, (4,), ("B",), 0, (2,)), (("P",), 0, (3,), ("B",), 3, (2,)),
    (("P",), 2, (2,), ("B",), 0, (4,)), (("P",), 0, (4,), ("S0", "B"), 4, (2, 2)),
    (("P", "S0"), 0, (2, 2), ("S0", "B"), 0, (2, 2)), (("P", "B"), 0, (2, 2), ("B", "S0"), 4, (2, 2)),
    (("S0", "P"), 0, (2, 2), ("B", "B"), 0, (2, 2)), (("P", "P"), 0, (2, 2), ("B",), 1, (4,)))


def stops_stars(yours, seed=0):
    """Bytes over twelve journeys."""
    from flowedu.core.sbp.boxing.primitives import route, stops
    from flowedu.core.sbp.sbp import Layout
    from flowedu.core.values.dtype import float32
    from flowedu.core.values.spec import Spec
    from flowedu.learn.swap import swapped
    at = lambda sbp, first, grid: Layout(sbp, tuple(range(first, first + math.prod(grid))), grid)
    spec = Spec((512, 512), float32)

    def bill():
        return sum(route.__wrapped__(at(*j[:3]), at(*j[3:]), spec).bytes for j in JOURNEYS)

    mine = bill()
    with swapped(stops, _STOPS):
        return {"bytes": mine, "library": bill()}


# ---- the border to local tensors
@contextmanager
def devices(k):
    """Inside, this process plays k devices."""
    from flowedu.core.sbp.ranks import current
    from flowedu.distributed import set_virtual_devices
    before = current().size
    set_virtual_devices(k)
    try:
        yield
    finally:
        set_virtual_devices(before)


def _borders(rng, size):
    """(SBPs, grid, the local shape)"""
    grid = rng.choice([(1,), (2,), (2,), (3,), *([(2, 2)] if size > 1 else [])])
    shape = tuple(rng.randint(1, 1 + size) for _ in range(rng.randint(1, 2)))
    return tuple(rng.choice(["B", "P", *(f"S{i}" for i in range(len(shape)))]) for _ in grid), grid, shape


def _smaller_borders(case):
    sbp, grid, shape = case
    if len(grid) > 1:
        yield from ((sbp[:i] + sbp[i + 1:], grid[:i] + grid[i + 1:], shape) for i in range(len(grid)))
    if math.prod(shape) > 1:
        yield from ((sbp, grid, (*shape[:i], n - 1, *shape[i + 1:])) for i, n in enumerate(shape) if n > 1)
    if len(shape) > 1 and "S1" not in sbp:
        yield sbp, grid, shape[:1]


def _formula(sbp, grid, x):
    """(y, how many of its elements each of x stands for, the factor it comes with): y as a function of the local x."""
    times, factor = [1] * x.ndim, 1
    for s, k in zip(sbp, grid):
        if s[0] == "S":
            times[int(s[1:])] *= k
        elif s == "P":
            factor *= k
    return factor * np.tile(x, times), times, factor


def _border_said(case):
    sbp, grid, shape = case
    return f"  smallest case   x {shape} becomes {', '.join(sbp)} on a grid {grid}; the loss is sum(w * y * y)"


def _dual_judged(case, yours):
    import flowedu as flow
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
    for axis, n in enumerate(times):                                   # every copy of x counts
        slope = slope.reshape(*slope.shape[:axis], n, x.shape[axis], *slope.shape[axis + 1:]).sum(axis)
    said = _border_said(case)
    copies = " and ".join(f"{n} copies along axis {a}" for a, n in enumerate(times) if n > 1)
    what = f"y is {'x' if factor == 1 else f'{factor} x'}" + (f", {copies}" if copies else "")
    if got is None or tuple(got.shape) != shape or got.is_global:
        return [said, f"  yours           {'no gradient' if got is None else repr(got)[:60]}",
                f"  should be       a local gradient of shape {shape}"]
    if np.allclose(got.numpy(), slope):
        return None
    return [said, f"  {what}", *pair("d loss / dx is", got.numpy().round(3).tolist(), slope.tolist())]


dual = Law("the derivative of the local program", _borders, _dual_judged, _smaller_borders, cases=60,
           told=case_of(_border_said))


def _home_judged(case, yours):
    """There need be no second memory: bringing something to a place that nobody has doubles it, and so it shows."""
    import flowedu as flow
    from flowedu.core.ops.define import REGISTRY
    from flowedu.core.sbp.names import as_sbp
    from flowedu.core.sbp.tensor.global_layout import layout_of
    from flowedu.core.sbp.tensor.interpreter import on
    from flowedu.core.sbp.tensor.shards import Joined
    from flowedu.learn.swap import swapped

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
    return [_border_said(case), "  the parts are where the devices are, and x is somewhere else",
            "  its gradient stays there: on(part, self.place) brings it to where x is"]


dual_home = Law("the gradient is where x is", _borders, _home_judged, _smaller_borders, cases=20,
                told=case_of(_border_said))
