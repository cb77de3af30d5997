"""Layout hints for blobs: split(axis), broadcast(), and auto() of flow.distribute.

blob.with_distribute, layers.dense, and get_variable take such a hint. `attach_hint` attaches a hint to a
handle, and the ops that receive the handle read the blob in this layout. `parallel_cast` converts the value
itself. hierarchical_parallel_cast converts it on a grid of devices, with one string per axis of the grid. On
one device the hints have no effect. core/sbp applies the hints.
"""
from __future__ import annotations

import copy
import functools
import re
from collections.abc import Sequence

from flowedu.core.layers.context import current, unique_name
from flowedu.core.values.blob import BlobDef
from flowedu.errors import ArgumentError, CheckError, UnsupportedError
from flowedu.ops.front import front
from flowedu.ops.hint import distribute_hint

__all__ = ["AutoDistribute", "BroadcastDistribute", "Distribute", "SplitDistribute",
           "assert_is_valid_distribute", "auto", "broadcast", "consistent_strategy",
           "consistent_strategy_enabled", "mirrored_strategy", "mirrored_strategy_enabled", "split"]


class Distribute:
    """A layout hint.

    `split`, `broadcast`, and `auto` return one object per layout, which can be compared with `is`.

    Args:
        sbp: "S0", "B", a tuple of them for a grid of devices, or None.
        text: the call of flow.distribute that returns the hint.

    Attributes:
        sbp: the argument.
        suffix: the part of the unique names of blobs, ":S0", ":B", or "".
    """

    def __init__(self, sbp: str | tuple[str, ...] | None, text: str):
        self.sbp, self._text, self.suffix = sbp, text, ""
        if sbp:
            self.suffix = ":" + (sbp if isinstance(sbp, str) else "_".join(sbp))

    def __repr__(self) -> str:
        return f"flow.distribute.{self._text}"

    def __copy__(self) -> Distribute:
        return self

    def __deepcopy__(self, memo) -> Distribute:
        return self


class SplitDistribute(Distribute):
    """A hint that each device has a part along `axis`.

    Args:
        axis: the axis that is split, an int of 0 or more.
    """

    def __init__(self, axis: int):
        super().__init__(f"S{axis}", f"split({axis})")
        self.axis = axis


class BroadcastDistribute(Distribute):
    """A hint that each device has the whole value.

    Args:
        sbp: "B".
        text: the call of flow.distribute that returns the hint.
    """


class AutoDistribute(Distribute):
    """A hint without a preferred layout.

    Args:
        sbp: None.
        text: the call of flow.distribute that returns the hint.
    """


class GridDistribute(Distribute):
    """One hint per axis of a grid of devices, from the argument parallel_distribution of get_variable."""

    def __init__(self, sbp: tuple[str, ...]):
        super().__init__(sbp, "")

    def __repr__(self) -> str:
        return f"<distribute {self.sbp}>"


_split, _on_grid = functools.cache(SplitDistribute), functools.cache(GridDistribute)
BROADCAST, AUTO = BroadcastDistribute("B", "broadcast()"), AutoDistribute(None, "auto()")


def split(axis: int) -> Distribute:
    """Return the hint to split a blob along an axis.

    Args:
        axis: an int of 0 or more.

    Raises:
        CheckError: `axis` is not such an int.
    """
    if type(axis) is not int or axis < 0:
        raise CheckError("distribute.split: axis is not the number of an axis",
                         expected="an int of 0 or more",
                         got=repr(axis),
                         fix="split(0); count a last axis from the front: split(len(x.shape) - 1)")
    return _split(axis)


def broadcast() -> Distribute:
    """Return the hint to copy a blob to every device."""
    return BROADCAST


def auto() -> Distribute:
    """Return the hint without a layout: the cheapest signature of the op is used."""
    return AUTO


def assert_is_valid_distribute(distribute) -> None:
    """Raise CheckError (an AssertionError) unless the argument is a hint of split, broadcast, or auto.

    Args:
        distribute: the object to check.
    """
    if not isinstance(distribute, Distribute):
        raise CheckError("not a distribute strategy", got=repr(distribute),
                         expected="flow.distribute.split(axis), broadcast() or auto()",
                         fix="flow.distribute.split(0)")


@front("DistributeHint")
def _hint(x, sbp):
    return distribute_hint(x, sbp=sbp)


@front("ParallelCast")
def _cast(x, sbp, grad_sbp):
    return distribute_hint(x, sbp=sbp, grad_sbp=grad_sbp, forced=True)


@front("HierarchicalParallelCast")
def _grid_cast(x, sbp, place, grad_sbp, grad_place, restore):
    return distribute_hint(x, sbp=sbp, grad_sbp=grad_sbp, forced=True, place=place, grad_place=grad_place,
                           restore=restore)


def attach_hint(x, distribute: Distribute):
    """Return a handle on the same blob with a layout hint for the ops that read it.

    Return a tensor unchanged.

    The hint applies if the handle is the input of an op on several devices. The op then uses only signatures
    that have this layout for that input. Without such a signature, compiling the job raises
    JobBuildAndInferError.
    """
    assert_is_valid_distribute(distribute)
    if not isinstance(x, BlobDef):
        return x
    handle = copy.copy(x) if distribute is AUTO else _hint(x, distribute.sbp)
    handle.op_name, handle.blob_name, handle.distribute = x.op_name, x.blob_name, distribute
    return handle


def parallel_cast(input, name: str | None = None, distribute: Distribute | None = None,
                  gradient_distribute: Distribute | None = None):
    """Convert a blob to a layout on the devices of the placement.

    Args:
        input: a blob.
        distribute: the layout of the result, split(axis) or broadcast(). None leaves the choice to the ops
            that read it.
        gradient_distribute: the layout of the gradient, in the same form.
    """
    for what, d in (("distribute", distribute), ("gradient_distribute", gradient_distribute)):
        if d is not None and not isinstance(d, (SplitDistribute, BroadcastDistribute)):
            raise CheckError(f"parallel_cast: {what} is not a layout", got=repr(d),
                             expected="flow.distribute.split(axis) or broadcast()",
                             fix="None" if d is AUTO else "flow.distribute.split(0)")
    sbp, gradient_sbp = (None if d is None else d.sbp for d in (distribute, gradient_distribute))
    return _cast(input, sbp, gradient_sbp, name=name)


def hierarchical_parallel_cast(input, parallel_hierarchy=None, parallel_distribution=None, grad_mode=None,
                               grad_parallel_hierarchy=None, grad_parallel_distribution=None,
                               name: str | None = None):
    """Convert a blob to a layout on a grid of the placement's devices.

    Args:
        input: a blob of a job.
        parallel_hierarchy: the sizes of the grid; None takes the hierarchy of the placement. [4] is one row
            of four devices.
        parallel_distribution: "B", "S(axis)", or "P" for each axis of the grid. A single string applies to
            all axes.
        grad_mode: the layout of the gradient. "restore" (also None) converts it to the layout of the input,
            with B along the axes where the input is P. "auto" (also "identity") keeps the layout in which it
            arrives. "manual" uses the two arguments below.
        grad_parallel_hierarchy: the grid of the gradient; None takes the grid of the blob.
        grad_parallel_distribution: the layout of the gradient, in the same form as parallel_distribution.

    Raises:
        UnsupportedError: the call is outside of a job's body, or in a mirrored view.
        CheckError: the sizes do not form a grid of the placement's devices.
        ArgumentError: another argument is invalid.
    """
    what, context = "hierarchical_parallel_cast", current()
    if not context.in_job or not isinstance(input, BlobDef):
        raise UnsupportedError(f"{what}: not a blob of a job",
                               expected="a blob, in the body of a job function",
                               got=type(input).__name__, fix="a global tensor: x.to_global(placement, sbp)")
    if context.views.stack[-1]:
        raise UnsupportedError(f"{what}: in a mirrored view every device has a blob of its own",
                               got="a mirrored view",
                               expected="a consistent view", fix="with flow.scope.consistent_view(): ...")
    if grad_mode not in (None, "restore", "auto", "identity", "manual"):
        raise ArgumentError(f"{what}: unknown grad_mode", expected='"restore", "auto" or "manual"',
                            got=repr(grad_mode), fix='leave it out: "restore"')
    place = context.placement.grid(parallel_hierarchy, f"{what}: parallel_hierarchy")
    sbp = _parse_layouts(parallel_distribution, len(place.hierarchy), input.shape,
                         f"{what}: parallel_distribution", "BPS")
    grad_place = grad_sbp = None
    if grad_mode == "manual":
        grad_place = place if grad_parallel_hierarchy is None else context.placement.grid(
            grad_parallel_hierarchy, f"{what}: grad_parallel_hierarchy")
        grad_sbp = _parse_layouts(grad_parallel_distribution, len(grad_place.hierarchy), input.shape,
                          f"{what}: grad_parallel_distribution", "BPS")
    elif grad_parallel_hierarchy is not None or grad_parallel_distribution is not None:
        raise ArgumentError(f"{what}: the layout of the gradient is given twice", fix='grad_mode="manual"',
                            expected='grad_mode="manual" with the grad_ arguments',
                            got=f"grad_mode={grad_mode!r} with them")
    restore = None
    if grad_mode in (None, "restore"):
        restore = unique_name("restored") if name is None else context.full_name(name)
    return _grid_cast(input, sbp, place, grad_sbp, grad_place, restore, name=name)


def variable_distribute(distribute, parallel_distribution, shape: Sequence[int]) -> Distribute | None:
    """Return the hint in the arguments `distribute` and `parallel_distribution` of get_variable, or None.

    parallel_distribution is "B", "S(0)", or ["S(0)"], or on a grid one string per axis, ["S(0)", "B"]. A
    single string applies to all axes.
    """
    if parallel_distribution is not None:
        placement = getattr(current(), "placement", None)
        axes = 1 if placement is None else len(placement.hierarchy)
        sbp = _parse_layouts(parallel_distribution, axes, shape, "get_variable: parallel_distribution", "BS")
        if axes > 1:
            return _on_grid(sbp)
        return BROADCAST if sbp == ("B",) else split(int(sbp[0][1:]))
    if distribute is not None and not isinstance(distribute, (SplitDistribute, BroadcastDistribute)):
        raise ArgumentError("get_variable: unsupported distribute", got=repr(distribute),
                            expected="flow.distribute.split(axis), broadcast() or None",
                            fix="leave it out: variables are on all devices by default")
    return distribute


def _parse_layouts(given, axes: int, shape: Sequence[int], what: str, kinds: str) -> tuple[str, ...]:
    """Return the SBP strings ("S0" for "S(0)") of a value on a grid of `axes` axes.

    `kinds` lists the allowed letters.
    """
    some = 'a list of "B" or "S(axis)"' if "P" not in kinds else 'a list of "B", "S(axis)" or "P"'
    row = "one row" if axes == 1 else f"a grid of {axes} axes"
    example = '["S(0)"' + ', "B"' * (axes - 1) + "]"
    listed = [given] * axes if isinstance(given, (str, Distribute)) else given
    if not isinstance(listed, (list, tuple)) or len(listed) != axes:
        raise ArgumentError(f"{what} is not one layout for each axis of the hierarchy", got=repr(given),
                            fix=example, expected=f"{some}, {axes} of them, since the devices form {row}")
    found = []
    for x in listed:
        text = f"S({x.axis})" if isinstance(x, SplitDistribute) else x
        if x is BROADCAST:
            text = "B"
        match = re.fullmatch(r"B|P|S\((\d+)\)", text) if isinstance(text, str) else None
        if match is None or text[0] not in kinds:
            raise ArgumentError(f"{what} is not a layout", expected=some, got=repr(given), fix=example)
        if match[1] is not None and int(match[1]) >= len(shape):
            raise ArgumentError(f"{what} splits a missing axis", expected=f"an axis of {tuple(shape)}",
                                got=text, fix="count axes from 0")
        found.append(text if match[1] is None else f"S{match[1]}")
    return tuple(found)


# ---- older names of flow.scope's views
def mirrored_strategy():
    """Return flow.scope.mirrored_view(); the old name prints a warning."""
    return _renamed("mirrored_strategy", "mirrored_view")


def consistent_strategy():
    """Return flow.scope.consistent_view(); the old name prints a warning."""
    return _renamed("consistent_strategy", "consistent_view")


def mirrored_strategy_enabled() -> bool:
    """Return flow.scope.mirrored_view_enabled(); the old name prints a warning."""
    return _renamed("mirrored_strategy_enabled", "mirrored_view_enabled")


def consistent_strategy_enabled() -> bool:
    """Return flow.scope.consistent_view_enabled(); the old name prints a warning."""
    return _renamed("consistent_strategy_enabled", "consistent_view_enabled")


def _renamed(old: str, new: str):
    from flowedu.oneflow04.job import scope
    print(f"WARNING: flow.distribute.{old} has been deprecated. Please use flow.scope.{new}.")
    return getattr(scope, new)()
