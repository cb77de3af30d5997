"""Engine and Comm: what global tensors, graphs and flow.comm need to know of ranks and messages."""
from __future__ import annotations

import math
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from flowedu.core.shelves import shelf
from flowedu.core.values.dtype import uint8
from flowedu.core.values.storage import empty as block
from flowedu.errors import ArgumentError, CommError

REDUCTIONS = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
SMALL = 1 << 16                     # bytes up to which one meeting costs more than the data
LARGE = 1 << 18                     # bytes from which an array lies in a block of tensors' memory


class Options:
    """How long a rank waits, and what is checked. Each comes from the environment and can be set.

    Attributes: timeout (FLOWEDU_TIMEOUT, default 600: seconds after which a wait is an error), notice (FLOWEDU_NOTICE, 10:
    seconds between two messages that say who is missing), debug (FLOWEDU_DEBUG_COMM, off: compare calls before each
    collective also where that costs a message).
    """

    def __init__(self, env: Mapping[str, str] = os.environ):
        self.timeout = float(env.get("FLOWEDU_TIMEOUT") or 600)
        self.notice = float(env.get("FLOWEDU_NOTICE") or 10)
        self.debug = env.get("FLOWEDU_DEBUG_COMM", "") not in ("", "0")


options = Options()


class Call(NamedTuple):
    """One rank's call of a collective, as messages name it. All ranks of a group must make the same, `what` aside."""

    kind: str
    detail: str
    shape: tuple | None
    dtype: str | None
    group: tuple[int, ...]
    what: str

    def same(self, other: Call) -> bool:
        return self[:4] == other[:4]

    def __str__(self) -> str:
        words = [self.kind, self.detail, *([self.dtype, str(self.shape)] if self.dtype is not None else [])]
        ranks = f"of ranks {', '.join(map(str, self.group))}" if self.group else ""
        return " ".join(w for w in (*words, ranks, f"[{self.what}]" if self.what else "") if w)


class Comm(ABC):
    """One rank's end of a world. Arrays are NumPy's; groups are sorted tuples of ranks that contain this one.

    Every rank of a group must make the same calls in the same order. A rank that does not is told so, as are the others:
    CommError.
    """

    rank: int
    size: int

    @abstractmethod
    def exchange(self, sends: Sequence[tuple[int, np.ndarray]], recvs: Sequence[tuple[int, tuple, np.dtype]],
                 what: str = "") -> list[np.ndarray]:
        """Send each (to, array), then wait for each (from, shape, dtype). Messages of a pair keep their order; sending
        never waits, and the arrays may change as soon as this returns."""

    def send(self, to: int, a: np.ndarray, what: str = "") -> None:
        """Send `a`; does not wait."""
        self.exchange([(to, a)], [], what)

    def recv(self, source: int, shape: tuple, dtype, what: str = "") -> np.ndarray:
        """The next array from `source`, which must have this shape and dtype."""
        return self.exchange([], [(source, shape, dtype)], what)[0]

    @abstractmethod
    def all_reduce(self, a: np.ndarray, group: Sequence[int] | None = None, op: str = "sum", what: str = "",
                   out: np.ndarray | None = None) -> np.ndarray:
        """The sum ("max", "min", "prod") of the group's arrays, the same to the last bit on each rank. out: where to put
        it, contiguous; may be `a`."""

    def start_all_reduce(self, a: np.ndarray, what: str = "") -> Callable[[], np.ndarray]:
        """Begin the sum of all ranks' `a`, in place, and return a function that waits for it. Until then leave `a` alone.
        Several may be on their way; all ranks start them in the same order."""
        self.all_reduce(a, None, "sum", what, a)
        return lambda: a

    @abstractmethod
    def all_gather(self, a: np.ndarray, group: Sequence[int] | None = None, what: str = "",
                   out: np.ndarray | None = None) -> np.ndarray:
        """The group's arrays, all of one shape, one below the other: (len(group), *a.shape)."""

    @abstractmethod
    def reduce_scatter(self, a: np.ndarray, group: Sequence[int] | None = None, op: str = "sum",
                       what: str = "") -> np.ndarray:
        """a: (len(group), ...). The sum of the group's a[i], on the i-th rank of the group."""

    @abstractmethod
    def broadcast(self, a: np.ndarray | None, root: int, group: Sequence[int] | None = None, what: str = "") -> np.ndarray:
        """The root's array. What other ranks pass is not looked at."""

    @abstractmethod
    def barrier(self, group: Sequence[int] | None = None, what: str = "") -> None:
        """Wait until every rank of the group is here."""

    @abstractmethod
    def all_gather_object(self, obj, group: Sequence[int] | None = None, what: str = "") -> list:
        """Every rank's `obj`, made of what JSON knows: dict, list, str, number, bool, None (a tuple arrives as a list)."""


def check_group(group: Sequence[int] | None, rank: int, size: int) -> tuple[int, ...]:
    """`group` as a tuple; None: all ranks. ArgumentError where it is no group of this rank."""
    if group is None:
        return tuple(range(size))
    g = tuple(int(r) for r in group)
    if list(g) != sorted(set(g)) or not g or not 0 <= g[0] <= g[-1] < size or rank not in g:
        raise ArgumentError("comm: not a group this rank is in", expected=f"different ranks of 0 to {size - 1}, rising, "
                            f"{rank} among them", got=str(g), fix=f"{tuple(sorted({*g, rank} & set(range(size))))}")
    return g


def check_peer(peer: int, rank: int, size: int, verb: str) -> None:
    if not 0 <= peer < size or peer == rank:
        raise ArgumentError(f"comm: rank {rank} cannot {verb} rank {peer}", expected=f"another rank of 0 to {size - 1}",
                            got=str(peer), fix="a rank keeps its own data without a message")


def reduction(op: str) -> np.ufunc:
    if op not in REDUCTIONS:
        raise ArgumentError("comm: not a reduction", expected=", ".join(REDUCTIONS), got=repr(op), fix='"sum"')
    return REDUCTIONS[op]


def empty(shape: tuple, dtype: np.dtype) -> np.ndarray:
    """An array, contents undefined. A large one lies in a block of tensors' memory (values/storage.pyx), which was used
    before: touching new memory for the first time takes as long as a message."""
    n = math.prod(shape) * dtype.itemsize
    return np.empty(shape, dtype) if n < LARGE else np.frombuffer(block((n,), uint8), dtype).reshape(shape)


def check_out(out: np.ndarray | None, shape: tuple, dtype: np.dtype) -> np.ndarray:
    """`out`, or a new array where there is none."""
    if out is None:
        return empty(shape, dtype)
    if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous or not out.flags.writeable:
        raise ArgumentError("comm: the result does not fit into out", expected=f"a contiguous {dtype} array {shape}",
                            got=f"{out.dtype} {out.shape}", fix="leave out away")
    return out


def check_lead(a: np.ndarray, call: Call) -> None:
    if not a.ndim or a.shape[0] != len(call.group):
        raise ArgumentError(f"comm.{call.kind}: the first axis is not as long as the group", got=str(a.shape),
                            expected=f"({len(call.group)}, ...)", fix="one part for each rank of the group")


def check_root(a: np.ndarray | None, root: int, rank: int, call: Call) -> None:
    if root not in call.group or rank == root and a is None:
        lacks = "has no array" if root in call.group else "is not in the group"
        raise ArgumentError(f"comm.broadcast: rank {root} {lacks}",
                            expected="the root, one of the group, passes an array", got=str(call), fix="root=group[0]")


class Engine(ABC):
    """A world, and the part of it that this thread does the work of.

    Attributes: name ("virtual", "threads" or "mpi"), size (ranks), owned (ranks whose shards this thread has), local_rank,
    local_size (ranks on this machine), node_rank, node_size (machines).
    """

    name: str
    size: int
    owned: tuple[int, ...]
    local_rank = 0
    local_size = 1
    node_rank = 0
    node_size = 1

    @property
    def rank(self) -> int:
        return self.owned[0]

    @abstractmethod
    def comm(self, rank: int) -> Comm:
        """The end of an owned rank. With several owned, each is for a thread of its own (see `run`)."""

    def run(self, programs: Mapping[int, Callable[[Comm], object]]) -> dict[int, object]:
        """Run `programs[rank](comm)` of owned ranks, at the same time, and return what each returned. What one raises ends
        the others and is raised here."""
        return {rank: program(self.comm(rank)) for rank, program in programs.items()}


# ---- which engine a thread works with
_here = threading.local()
_process: Engine | None = None
_lock = threading.RLock()


def current() -> Engine:
    """The engine of this thread: the one it was started with (flow.distributed.spawn), else that of the process, which is
    MPI's in a process that mpiexec started, and otherwise virtual devices."""
    found = getattr(_here, "engine", None) or _process
    return found if found is not None else _start()


def _start() -> Engine:
    global _process
    with _lock:
        if _process is None:
            if launched():

                _process = shelf("ranks that are processes")()
            else:
                _process = _virtual(_devices())
        return _process


def launched() -> bool:
    """Whether this process is one of several that mpiexec started. CommError where a launcher of another kind did."""
    for name in ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE"):
        if int(os.environ.get(name) or 1) > 1:
            return True
    world = os.environ.get("WORLD_SIZE", "")
    if world.isdigit() and int(world) > 1:
        raise CommError(f"flow.distributed: WORLD_SIZE is {world}, but mpiexec did not start this process",
                        expected="the variables mpiexec sets, such as PMI_SIZE", got="none of them",
                        fix=f"python -m flowedu.distributed.launch --nproc_per_node {world} script.py", at="")
    return False


def _devices() -> int:
    text = os.environ.get("FLOWEDU_DEVICES") or "1"
    if not text.isdigit() or int(text) < 1:
        raise ArgumentError("FLOWEDU_DEVICES: not a number of devices", expected="1 or more", got=text, at="",
                            fix="FLOWEDU_DEVICES=2")
    return int(text)


def _virtual(k: int) -> Engine:
    from flowedu.core.sbp.ranks.workers import VirtualEngine

    return VirtualEngine(k)


def set_virtual_devices(k: int) -> None:
    """Let this process have `k` virtual devices, ranks 0 to k-1 (default: FLOWEDU_DEVICES, else 1).

    Under the launcher the world is the launcher's: another `k` than its size is an ArgumentError.
    """
    global _process
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise ArgumentError("set_virtual_devices: not a number of devices", expected="1 or more", got=repr(k), fix="2")
    here = getattr(_here, "engine", None) or _process
    if here is None and launched():
        here = _start()
    if here is not None and here.name != "virtual":
        if k != here.size:
            raise ArgumentError(f"set_virtual_devices: this is rank {here.rank} of a world of {here.size}", got=str(k),
                                expected=str(here.size), fix=f"start it with --nproc_per_node {k}, or without the launcher")
        return
    with _lock:
        _process = _virtual(k)


@contextmanager
def use(engine: Engine) -> Iterator[Engine]:
    """Let this thread work with `engine` inside the block."""
    before = getattr(_here, "engine", None)
    _here.engine = engine
    try:
        yield engine
    finally:
        _here.engine = before
