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
from flowedu.tensor.construction.creation import empty_like
from flowedu.tensor.shapes.join_and_pad import stack

_begun = False


class ReduceOp(Enum):
    """Reductions of all_reduce and reduce.

    Args:
        value: "sum", "mean", "prod", "amin", or "amax".
    """

    SUM = "sum"
    AVG = "mean"
    PRODUCT = "prod"
    MIN = "amin"
    MAX = "amax"


class _Done:
    """The result of async_op=True. The work is complete before the call returns."""

    def wait(self, timeout=None) -> bool:
        """Return True."""
        return True

    def is_completed(self) -> bool:
        """Return True."""
        return True


def is_available() -> bool:
    """Return True: collectives are always available, even with one rank."""
    return True


def is_initialized() -> bool:
    """Return True after init_process_group, and in a program with several ranks."""
    return _begun or current().size > 1


def init_process_group(backend: str | None = None, init_method: str | None = None, timeout=None,
                       world_size: int = -1, rank: int = -1, **options) -> None:
    """Check that the ranks expected by the program exist.

    Args:
        backend: has no effect.
        init_method: has no effect.
        timeout: has no effect.
        world_size: the expected number of ranks; -1 reads the environment variable WORLD_SIZE.
        rank: the expected rank; -1 accepts any.
        **options: have no effect.

    Raises:
        CommError: the launcher started other ranks.
    """
    global _begun
    engine = current()
    expected = world_size if world_size >= 0 else int(os.environ.get("WORLD_SIZE") or engine.size)
    if expected != engine.size or rank >= 0 and rank != engine.rank:
        raise CommError("init_process_group: not the ranks that the program expects", at="",
                        expected=f"rank {rank} of {expected}" if rank >= 0 else f"{expected} ranks",
                        got=f"rank {engine.rank} of {engine.size}",
                        fix=f"python -m flowedu.distributed.launch --nproc_per_node {expected} program.py")
    # Several ranks, which may be threads, are initialized.
    _begun = _begun or engine.size == 1


def destroy_process_group(group=None) -> None:
    """Reset is_initialized() to False if the program has one rank."""
    global _begun
    _whole("destroy_process_group", group)
    _begun = False


def get_rank(group=None) -> int:
    """Return the index of this rank.

    Args:
        group: must be None; the only group has all ranks.
    """
    _whole("get_rank", group)
    return current().rank


def get_world_size(group=None) -> int:
    """Return the number of ranks.

    Args:
        group: must be None; the only group has all ranks.
    """
    _whole("get_world_size", group)
    return current().size


def get_backend(group=None) -> str:
    """Return "mpi" for processes, else "threads".

    Args:
        group: must be None; the only group has all ranks.
    """
    _whole("get_backend", group)
    return "mpi" if type(current()).__module__.endswith("mpi.process") else "threads"


def barrier(group=None, async_op: bool = False, device_ids=None) -> _Done | None:
    """Wait until all ranks have reached this call.

    Args:
        group: must be None; the only group has all ranks.
        async_op: return an object with the methods wait and is_completed.
        device_ids: has no effect.
    """
    _whole("barrier", group)
    comm.barrier()
    return _Done() if async_op else None


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group=None,
               async_op: bool = False) -> _Done | None:
    """Replace `tensor` by the sum (or another reduction) of the tensors of all ranks.

    Args:
        tensor: a local tensor of the same shape and dtype on all ranks, which is modified in place.
        op: the reduction.
        group: must be None; the only group has all ranks.
        async_op: return an object with the methods wait and is_completed.
    """
    _whole("all_reduce", group)
    if _checked(op) is ReduceOp.SUM:
        comm.all_reduce(tensor)
    else:
        tensor.detach().copy_(_of_all(tensor, op))
    return _Done() if async_op else None


def reduce(tensor: Tensor, dst: int = 0, op: ReduceOp = ReduceOp.SUM, group=None,
           async_op: bool = False) -> _Done | None:
    """Replace `tensor` on rank `dst` by the reduction of the tensors of all ranks.

    Args:
        tensor: a local tensor of the same shape and dtype on all ranks. Only rank `dst` modifies it.
        dst: the receiving rank.
        op: the reduction.
        group: must be None; the only group has all ranks.
        async_op: return an object with the methods wait and is_completed.
    """
    _whole("reduce", group)
    if _checked(op) is ReduceOp.SUM:
        comm.reduce(tensor, dst)
    else:
        one = _of_all(tensor, op)
        if current().rank == dst:
            tensor.detach().copy_(one)
    return _Done() if async_op else None


def broadcast(tensor: Tensor, src: int = 0, group=None, async_op: bool = False) -> _Done | None:
    """Replace `tensor` by the tensor of rank `src`.

    Args:
        tensor: a local tensor, which is modified in place.
        src: the sending rank.
        group: must be None; the only group has all ranks.
        async_op: return an object with the methods wait and is_completed.
    """
    _whole("broadcast", group)
    comm.broadcast(tensor, src)
    return _Done() if async_op else None


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group=None, async_op: bool = False) -> _Done | None:
    """Copy the tensor of each rank into a list.

    Args:
        tensor_list: one tensor per rank; tensor_list[i] receives the tensor of rank i.
        tensor: the tensor of this rank.
        group: must be None; the only group has all ranks.
        async_op: return an object with the methods wait and is_completed.
    """
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
        raise ArgumentError("distributed: not a way to reduce",
                            expected=", ".join(f"ReduceOp.{o.name}" for o in ReduceOp),
                            got=repr(op), fix="ReduceOp.SUM")
    return op


def _whole(name: str, group) -> None:
    """Raise an error unless `group` is None: the only group has all ranks."""
    if group is not None:
        raise ArgumentError(f"distributed.{name}: there is one group, of all ranks", expected="group=None",
                            got=repr(group), fix="global tensors with a placement of some ranks")
