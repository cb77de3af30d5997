"""Operations of flow.advanced: copies, sums, splits, and concatenations over devices.

Lists of blobs have one blob per device of the current placement.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from flowedu.core.layers.context import current
from flowedu.core.ops.concat import concat
from flowedu.core.ops.concat import slice as slice_op
from flowedu.core.ops.elementwise import add
from flowedu.core.ops.view import identity
from flowedu.core.values.place import bounds
from flowedu.errors import CheckError, ShapeError
from flowedu.oneflow04.functions.axes import normal_axis
from flowedu.oneflow04.job.scope import placement
from flowedu.ops.front import front


def distribute_clone(x, name: str | None = None) -> list:
    """Return a copy of `x` for each device.

    Args:
        x: a blob.

    Returns: a list with one blob per device.
    """
    return _clone(x, _devices(), name=name)


def distribute_add(xs: Sequence, name: str | None = None):
    """Return the sum of the blobs of a list.

    Args:
        xs: a list with one blob per device, all of one shape.
    """
    return _add(_check_one_per_device("distribute_add", xs), name=name)


def distribute_split(x, axis: int = 0, name: str | None = None) -> list:
    """Split `x` along an axis into one part per device.

    Args:
        x: a blob with at least as many elements along `axis` as there are devices.
        axis: the axis to split.

    Returns: a list of blobs. With n elements on k devices, the first n mod k parts have one element more.

    Raises:
        ShapeError: the axis is shorter than the number of devices.
    """
    k, a = _devices(), normal_axis(axis, len(x.shape), "distribute_split")
    if x.shape[a] < k:
        raise ShapeError("distribute_split: the axis is shorter than the number of devices",
                         expected=f"{k} or more",
                         got=f"axis {a} of {x.shape}", fix="split another axis, or use fewer devices")
    return _split(x, a, k, name=name)


def distribute_concat(xs: Sequence, axis: int = 0, name: str | None = None):
    """Concatenate the blobs of a list along `axis`.

    Args:
        xs: a list with one blob per device; all axes except `axis` agree.
        axis: the axis to concatenate along.
    """
    xs = _check_one_per_device("distribute_concat", xs)
    return _concat(xs, normal_axis(axis, len(xs[0].shape), "distribute_concat"), name=name)


def distribute_map(xs, f: Callable, axis: int = 0):
    """Call `f` on the part of `xs` on each device and concatenate the results.

    Args:
        xs: a blob, or a list of blobs. Each is split along `axis`.
        f: a function of one part of each blob. It is called once per device, in a placement of that device
            alone, and returns a blob or a tuple of blobs.
        axis: the axis along which inputs are split and results are concatenated.

    Returns: a blob, or a tuple of blobs if `f` returned tuples.
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
    return [identity(x) for _ in range(k)]


@front("DistributeAdd")
def _add(xs):
    total = identity(xs[0])
    for x in xs[1:]:
        total = add(total, x)
    return total


@front("DistributeSplit")
def _split(x, axis, k):
    whole = [(0, n) for n in x.shape]
    boxes = [[*whole[:axis], cut, *whole[axis + 1:]] for cut in bounds(x.shape[axis], k)]
    return [slice_op(x, start=tuple(a for a, _ in box), stop=tuple(b for _, b in box), step=(1,) * len(box))
            for box in boxes]


@front("DistributeConcat")
def _concat(xs, axis):
    return concat(*xs, axis=axis)


def _devices() -> int:
    return getattr(current(), "devices", 1)


def _check_one_per_device(what: str, xs: Sequence) -> list:
    if not isinstance(xs, (list, tuple)) or len(xs) != _devices():
        raise CheckError(f"{what}: not one blob for each device", expected=f"a list of {_devices()}",
                         got=f"{len(xs)} blobs" if isinstance(xs, (list, tuple)) else repr(xs),
                         fix="flow.advanced.distribute_split(x) makes such a list")
    return list(xs)


def _single_devices() -> list:
    """Return one placement for each device of the current placement."""
    context = current()
    if not context.in_job:
        return [placement("cpu", "0:0")]
    here = context.placement
    return [placement(here.device_tag, f"{m}:{d}") for m, d in here.pairs]
