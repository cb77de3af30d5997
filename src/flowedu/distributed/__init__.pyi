"""Written by `make stubs`: do not edit."""
from collections.abc import Callable, Sequence
from flowedu.core.eager.tensor import Tensor
from flowedu.distributed import (
    boxing as boxing, comm as comm, mpi as mpi, oneflow_rule as oneflow_rule, perform as perform, ranks as ranks,
    settings as settings)
from flowedu.distributed.groups import ReduceOp as ReduceOp, ReduceOp as _ReduceOp, _Done

def all_gather(tensor_list: list[Tensor], tensor: Tensor, group=None, async_op: bool = False) -> _Done | None:
    """Copy the tensor of each rank into a list."""
def all_reduce(tensor: Tensor, op: _ReduceOp = ..., group=None, async_op: bool = False) -> _Done | None:
    """Replace `tensor` by the sum (or another reduction) of the tensors of all ranks."""
def barrier(group=None, async_op: bool = False, device_ids=None) -> _Done | None:
    """Wait until all ranks have reached this call."""
def broadcast(tensor: Tensor, src: int = 0, group=None, async_op: bool = False) -> _Done | None:
    """Replace `tensor` by the tensor of rank `src`."""
def debug(mode: bool = True) -> None:
    """Compare op, shape, and dtype before each collective, even if that costs a message."""
def destroy_process_group(group=None) -> None: """Reset is_initialized() to False if the program has one rank."""
def get_backend(group=None) -> str: """Return "mpi" for processes, else "threads"."""
def get_rank(group=None) -> int: """Return the index of this rank."""
def get_world_size(group=None) -> int: """Return the number of ranks."""
def init_process_group(backend: str | None = None, init_method: str | None = None, timeout=None, world_size: int = -1, rank: int = -1, **options) -> None:
    """Check that the ranks expected by the program exist."""
def is_available() -> bool: """Return True: collectives are always available, even with one rank."""
def is_initialized() -> bool: """Return True after init_process_group, and in a program with several ranks."""
def reduce(tensor: Tensor, dst: int = 0, op: _ReduceOp = ..., group=None, async_op: bool = False) -> _Done | None:
    """Replace `tensor` on rank `dst` by the reduction of the tensors of all ranks."""
def set_timeout(seconds: float, notice: float | None = None) -> None:
    """Set the time after which a rank that waits for others raises an error."""
def set_virtual_devices(k: int) -> None:
    """Set the number of virtual devices, ranks 0 to k-1 (default: FLOWEDU_DEVICES or 1)."""
def spawn(fn: Callable, nprocs: int = 1, args: Sequence = ...) -> list:
    """Run `fn(*args)` on several ranks, each a thread, and return the list of results by rank."""
