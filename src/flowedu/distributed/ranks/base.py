"""Comm, the communicator: every collective, with its checks and options."""
from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from flowedu.core.sbp.ranks import Comm as Simple
from flowedu.core.values.dtype import uint8
from flowedu.core.values.storage import empty as block
from flowedu.errors import ArgumentError

REDUCTIONS = {"sum": np.add, "max": np.maximum, "min": np.minimum, "prod": np.multiply}
SMALL = 1 << 16                     # bytes up to which a rendezvous costs more than the data
LARGE = 1 << 18                     # bytes from which an array uses a block of tensor memory
_perform: Any = None                # distributed/perform.py's, after its first use
DIFFERENT_CALLS = "collectives of one group differ"
DIFFERENT_VALUES = "ranks make the same collective call on different global tensors"


class Options:
    """Timeouts and checks of a rank, from the environment or set by the program.

    Attributes:
        timeout: the seconds after which a wait raises an error (FLOWEDU_TIMEOUT, default 600).
        notice: the seconds between two messages that name the missing ranks (FLOWEDU_NOTICE, default 10).
        debug: compare calls before each collective even if that costs a message (FLOWEDU_DEBUG_COMM, default
            off).
    """

    def __init__(self, env: Mapping[str, str] = os.environ):
        self.timeout = float(env.get("FLOWEDU_TIMEOUT") or 600)
        self.notice = float(env.get("FLOWEDU_NOTICE") or 10)
        self.debug = env.get("FLOWEDU_DEBUG_COMM", "") not in ("", "0")


options = Options()


class Call(NamedTuple):
    """One rank's call of a collective, with the fields that error messages contain.

    All ranks of a group make the same call, except for `what`.

    Attributes:
        identity: the identity of the global tensor that is moved (identity.py); 0 for local tensors.
    """

    kind: str
    detail: str
    shape: tuple | None
    dtype: str | None
    group: tuple[int, ...]
    what: str
    identity: int = 0

    def find_difference(self, other: Call) -> str:
        """Describe the problem if two ranks of a group make these calls. Return "" if the calls match."""
        if self[:4] != other[:4]:
            return DIFFERENT_CALLS
        return DIFFERENT_VALUES if self.identity != other.identity else ""

    def find_mismatch(self, received: Call, sender: int, receiver: int) -> str:
        """Describe the problem if `sender` makes this call of send, and `receiver` the other call of recv.

        Return "" if the calls match.
        """
        if self[2:4] != received[2:4]:
            return f"rank {receiver} expects another array than rank {sender} sent: {self}"
        return DIFFERENT_VALUES if self.identity != received.identity else ""

    def __str__(self) -> str:
        words = [self.kind, self.detail, *([self.dtype, str(self.shape)] if self.dtype is not None else [])]
        ranks = f"of ranks {', '.join(map(str, self.group))}" if self.group else ""
        return " ".join(w for w in (*words, ranks, f"[{self.what}]" if self.what else "") if w)


class Comm(Simple):
    """A rank's communicator, with all operations of flow.comm, global tensors, and DistributedDataParallel.

    If a rank's calls differ from those of its group, all of them raise CommError.

    Attributes:
        identity: the identity of the global tensor that this rank is moving; 0 for none, or for local
            tensors.
    """

    identity = 0

    @abstractmethod
    def exchange(self, sends: Sequence[tuple[int, np.ndarray]], recvs: Sequence[tuple[int, tuple, np.dtype]],
                 what: str = "") -> list[np.ndarray]:
        """Send each (to, array), then wait for each (from, shape, dtype).

        Messages between two ranks keep their order. Sending never waits, and the arrays may change after this
        call.
        """

    def box(self, route, part: np.ndarray | None, what: str = "", identity: int = 0) -> np.ndarray | None:
        global _perform
        if _perform is None:                                 # querying the rank needs no boxing
            from flowedu.distributed.perform import perform as _perform
        outer = self.identity
        # a step of a graph has one identity for all its data
        self.identity = identity or outer
        try:
            return _perform(self, route, part, what)
        finally:
            self.identity = outer

    def record_waits(self, waits: list[tuple[int, int, str]] | None) -> None:
        """Append each later wait of this rank to `waits` as (begin, end, call), until called with None.

        Times are in ns of time.monotonic_ns.
        """

    def send(self, to: int, a: np.ndarray, what: str = "") -> None:
        """Send `a` without waiting."""
        self.exchange([(to, a)], [], what)

    def recv(self, source: int, shape: tuple, dtype, what: str = "") -> np.ndarray:
        """Return the next array from `source`, which must have this shape and dtype."""
        return self.exchange([], [(source, shape, dtype)], what)[0]

    @abstractmethod
    def all_reduce(self, a: np.ndarray, group: Sequence[int] | None = None, op: str = "sum", what: str = "",
                   out: np.ndarray | None = None) -> np.ndarray:
        """Return the sum (or "max", "min", "prod") of the group's arrays, bitwise the same on each rank.

        `out` is a contiguous array for the result, which may be `a`.
        """

    def start_all_reduce(self, a: np.ndarray, what: str = "") -> Callable[[], np.ndarray]:
        """Start the sum of all ranks' `a`, in place, and return a function that waits for it.

        Do not access `a` until then. Several sums may be in progress; all ranks start them in the same order.
        """
        self.all_reduce(a, None, "sum", what, a)
        return lambda: a

    @abstractmethod
    def all_gather(self, a: np.ndarray, group: Sequence[int] | None = None, what: str = "",
                   out: np.ndarray | None = None) -> np.ndarray:
        """Return the group's arrays of one shape, stacked: (len(group), *a.shape)."""

    @abstractmethod
    def reduce_scatter(self, a: np.ndarray, group: Sequence[int] | None = None, op: str = "sum",
                       what: str = "") -> np.ndarray:
        """Return the sum of the group's a[i] on the i-th rank; a has the shape (len(group), ...)."""

    @abstractmethod
    def broadcast(self, a: np.ndarray | None, root: int, group: Sequence[int] | None = None,
                  what: str = "") -> np.ndarray:
        """Return the root's array. The arrays of other ranks are ignored."""

    @abstractmethod
    def barrier(self, group: Sequence[int] | None = None, what: str = "") -> None:
        """Wait until every rank of the group has reached this call."""

    @abstractmethod
    def all_gather_object(self, obj, group: Sequence[int] | None = None, what: str = "") -> list:
        """Return every rank's `obj`, which consists of JSON types. A tuple arrives as a list."""


def check_group(group: Sequence[int] | None, rank: int, size: int) -> tuple[int, ...]:
    """Return `group` as a tuple; None is all ranks. Raise ArgumentError if it is not a group of this rank."""
    if group is None:
        return tuple(range(size))
    g = tuple(int(r) for r in group)
    if list(g) != sorted(set(g)) or not g or not 0 <= g[0] <= g[-1] < size or rank not in g:
        raise ArgumentError("comm: not a group this rank is in",
                            expected=f"different ranks of 0 to {size - 1}, rising, {rank} among them",
                            got=str(g), fix=f"{tuple(sorted({*g, rank} & set(range(size))))}")
    return g


def check_peer(peer: int, rank: int, size: int, verb: str) -> None:
    if not 0 <= peer < size or peer == rank:
        raise ArgumentError(f"comm: rank {rank} cannot {verb} rank {peer}",
                            expected=f"another rank of 0 to {size - 1}",
                            got=str(peer), fix="a rank keeps its own data without a message")


def reduction(op: str) -> np.ufunc:
    if op not in REDUCTIONS:
        raise ArgumentError("comm: not a reduction", expected=", ".join(REDUCTIONS), got=repr(op),
                            fix='"sum"')
    return REDUCTIONS[op]


def empty(shape: tuple, dtype: np.dtype) -> np.ndarray:
    """Return an uninitialized array.

    A large one uses a block of tensor memory (values/storage.pyx) that was used before, because touching new
    memory for the first time takes as long as a message.
    """
    n = math.prod(shape) * dtype.itemsize
    return np.empty(shape, dtype) if n < LARGE else np.frombuffer(block((n,), uint8), dtype).reshape(shape)


def check_out(out: np.ndarray | None, shape: tuple, dtype: np.dtype) -> np.ndarray:
    """Return `out`, or a new array if it is None."""
    if out is None:
        return empty(shape, dtype)
    if out.shape != shape or out.dtype != dtype or not out.flags.c_contiguous or not out.flags.writeable:
        raise ArgumentError("comm: the result does not fit into out",
                            expected=f"a contiguous {dtype} array {shape}",
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
                            expected="the root, one of the group, passes an array", got=str(call),
                            fix="root=group[0]")
