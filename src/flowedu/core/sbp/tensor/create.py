"""Making global tensors: flow.ones(2, 3, placement=..., sbp=...). The logical value does not depend on the devices."""
from __future__ import annotations

from flowedu.core.ops.dispatch import current_interpreter
from flowedu.core.ops.tensor import Tensor
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.tensor.convert import from_logical
from flowedu.core.sbp.tensor.lay import checked_lay
from flowedu.core.shelves import shelf
from flowedu.errors import ArgumentError, CheckError


def spread_out(t: Tensor, placement, sbp, device=None) -> Tensor:
    """The global tensor whose logical value is t, which every rank made alike.

    Raises CheckError unless placement and sbp are both given, ArgumentError if device is too.
    """
    if placement is None or sbp is None:
        raise CheckError(f"a global tensor needs placement and sbp: {'sbp' if sbp is None else 'placement'}: None",
                         expected="both", got=f"placement={placement!r}, sbp={sbp!r}",
                         fix='placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.broadcast')
    if device is not None:
        raise ArgumentError("device and placement together", expected="one of them", got=f"device={device!r}",
                            fix="leave device out: the placement says where it lies")
    if current_interpreter() is not None:
        return t.to_global(placement, sbp)
    lay = checked_lay(placement, sbp, t.shape_(), "placement, sbp")
    return from_logical(t, lay)


def shared_generator(placement, generator):
    """The generator for a global tensor: one that stands at the same place on every rank. Rank 0's default one decides."""
    engine = current()
    if placement is None or generator is not None or len(engine.owned) == engine.size:
        return generator
    comm = engine.comm(engine.rank)
    group = tuple(range(engine.size))
    own = shelf("random numbers").default_generator
    state = comm.broadcast(own.get_state().numpy() if engine.rank == 0 else None, 0, group, "random numbers")
    shared = shelf("random numbers").Generator()
    shared._seed, shared._draws = (int(x) for x in state.copy().view("<u8"))
    own.next()                                     # and moves on
    return shared
