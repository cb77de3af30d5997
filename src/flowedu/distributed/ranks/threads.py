"""Comm between threads of one process, which read each other's arrays without a copy.

For a small array, the last rank to arrive computes the result for all, so there is one rendezvous. For a
large array, each rank computes its share of every result, and a second rendezvous ends the call.
"""
from __future__ import annotations

import json

import numpy as np

from flowedu.distributed.ranks.base import (
    SMALL,
    Call,
    Comm,
    check_group,
    check_lead,
    check_out,
    check_peer,
    check_root,
    reduction,
)
from flowedu.distributed.ranks.meet import World

BLOCK = 1 << 15                     # elements worked on at a time, so that they are read from memory once


def _share(n: int, k: int, i: int) -> tuple[int, int]:
    """Return the i-th of k balanced parts of range(n)."""
    return n * i // k, n * (i + 1) // k


def _reduce(f: np.ufunc, arrays: list[np.ndarray], outs: list[np.ndarray], lo: int, hi: int) -> None:
    """Reduce arrays[...][lo:hi] in rank order into outs[...][lo:hi]; all arrays are flat."""
    for a in range(lo, hi, BLOCK):
        b = min(hi, a + BLOCK)
        first = outs[0][a:b]
        f(arrays[0][a:b], arrays[1][a:b], out=first)      # which may be arrays[0] itself
        for x in arrays[2:]:
            f(first, x[a:b], out=first)
        for out in outs[1:]:
            out[a:b] = first


class ThreadComm(Comm):
    """The communicator of a rank of `world`."""

    def __init__(self, world: World, rank: int):
        self.world, self.rank, self.size = world, rank, world.size

    def record_waits(self, waits):
        self.world.waits[self.rank] = waits

    def _call(self, kind: str, group, detail: str = "", a: np.ndarray | None = None, what: str = "") -> Call:
        group = check_group(group, self.rank, self.size)
        shape, dtype = (None, None) if a is None else (a.shape, str(a.dtype))
        return Call(kind, detail, shape, dtype, group, what, self.identity)

    def _end(self, call: Call) -> None:
        """Wait until all ranks have read the arrays, before any rank continues and changes its own."""
        self.world.meet(self.rank, call._replace(kind="end of " + call.kind))

    def exchange(self, sends, recvs, what=""):
        for to, a in sends:
            check_peer(to, self.rank, self.size, "send to")
            call = Call("send", f"to rank {to}", a.shape, str(a.dtype), (), what, self.identity)
            self.world.post(self.rank, to, call, np.array(a))
        out = []
        for source, shape, dtype in recvs:
            check_peer(source, self.rank, self.size, "receive from")
            call = Call("recv", f"from rank {source}", tuple(shape), str(np.dtype(dtype)), (), what,
                        self.identity)
            out.append(self.world.take(self.rank, source, call))
        return out

    def all_reduce(self, a, group=None, op="sum", what="", out=None):
        f = reduction(op)
        a = np.ascontiguousarray(a).reshape(np.shape(a))
        call = self._call("all_reduce", group, op, a, what)
        out = check_out(out, a.shape, a.dtype)
        if len(call.group) == 1:
            np.copyto(out, a)
            return out

        def together(given):
            xs, outs = [[given[r][i].reshape(-1) for r in call.group] for i in (0, 1)]
            _reduce(f, xs, outs, 0, a.size)

        if a.nbytes <= SMALL:
            self.world.meet(self.rank, call, (a, out), together)
            return out
        xs, outs = self.world.meet(self.rank, call, (a, out), lambda given: [
            [given[r][i].reshape(-1) for r in call.group] for i in (0, 1)])
        _reduce(f, xs, outs, *_share(a.size, len(call.group), call.group.index(self.rank)))
        self._end(call)
        return out

    def all_gather(self, a, group=None, what="", out=None):
        a = np.asarray(a)
        call = self._call("all_gather", group, "", a, what)
        out = check_out(out, (len(call.group), *a.shape), a.dtype)
        if a.nbytes <= SMALL:
            def together(given):
                for i, r in enumerate(call.group):
                    for _, y in given.values():
                        y[i] = given[r][0]

            self.world.meet(self.rank, call, (a, out), together)
            return out
        given = self.world.meet(self.rank, call, a, lambda given: given)
        for i, r in enumerate(call.group):
            out[i] = given[r]
        self._end(call)
        return out

    def reduce_scatter(self, a, group=None, op="sum", what=""):
        f, a = reduction(op), np.ascontiguousarray(a)
        call = self._call("reduce_scatter", group, op, a, what)
        check_lead(a, call)
        i = call.group.index(self.rank)
        given = self.world.meet(self.rank, call, a, lambda given: given)
        out = np.empty(a.shape[1:], a.dtype)
        if len(given) == 1:
            np.copyto(out, a[0])
            return out
        _reduce(f, [given[r][i].reshape(-1) for r in call.group], [out.reshape(-1)], 0, out.size)
        self._end(call)
        return out

    def broadcast(self, a, root, group=None, what=""):
        call = self._call("broadcast", group, f"from rank {root}", None, what)
        check_root(a, root, self.rank, call)
        given = self.world.meet(self.rank, call, a if self.rank == root else None, lambda given: given)
        out = np.array(given[root])
        self._end(call)
        return out

    def barrier(self, group=None, what=""):
        self.world.meet(self.rank, self._call("barrier", group, what=what))

    def all_gather_object(self, obj, group=None, what=""):
        call = self._call("all_gather_object", group, what=what)
        given = self.world.meet(self.rank, call, json.dumps(obj), lambda given: given)
        return [json.loads(given[r]) for r in call.group]
