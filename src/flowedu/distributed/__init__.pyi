"""Written by `make stubs`: do not edit."""
from collections.abc import Callable, Sequence
from flowedu.core.eager.tensor import Tensor
from flowedu.distributed import (
    boxing as boxing, comm as comm, mpi as mpi, oneflow_rule as oneflow_rule, ranks as ranks, settings as settings)
from flowedu.distributed.groups import ReduceOp as ReduceOp, ReduceOp as _ReduceOp, _Done

def all_gather(tensor_list: list[Tensor], tensor: Tensor, group=None, async_op: bool = False) -> _Done | None:
    """tensor_list[i] = rank i's tensor."""
def all_reduce(tensor: Tensor, op: _ReduceOp = ..., group=None, async_op: bool = False) -> _Done | None:
    """Write the sum (or another reduction `op`) of all ranks' tensors into tensor, in place."""
def barrier(group=None, async_op: bool = False, device_ids=None) -> _Done | None: """Wait until all ranks have come here."""
def broadcast(tensor: Tensor, src: int = 0, group=None, async_op: bool = False) -> _Done | None:
    """tensor = rank src's, in place."""
def debug(mode: bool = True) -> None:
    """Compare op, shape and dtype before each collective, also where that costs a message (default: FLOWEDU_DEBUG_COMM)."""
def destroy_process_group(group=None) -> None: """Reset is_initialized() to False if the program has one rank."""
def get_backend(group=None) -> str: """"mpi" for processes, else "threads"."""
def get_rank(group=None) -> int: """The number of this rank."""
def get_world_size(group=None) -> int: """How many ranks there are."""
def init_process_group(backend: str | None = None, init_method: str | None = None, timeout=None, world_size: int = -1, rank: int = -1, **options) -> None:
    """Check that the ranks expected by the program exist."""
def is_available() -> bool: """True: collectives are always there, among one rank at least."""
def is_initialized() -> bool:
    """Whether a program may ask for ranks: after init_process_group, and wherever there are several ranks."""
def reduce(tensor: Tensor, dst: int = 0, op: _ReduceOp = ..., group=None, async_op: bool = False) -> _Done | None:
    """On rank dst, tensor = what `op` makes of all ranks'; the others keep theirs."""
def set_timeout(seconds: float, notice: float | None = None) -> None:
    """The seconds after which a rank that waits for others gives up (default: FLOWEDU_TIMEOUT, else 600), and, with `notice`, those between two lines that say for whom it waits (FLOWEDU_NOTICE, else 10)."""
def set_virtual_devices(k: int) -> None:
    """Set the number of virtual devices of this process, ranks 0 to k-1 (default: FLOWEDU_DEVICES or 1)."""
def spawn(fn: Callable, nprocs: int = 1, args: Sequence = ...) -> list:
    """Run `fn(*args)` on `nprocs` ranks, each a thread, and return what each returned, by rank."""
