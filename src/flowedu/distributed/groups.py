"""Process groups with the names used in PyTorch programs: one group of all ranks.

The launcher determines the ranks: `python -m flowedu.distributed.launch` starts processes, `spawn` starts
threads, and any other program is one rank. `init_process_group` opens no connection; it checks that the ranks
the program expects exist.
"""
from __future__ import annotations

import os
from enum import Enum

from flowedu.core.sbp.ranks import current
from flowedu.distributed import comm
from flowedu.errors import ArgumentError, CommError
from flowedu.tensor import Tensor
from flowedu.tensor.creation import empty_like
from flowedu.tensor.joining import stack

_begun = False


class ReduceOp(Enum):
    """How all_reduce and reduce make one tensor of all ranks'."""

    SUM = "sum"
    AVG = "mean"
    PRODUCT = "prod"
    MIN = "amin"
    MAX = "amax"


class _Done:
    """What async_op=True gives: the work was done before the call came back."""

    def wait(self, timeout=None) -> bool:
        """True."""
        return True

    def is_completed(self) -> bool:
        """True."""
        return True


def is_available() -> bool:
    """True: collectives are always there, among one rank at least."""
    return True


def is_initialized() -> bool:
    """Whether a program may ask for ranks: after init_process_group, and wherever there are several ranks."""
    return _begun or current().size > 1


def init_process_group(backend: str | None = None, init_method: str | None = None, timeout=None, world_size: int = -1,
                       rank: int = -1, **options) -> None:
    """Check that the ranks expected by the program exist.

    backend, init_method, timeout: accepted without effect. world_size, rank (or the environment's
    WORLD_SIZE): compared with the existing ranks. CommError if the launcher started others.
    """
    global _begun
    engine = current()
    expected = world_size if world_size >= 0 else int(os.environ.get("WORLD_SIZE") or engine.size)
    if expected != engine.size or rank >= 0 and rank != engine.rank:
        raise CommError("init_process_group: not the ranks that the program expects", at="",
                        expected=f"rank {rank} of {expected}" if rank >= 0 else f"{expected} ranks",
                        got=f"rank {engine.rank} of {engine.size}",
                        fix=f"python -m flowedu.distributed.launch --nproc_per_node {expected} program.py")
    _begun = _begun or engine.size == 1                       # several ranks, which may be threads, need no word of it


def destroy_process_group(group=None) -> None:
    """Reset is_initialized() to False if the program has one rank."""
    global _begun
    _whole("destroy_process_group", group)
    _begun = False


def get_rank(group=None) -> int:
    """The number of this rank."""
    _whole("get_rank", group)
    return current().rank


def get_world_size(group=None) -> int:
    """How many ranks there are."""
    _whole("get_world_size", group)
    return current().size


def get_backend(group=None) -> str:
    """"mpi" for processes, else "threads"."""
    _whole("get_backend", group)
    return "mpi" if type(current()).__module__.endswith("mpi.process") else "threads"


def barrier(group=None, async_op: bool = False, device_ids=None) -> _Done | None:
    """Wait until all ranks have come here."""
    _whole("barrier", group)
    comm.barrier()
    return _Done() if async_op else None


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group=None, async_op: bool = False) -> _Done | None:
    """Write the sum (or another reduction `op`) of all ranks' tensors into tensor, in place."""
    _whole("all_reduce", group)
    if _checked(op) is ReduceOp.SUM:
        comm.all_reduce(tensor)
    else:
        tensor.detach().copy_(_of_all(tensor, op))
    return _Done() if async_op else None


def reduce(tensor: Tensor, dst: int = 0, op: ReduceOp = ReduceOp.SUM, group=None, async_op: bool = False) -> _Done | None:
    """On rank dst, tensor = what `op` makes of all ranks'; the others keep theirs."""
    _whole("reduce", group)
    if _checked(op) is ReduceOp.SUM:
        comm.reduce(tensor, dst)
    else:
        one = _of_all(tensor, op)
        if current().rank == dst:
            tensor.detach().copy_(one)
    return _Done() if async_op else None


def broadcast(tensor: Tensor, src: int = 0, group=None, async_op: bool = False) -> _Done | None:
    """tensor = rank src's, in place."""
    _whole("broadcast", group)
    comm.broadcast(tensor, src)
    return _Done() if async_op else None


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group=None, async_op: bool = False) -> _Done | None:
    """tensor_list[i] = rank i's tensor."""
    _whole("all_gather", group)
    comm.all_gather(tensor_list, tensor)
    return _Done() if async_op else None


def _of_all(tensor: Tensor, op: ReduceOp) -> Tensor:
    parts = [empty_like(tensor) for _ in range(current().size)]
    comm.all_gather(parts, tensor.detach())
    found = getattr(stack(parts), op.value)(0)
    return found.to(tensor.dtype)


def _checked(op: ReduceOp) -> ReduceOp:
    if not isinstance(op, ReduceOp):
        raise ArgumentError("distributed: not a way to reduce", expected=", ".join(f"ReduceOp.{o.name}" for o in ReduceOp),
                            got=repr(op), fix="ReduceOp.SUM")
    return op


def _whole(name: str, group) -> None:
    """There is one group."""
    if group is not None:
        raise ArgumentError(f"distributed.{name}: there is one group, of all ranks", expected="group=None", got=repr(group),
                            fix="global tensors with a placement of some ranks")
