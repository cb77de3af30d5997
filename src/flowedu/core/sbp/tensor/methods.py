"""Tensor.to_global. (Its two halves, local_to_global and global_to_global: tensor/global_creation.py.)"""
from __future__ import annotations

from flowedu.core.ops.arrays import copy_of
from flowedu.core.ops.dispatch import Lay, current_interpreter
from flowedu.core.ops.tensor import Tensor
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.tensor.convert import boxed
from flowedu.core.sbp.tensor.lay import check_placement, checked_lay, kept
from flowedu.core.sbp.tensor.shards import from_local
from flowedu.errors import ArgumentError, UnsupportedError

_asked: dict[tuple, Lay] = {}           # what was asked for before, checked


def to_global(self: Tensor, placement=None, sbp=None, *, grad_sbp=None, check_meta: bool | None = None,
              copy: bool = False) -> Tensor:
    """A local tensor becomes this rank's shard of a global one; a global one is brought to another placement or sbp.

    Args:
        placement: flow.placement; of a local tensor required, of a global one the present one by default.
        sbp: one flow.sbp, or one for each axis of the placement's hierarchy; as placement.
        grad_sbp: of a global tensor: how its gradient is to lie.
        check_meta: whether the ranks compare shapes and dtypes (local tensors; default: they do).
        copy: memory of its own, even where nothing has to be moved.

    From local: split(i) makes shards parts along axis i (sizes equal, or those of the balanced split), of broadcast rank
    0's numbers win, with partial_sum the shards are summed. Every rank of the world must call it. A process that owns
    several virtual devices stands for all of them: the tensor is the shard of each.

    Raises ArgumentError (a RuntimeError) for shapes, axes and ranks that do not fit; CheckError where placement or sbp is
    missing.
    """
    if self.lay is None and self.is_lazy or current_interpreter() is not None:
        top = current_interpreter()
        if not hasattr(top, "to_global"):
            raise UnsupportedError("to_global: not inside a job function", expected="nn.Graph or eager tensors",
                                   got="a lazy tensor", fix="flow.parallel_cast, or scopes")
        return top.to_global(self, placement, sbp, grad_sbp)
    if self.lay is None:
        return from_local(self, placement, sbp, check_meta is not False, copy)
    return box_to(self, placement, sbp, grad_sbp, copy)


def box_to(x: Tensor, p, sbps, grad_sbp, copy: bool) -> Tensor:
    if p is None and sbps is None and grad_sbp is None:
        return x
    key = (x.lay, p, tuple(sbps) if type(sbps) is list else sbps, x.shape_(), current().size)
    try:
        lay = _asked.get(key)
    except TypeError:                              # something unhashable: no placement or sbp
        lay = _checked(x, p, sbps)
    if lay is None:
        lay = kept(_asked, key, _checked(x, p, sbps))
    grad_lay = None
    if grad_sbp is not None:
        grad_lay = checked_lay(x.lay.placement, grad_sbp, x.shape_(), "to_global: grad_sbp")
    y = boxed(x, lay, grad_lay)
    return copy_of(y) if copy and y is x else y


def _checked(x: Tensor, p, sbps) -> Lay:
    """The layout that to_global is asked for."""
    p = x.lay.placement if p is None else p
    check_placement(p, "to_global")
    if sbps is None and len(p.hierarchy) != len(x.lay.sbp):
        raise ArgumentError("to_global: another hierarchy needs an sbp", expected=f"{len(p.hierarchy)} of them",
                            got=f"sbp=None, and the present one is {x.lay.sbp}", fix="pass sbp=")
    return checked_lay(p, x.lay.sbp if sbps is None else sbps, x.shape_(), "to_global")
