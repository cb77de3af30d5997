"""flow.distribute: layout hints for blobs: split(axis), broadcast(), auto().

blob.with_distribute, layers.dense, and get_variable take such a hint. `hinted` attaches it to a handle: the
ops that receive the handle take the blob in this layout. `parallel_cast` applies it to the value itself;
hierarchical_parallel_cast does so on a grid of devices, with one string per axis of the grid. On one device
the hints have no effect. (core/sbp applies them.)
"""
from __future__ import annotations

import copy
import functools
import re
from collections.abc import Sequence

from flowedu.core.layers.context import current, unique_name
from flowedu.core.values.blob import BlobDef
from flowedu.errors import ArgumentError, CheckError, UnsupportedError
from flowedu.ops import REGISTRY
from flowedu.ops.front import front

__all__ = ["AutoDistribute", "BroadcastDistribute", "Distribute", "SplitDistribute", "assert_is_valid_distribute", "auto",
           "broadcast", "consistent_strategy", "consistent_strategy_enabled", "mirrored_strategy",
           "mirrored_strategy_enabled", "split"]


class Distribute:
    """A wish. Made by split, broadcast and auto, once each: compare with `is`.

    Attributes: sbp, "S0", "B" or None; suffix, of the unique names of blobs: ":S0", ":B" or "".
    """

    def __init__(self, sbp: str | tuple[str, ...] | None, text: str):
        self.sbp, self.suffix, self._text = sbp, f":{'_'.join([sbp] if isinstance(sbp, str) else sbp)}" if sbp else "", text

    def __repr__(self) -> str:
        return f"flow.distribute.{self._text}"

    def __copy__(self) -> Distribute:
        return self

    def __deepcopy__(self, memo) -> Distribute:
        return self


class SplitDistribute(Distribute):
    """Each device has a part along `axis`."""

    def __init__(self, axis: int):
        super().__init__(f"S{axis}", f"split({axis})")
        self.axis = axis


class BroadcastDistribute(Distribute):
    """Each device has all of it."""


class AutoDistribute(Distribute):
    """No wish."""


class GridDistribute(Distribute):
    """A wish for each axis of a grid of devices: what get_variable's parallel_distribution says. sbp: a tuple of texts."""

    def __init__(self, sbp: tuple[str, ...]):
        super().__init__(sbp, "")

    def __repr__(self) -> str:
        return f"<distribute {self.sbp}>"


_split, _on_grid = functools.cache(SplitDistribute), functools.cache(GridDistribute)
BROADCAST, AUTO = BroadcastDistribute("B", "broadcast()"), AutoDistribute(None, "auto()")


def split(axis: int) -> Distribute:
    """Cut along `axis`, an int of 0 or more."""
    if type(axis) is not int or axis < 0:
        raise CheckError("distribute.split: axis is not the number of an axis", expected="an int of 0 or more",
                         got=repr(axis), fix="split(0); count a last axis from the front: split(len(x.shape) - 1)")
    return _split(axis)


def broadcast() -> Distribute:
    """A copy on every device."""
    return BROADCAST


def auto() -> Distribute:
    """No wish: the op's cheapest signature decides."""
    return AUTO


def assert_is_valid_distribute(distribute) -> None:
    """Raises CheckError (an AssertionError) for anything split, broadcast and auto did not make."""
    if not isinstance(distribute, Distribute):
        raise CheckError("not a distribute strategy", got=repr(distribute), expected="flow.distribute.split(axis), "
                         "broadcast() or auto()", fix="flow.distribute.split(0)")


@front("DistributeHint")
def _hint(x, sbp):
    return REGISTRY["distribute_hint"](x, sbp=sbp)


@front("ParallelCast")
def _cast(x, sbp, grad_sbp):
    return REGISTRY["distribute_hint"](x, sbp=sbp, grad_sbp=grad_sbp, forced=True)


@front("HierarchicalParallelCast")
def _grid_cast(x, sbp, place, grad_sbp, grad_place, restore):
    return REGISTRY["distribute_hint"](x, sbp=sbp, grad_sbp=grad_sbp, forced=True, place=place, grad_place=grad_place,
                                       restore=restore)


def hinted(x, distribute: Distribute):
    """A handle on the same blob, whose readers are asked to take it so: with_distribute. A tensor comes back as it is.

    It takes effect where the handle is the input of an op on several devices: of the op's signatures those are left that
    have this layout for that input; if none is, compiling the job fails with JobBuildAndInferError.
    """
    assert_is_valid_distribute(distribute)
    if not isinstance(x, BlobDef):
        return x
    handle = copy.copy(x) if distribute is AUTO else _hint(x, distribute.sbp)
    handle.op_name, handle.blob_name, handle.distribute = x.op_name, x.blob_name, distribute
    return handle


def parallel_cast(input, name: str | None = None, distribute: Distribute | None = None,
                  gradient_distribute: Distribute | None = None):
    """The same blob, which lies on the devices of this placement as `distribute` says from here on; its gradient as
    `gradient_distribute` says. Each is split(axis), broadcast(), or None for no say."""
    for what, d in (("distribute", distribute), ("gradient_distribute", gradient_distribute)):
        if d is not None and not isinstance(d, (SplitDistribute, BroadcastDistribute)):
            raise CheckError(f"parallel_cast: {what} is not a layout", got=repr(d),
                             expected="flow.distribute.split(axis) or broadcast()",
                             fix="None" if d is AUTO else "flow.distribute.split(0)")
    sbp = lambda d: None if d is None else d.sbp
    return _cast(input, sbp(distribute), sbp(gradient_distribute), name=name)


def hierarchical_parallel_cast(input, parallel_hierarchy=None, parallel_distribution=None, grad_mode=None,
                               grad_parallel_hierarchy=None, grad_parallel_distribution=None, name: str | None = None):
    """The same blob, which lies on a grid of the placement's devices from here on.

    Args:
        parallel_hierarchy: the sizes of the grid; default: the placement's own hierarchy. [4] is one row of four.
        parallel_distribution: for each axis of the grid "B", "S(axis)" or "P"; one text alone holds along all.
        grad_mode: where the gradient goes. "restore" (default): to where the input was, B along the axes where that was P;
            "auto" (also "identity"): nowhere, it stays as it comes; "manual": to the grad_ arguments.
        grad_parallel_hierarchy: the grid of the gradient; default: that of the blob.
        grad_parallel_distribution: as parallel_distribution.

    Raises:
        UnsupportedError: not in a job's body, or in a mirrored view.
        CheckError: no grid of the placement's devices. ArgumentError: anything else that is no such argument.
    """
    what, context = "hierarchical_parallel_cast", current()
    if not context.in_job or not isinstance(input, BlobDef):
        raise UnsupportedError(f"{what}: not a blob of a job", expected="a blob, in the body of a job function",
                               got=type(input).__name__, fix="a global tensor: x.to_global(placement, sbp)")
    if context.views.stack[-1]:
        raise UnsupportedError(f"{what}: in a mirrored view every device has a blob of its own", got="a mirrored view",
                               expected="a consistent view", fix="with flow.scope.consistent_view(): ...")
    if grad_mode not in (None, "restore", "auto", "identity", "manual"):
        raise ArgumentError(f"{what}: unknown grad_mode", expected='"restore", "auto" or "manual"', got=repr(grad_mode),
                            fix='leave it out: "restore"')
    place = context.placement.grid(parallel_hierarchy, f"{what}: parallel_hierarchy")
    sbp = _texts(parallel_distribution, len(place.hierarchy), input.shape, f"{what}: parallel_distribution", "BPS")
    grad_place = grad_sbp = None
    if grad_mode == "manual":
        grad_place = place if grad_parallel_hierarchy is None else context.placement.grid(
            grad_parallel_hierarchy, f"{what}: grad_parallel_hierarchy")
        grad_sbp = _texts(grad_parallel_distribution, len(grad_place.hierarchy), input.shape,
                          f"{what}: grad_parallel_distribution", "BPS")
    elif grad_parallel_hierarchy is not None or grad_parallel_distribution is not None:
        raise ArgumentError(f"{what}: where the gradient goes is said twice", expected='grad_mode="manual" with the grad_ '
                            "arguments", got=f"grad_mode={grad_mode!r} with them", fix='grad_mode="manual"')
    restore = None
    if grad_mode in (None, "restore"):
        restore = unique_name("restored") if name is None else context.full_name(name)
    return _grid_cast(input, sbp, place, grad_sbp, grad_place, restore, name=name)


def variable_distribute(distribute, parallel_distribution, shape: Sequence[int]) -> Distribute | None:
    """The wish in get_variable's arguments: `distribute`, or OneFlow 0.4's parallel_distribution: "B", "S(0)", ["S(0)"],
    or on a grid of devices one for each axis: ["S(0)", "B"]. One text alone holds along all."""
    if parallel_distribution is not None:
        placement = getattr(current(), "placement", None)
        axes = 1 if placement is None else len(placement.hierarchy)
        sbp = _texts(parallel_distribution, axes, shape, "get_variable: parallel_distribution", "BS")
        if axes > 1:
            return _on_grid(sbp)
        return BROADCAST if sbp == ("B",) else split(int(sbp[0][1:]))
    if distribute is not None and not isinstance(distribute, (SplitDistribute, BroadcastDistribute)):
        raise ArgumentError("get_variable: unsupported distribute", got=repr(distribute), expected="flow.distribute.split("
                            "axis), broadcast() or None", fix="leave it out: variables are on all devices by default")
    return distribute


def _texts(given, axes: int, shape: Sequence[int], what: str, kinds: str) -> tuple[str, ...]:
    """The SBPs, "S0" for "S(0)", of a value of this shape on a grid of so many axes. kinds: which of B, P and S may be."""
    some = 'a list of "B" or "S(axis)"' if "P" not in kinds else 'a list of "B", "S(axis)" or "P"'
    row = "one row" if axes == 1 else f"a grid of {axes} axes"
    example = '["S(0)"' + ', "B"' * (axes - 1) + "]"
    listed = [given] * axes if isinstance(given, (str, Distribute)) else given
    if not isinstance(listed, (list, tuple)) or len(listed) != axes:
        raise ArgumentError(f"{what} is not one layout for each axis of the hierarchy", got=repr(given), fix=example,
                            expected=f"{some}, {axes} of them: the devices stand in {row}")
    found = []
    for x in listed:
        text = f"S({x.axis})" if isinstance(x, SplitDistribute) else "B" if x is BROADCAST else x
        match = re.fullmatch(r"B|P|S\((\d+)\)", text) if isinstance(text, str) else None
        if match is None or text[0] not in kinds:
            raise ArgumentError(f"{what} is not a layout", expected=some, got=repr(given), fix=example)
        if match[1] is not None and int(match[1]) >= len(shape):
            raise ArgumentError(f"{what} splits a missing axis", expected=f"an axis of {tuple(shape)}", got=text,
                                fix="count axes from 0")
        found.append(text if match[1] is None else f"S{match[1]}")
    return tuple(found)


# ---- older names of flow.scope's views
def mirrored_strategy():
    """Deprecated: flow.scope.mirrored_view()."""
    return _renamed("mirrored_strategy", "mirrored_view")


def consistent_strategy():
    """Deprecated: flow.scope.consistent_view()."""
    return _renamed("consistent_strategy", "consistent_view")


def mirrored_strategy_enabled() -> bool:
    """Deprecated: flow.scope.mirrored_view_enabled()."""
    return _renamed("mirrored_strategy_enabled", "mirrored_view_enabled")


def consistent_strategy_enabled() -> bool:
    """Deprecated: flow.scope.consistent_view_enabled()."""
    return _renamed("consistent_strategy_enabled", "consistent_view_enabled")


def _renamed(old: str, new: str):
    from flowedu.oneflow04.job import scope
    print(f"WARNING: flow.distribute.{old} has been deprecated. Please use flow.scope.{new}.")
    return getattr(scope, new)()
