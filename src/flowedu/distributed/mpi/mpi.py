"""Comm between processes, by MPI (extra `mpi`: mpi4py and an MPI library).

All calls are nonblocking and polled, so a waiting rank still answers probes (see watch). Ranks check that
they make the same call. For small arrays this needs no extra message: the arrays are sent directly from rank
to rank with a tag computed from the call, so different calls do not match. In all other cases the ranks first
exchange a hash of the call. Large data is sent only after all ranks have arrived.
"""
from __future__ import annotations

import os
import sys
import time
import zlib
from collections import Counter
from typing import Any

import numpy as np

from flowedu.distributed.mpi.watch import CLOSING, CollectiveEdge, MessageEdge, Wait, Watch
from flowedu.distributed.ranks.base import (
    DIFFERENT_CALLS,
    DIFFERENT_VALUES,
    Call,
    Comm,
    check_group,
    check_peer,
    options,
)
from flowedu.errors import CommError, user_line

SPIN = 400                          # tests before a rank yields the processor
LISTEN, PROBE = 0.2, 1.0            # seconds of waiting after which a rank reads probes, and sends one
TEXT = 512
NATIVE = set("fdilqbhBHILQ")        # dtype letters that MPI has types for


class Group:
    """A group of ranks with its own communicator.

    Attributes:
        number: the number of collectives that this rank has entered.
        called: the fields of the latest call.
        identity: the identity of the value that the latest call moves.
    """

    __slots__ = ("comm", "ranks", "key", "k", "me", "pairwise", "number", "called", "identity")

    def __init__(self, ranks: tuple[int, ...], rank: int, comm=None, key: tuple[int, ...] | None = None):
        self.comm, self.ranks = comm, ranks
        self.k, self.me = len(ranks), ranks.index(rank)
        self.key = key or ranks                              # by which ranks speak of it
        self.pairwise = self.k in (2, 4, 8)
        self.number, self.identity = 0, 0
        self.called: Any = None                              # a tuple after the first call

    def call(self) -> Call:
        kind, detail = self.called[:2]
        shape, dtype, what = self.called[2:]
        return Call(kind, detail, shape, dtype and str(dtype), self.ranks, what, self.identity)


def flat(a: np.ndarray) -> np.ndarray:
    """Return the bytes of a contiguous array."""
    return a if a.dtype.char in NATIVE else a.reshape(-1).view(np.uint8)


class Messages(Comm):
    """The part of the communicator that waits, forms groups, compares calls, and sends messages."""

    def __init__(self, MPI):
        world = MPI.COMM_WORLD
        self.MPI, self.rank, self.size = MPI, world.rank, world.size
        self.broken = False
        self._letters, self._setup = world.Dup(), world.Dup()
        self.watch = Watch(MPI, world.Dup())
        everyone = Group(tuple(range(self.size)), self.rank, world.Dup())
        self._groups: dict = {None: everyone, everyone.ranks: everyone}
        self.watch.groups = self._groups
        self._tags: dict[tuple, int] = {}
        self._received: Counter[int] = Counter()
        self._pending: list[tuple] = []
        self._tag_limit = min(world.Get_attr(MPI.TAG_UB), (1 << 28) - 1)
        self._mine, self._all = np.empty(2, np.int64), np.empty(2, np.int64)

    # ---- waiting
    def record_waits(self, waits):
        self.__dict__.pop("_wait", None)
        if waits is None:
            return

        def wait(test, about, near=False):
            begin = time.monotonic_ns()
            Messages._wait(self, test, about, near)
            text = about.text.removeprefix("waits in ") if isinstance(about, Wait) else str(about.call())
            waits.append((begin, time.monotonic_ns(), text))

        self._wait = wait

    def _wait(self, test, about, near: bool = False) -> None:
        """Poll `test` until it is true.

        about: the group whose latest call this is, or a Wait. near: all ranks have arrived.
        """
        for _ in range(SPIN):
            if test():
                return
        sleep, end = os.sched_yield, time.perf_counter() + 2e-4
        while time.perf_counter() < end:
            if test():
                return
            sleep()
        self._wait_long(test, about, near)

    def _wait_long(self, test, about, near: bool) -> None:
        watch = self.watch
        watch.begin(about if isinstance(about, Wait) else self._about(about))
        start = time.monotonic()
        nap, listen = 2e-5, LISTEN
        probe, notice = PROBE, options.notice
        try:
            while not test():
                spent = time.monotonic() - start
                if near and spent < LISTEN:
                    os.sched_yield()
                    continue
                if spent >= listen:
                    watch.poll()
                    listen = spent + 0.05
                if spent >= probe and not watch.wait.text.startswith(CLOSING.text):
                    watch.probe()
                    probe = spent + PROBE
                if spent >= notice and watch.missing:
                    ranks = ", ".join(map(str, watch.missing))
                    print(f"rank {self.rank} has waited {spent:.0f} s in "
                          f"{watch.wait.text.removeprefix('waits in ')} for ranks {ranks}",
                          file=sys.stderr, flush=True)
                    notice = spent + options.notice
                if spent >= options.timeout and watch.wait.edges:
                    raise CommError(f"rank {self.rank} has waited {spent:.0f} s for ranks "
                                    f"{', '.join(map(str, watch.missing))} (FLOWEDU_TIMEOUT)",
                                    got=f"rank {self.rank} {watch.wait.text}", at="")
                self._progress()
                time.sleep(nap)
                nap = min(nap * 1.5, 1e-3)
        except CommError:
            self.broken = True
            raise
        finally:
            watch.end()

    def _about(self, g: Group) -> Wait:
        call = g.call()
        others = [r for r in g.ranks if r != self.rank]
        edge = CollectiveEdge(g.key, g.number)
        return Wait(f"waits in {call}", dict.fromkeys(others, edge), dict.fromkeys(others, call))

    def _progress(self) -> None:
        if self._pending:
            self._pending = [p for p in self._pending if not p[0].Test()]

    # ---- groups
    def _group(self, group) -> Group:
        g = self._groups.get(group) if group is None or type(group) is tuple else None
        if g is not None:
            return g
        ranks = check_group(group, self.rank, self.size)
        return self._groups.get(ranks) or self._join(ranks)

    def _join(self, ranks: tuple[int, ...]) -> Group:
        """Return a communicator for these ranks, created by them alone.

        They first wait for each other, since creation blocks.
        """
        MPI, tag = self.MPI, self._tag("group", *ranks)
        g = self._groups[ranks] = Group(ranks, self.rank)
        g.number, g.called = 1, ("new group", "", None, None, "")
        others = [r for r in ranks if r != self.rank]
        got = [np.empty(1, np.int8) for _ in others]
        requests = [self._setup.Irecv(b, r, tag) for b, r in zip(got, others)]
        requests += [self._setup.Isend(np.zeros(1, np.int8), r, tag) for r in others]
        self._wait(lambda: MPI.Request.Testall(requests), g)
        g.comm = MPI.COMM_WORLD.Create_group(MPI.COMM_WORLD.Get_group().Incl(list(ranks)), tag % 30000)
        return g

    def _tag(self, *key) -> int:
        tag = self._tags.get(key)
        if tag is None:
            tag = self._tags[key] = zlib.crc32(repr(key).encode()) % self._tag_limit
        return tag

    def _call_tag(self, *key) -> int:
        """Return the tag of a collective's messages.

        Ranks that move different values wait, and then compare their calls.
        """
        return (self._tag(*key) + self.identity) % self._tag_limit

    def _agree(self, g: Group) -> None:
        """Wait until all ranks have arrived. Raise CommError on all of them if their calls differ."""
        h = self._tag(*g.called[:4]) | g.identity << 28
        self._mine[:] = h, -h
        self._wait(g.comm.Iallreduce(self._mine, self._all, self.MPI.MAX).Test, g)
        if self._all[0] != h or self._all[1] != -h:
            text = f"{g.call()}\n{user_line()}".encode()[:TEXT]
            mine, every = np.full(TEXT, 32, np.uint8), np.empty((g.k, TEXT), np.uint8)
            mine[:len(text)] = np.frombuffer(text, np.uint8)
            self._wait(g.comm.Iallgather(mine, every).Test, g)
            self.broken = True
            calls = [bytes(t).decode(errors="replace").rstrip().partition("\n") for t in every]
            lines = [f"rank {r} called {call}, {line}" for r, (call, _, line) in zip(g.ranks, calls)]
            raise CommError(DIFFERENT_CALLS if len({call for call, _, _ in calls}) > 1 else DIFFERENT_VALUES,
                            got="\n            ".join(lines), at="",
                            fix="every rank of a group must make the same calls, in the same order")

    def _begin(self, group, kind: str, detail: str, shape, dtype, what: str, first: bool) -> Group:
        """Enter a collective. With `first`, compare calls before data moves."""
        g = self._groups.get(group) if group is None or type(group) is tuple else None
        if g is None:
            g = self._group(group)
        if self.broken:
            raise CommError("an earlier collective of this rank failed",
                            fix="end the program: ranks are out of step")
        g.number += 1
        g.called, g.identity = (kind, detail, shape, dtype, what), self.identity
        if (first or options.debug) and g.k > 1:
            self._agree(g)
        return g

    # ---- messages
    def exchange(self, sends, recvs, what=""):
        MPI, watch = self.MPI, self.watch
        self._progress()
        for to, a in sends:
            check_peer(to, self.rank, self.size, "send to")
            copy = np.array(a, order="C")
            n = watch.posts(to, Call("send", f"to rank {to}", copy.shape, str(copy.dtype), (), what,
                                     self.identity))
            request = self._letters.Isend(flat(copy), to, self._tag_of(n, copy.shape, copy.dtype))
            self._pending.append((request, copy))
        if not recvs:
            return []
        out, requests, numbers = [], [], []
        for source, shape, dtype in recvs:
            check_peer(source, self.rank, self.size, "receive from")
            self._received[source] += 1
            numbers.append(self._received[source])
            b = np.empty(shape, dtype)
            out.append(b)
            requests.append(self._letters.Irecv(flat(b), source, self._tag_of(numbers[-1], b.shape, b.dtype)))

        def test() -> bool:
            self._progress()
            return MPI.Request.Testall(requests)

        calls = [Call("recv", f"from rank {r}", b.shape, str(b.dtype), (), what, self.identity)
                 for (r, _, _), b in zip(recvs, out)]
        text = " and ".join(map(str, calls))
        edges, by = {}, {}
        for (r, _, _), n, call in zip(recvs, numbers, calls):
            edges.setdefault(r, MessageEdge(n))
            by.setdefault(r, call)
        self._wait(test, Wait(f"waits in {text}", edges, by))
        return out

    def _tag_of(self, number: int, shape: tuple, dtype: np.dtype) -> int:
        return (self._tag(shape, dtype.str) + number * 40503 + self.identity) % self._tag_limit

    # ---- shutdown
    def close(self) -> None:
        """Wait until every rank has finished.

        Meanwhile, report to ranks that wait for this rank that it makes no more calls.
        """
        self._wait(self._setup.Ibarrier().Test, CLOSING)
        self._progress()
        if self._pending:
            raise CommError(f"rank {self.rank} sent arrays that were not received", at="", got="; ".join(
                f"{a.dtype} {a.shape}" for _, a in self._pending), fix="each send needs a recv")
