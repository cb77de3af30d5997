"""What a user may wish about how a blob lies on devices: split(axis), broadcast(), auto().

`hinted` puts such a wish on a handle: the ops that are given the handle take the blob so. `parallel_cast` puts it on the
value itself. On one device neither does anything. (flow.distribute is job/distribute.py; dist/ fulfils the wishes.)
"""
from __future__ import annotations

import copy
import functools
import re

from flowedu.blob.blob import BlobDef
from flowedu.errors import ArgumentError, CheckError, UnsupportedError
from flowedu.frontend import front
from flowedu.ops import REGISTRY


class Distribute:
    """A wish. Made by split, broadcast and auto, once each: compare with `is`.

    Attributes: sbp, "S0", "B" or None; suffix, of the unique names of blobs: ":S0", ":B" or "".
    """

    def __init__(self, sbp: str | None, text: str):
        self.sbp, self.suffix, self._text = sbp, f":{sbp}" if sbp else "", text

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


_split = functools.cache(SplitDistribute)
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
    """2-D SBP: not in job functions."""
    raise UnsupportedError("hierarchical_parallel_cast: a job's devices are one row", got="2-D SBP",
                           expected="a 1-D layout; 2-D SBP comes with global tensors",
                           fix="flow.parallel_cast(x, distribute=flow.distribute.split(0))")


def variable_distribute(distribute, parallel_distribution) -> Distribute | None:
    """The wish in get_variable's arguments: `distribute`, or OneFlow 0.4's parallel_distribution: "B", "S(0)", ["S(0)"]."""
    if parallel_distribution is not None:
        texts = [parallel_distribution] if isinstance(parallel_distribution, str) else parallel_distribution
        one = texts[0] if isinstance(texts, (list, tuple)) and len(texts) == 1 and isinstance(texts[0], str) else ""
        found = re.fullmatch(r"(B)|S\((\d+)\)", one)
        if found is None:
            raise ArgumentError("get_variable: parallel_distribution is not a layout", got=repr(parallel_distribution),
                                expected='"B" or "S(axis)"', fix='parallel_distribution=["S(0)"], or '
                                "distribute=flow.distribute.split(0)")
        return BROADCAST if found[1] else split(int(found[2]))
    if distribute is not None and not isinstance(distribute, (SplitDistribute, BroadcastDistribute)):
        raise ArgumentError("get_variable: unsupported distribute", got=repr(distribute), expected="flow.distribute.split("
                            "axis), broadcast() or None", fix="leave it out: variables are on all devices by default")
    return distribute
