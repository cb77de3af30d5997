"""flow.advanced: explicit operations on each device of a placement. Lists have one blob per device."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from flowedu.core.layers.context import current
from flowedu.core.values.place import bounds
from flowedu.errors import CheckError, ShapeError
from flowedu.oneflow04.axes import normal_axis
from flowedu.oneflow04.job.scope import placement
from flowedu.ops import REGISTRY
from flowedu.ops.front import front


def distribute_clone(x, name: str | None = None) -> list:
    """x, once for each device."""
    return _clone(x, _devices(), name=name)


def distribute_add(xs: Sequence, name: str | None = None):
    """The sum of a list of blobs of one shape."""
    return _add(_one_each("distribute_add", xs), name=name)


def distribute_split(x, axis: int = 0, name: str | None = None) -> list:
    """x cut along `axis`; of n elements on k devices the first n mod k devices get one more."""
    k, a = _devices(), normal_axis(axis, len(x.shape), "distribute_split")
    if x.shape[a] < k:
        raise ShapeError("distribute_split: the axis is shorter than the number of devices", expected=f"{k} or more",
                         got=f"axis {a} of {x.shape}", fix="split another axis, or use fewer devices")
    return _split(x, a, k, name=name)


def distribute_concat(xs: Sequence, axis: int = 0, name: str | None = None):
    """The blobs of a list side by side along `axis`."""
    xs = _one_each("distribute_concat", xs)
    return _concat(xs, normal_axis(axis, len(xs[0].shape), "distribute_concat"), name=name)


def distribute_map(xs, f: Callable, axis: int = 0):
    """f on each device's part of xs (a blob, or several), the results joined again along `axis`.

    f is called once for each device, in a placement of that device alone, and returns a blob or a tuple of blobs.
    """
    xs = xs if isinstance(xs, (list, tuple)) else [xs]
    results, plain = [], True
    for mine, scope in zip(zip(*[distribute_split(x, axis) for x in xs]), _single_devices()):
        with scope:
            out = f(*mine)
        plain = plain and not isinstance(out, (list, tuple))
        results.append(out if isinstance(out, (list, tuple)) else (out,))
    joined = [distribute_concat(list(column), axis) for column in zip(*results)]
    return joined[0] if plain else tuple(joined)


@front("DistributeClone")
def _clone(x, k):
    return [REGISTRY["identity"](x) for _ in range(k)]


@front("DistributeAdd")
def _add(xs):
    total = REGISTRY["identity"](xs[0])
    for x in xs[1:]:
        total = REGISTRY["add"](total, x)
    return total


@front("DistributeSplit")
def _split(x, axis, k):
    whole = [(0, n) for n in x.shape]
    boxes = [[*whole[:axis], cut, *whole[axis + 1:]] for cut in bounds(x.shape[axis], k)]
    return [REGISTRY["slice"](x, start=tuple(a for a, _ in box), stop=tuple(b for _, b in box), step=(1,) * len(box))
            for box in boxes]


@front("DistributeConcat")
def _concat(xs, axis):
    return REGISTRY["concat"](*xs, axis=axis)


def _devices() -> int:
    return getattr(current(), "devices", 1)


def _one_each(what: str, xs: Sequence) -> list:
    if not isinstance(xs, (list, tuple)) or len(xs) != _devices():
        raise CheckError(f"{what}: not one blob for each device", expected=f"a list of {_devices()}",
                         got=f"{len(xs)} blobs" if isinstance(xs, (list, tuple)) else repr(xs),
                         fix="flow.advanced.distribute_split(x) makes such a list")
    return list(xs)


def _single_devices() -> list:
    """A placement for each device of the present one."""
    context = current()
    if not context.in_job:
        return [placement("cpu", "0:0")]
    here = context.placement
    return [placement(here.device_tag, f"{m}:{d}") for m, d in here.pairs]
