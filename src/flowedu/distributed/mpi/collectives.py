"""Collectives of the MPI communicator."""
from __future__ import annotations

import json

import numpy as np

from flowedu.distributed.mpi.mpi import NATIVE, TEXT, Group, Messages, flat
from flowedu.distributed.mpi.near import CAPACITY, Lanes, Near
from flowedu.distributed.ranks.base import REDUCTIONS, SMALL, check_lead, check_out, check_root, reduction

AGREE = 1 << 18                     # bytes from which ranks compare calls first, since the data takes longer
CALLS = 1024                        # cached small calls


class MpiComm(Messages):
    """The communicator of this process."""

    def __init__(self, MPI):
        super().__init__(MPI)
        self._lanes = Lanes(MPI, MPI.COMM_WORLD)
        self._near: dict[tuple, Near | None] = {}
        self._ops = {"sum": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN, "prod": MPI.PROD}

    # ---- small arrays, on one machine
    def _small(self, key: tuple, kind: str, op: str, a: np.ndarray, what: str) -> Near | None:
        """Return the call as a Near if it uses lanes. `key` has the group, op or kind, shape, and dtype."""
        g = self._group(key[0])
        near = None
        if self._lanes.reach(g, a.nbytes) and (kind == "all_gather" or g.pairwise):
            called = (kind, op, a.shape, a.dtype, what)
            numbers = [i for i in range(g.k) if i != g.me] if kind == "all_gather" else \
                [g.me ^ d for d in (1, 2, 4) if d < g.k]
            near = Near(self._lanes, g, called, self._tag(*called[:4]), numbers)
        if len(self._near) >= CALLS:
            self._near.clear()
        self._near[key] = near
        return near

    def all_reduce(self, a, group=None, op="sum", what="", out=None):
        shape, dtype = a.shape, a.dtype
        key = (group if type(group) is not list else tuple(group), op, shape, dtype)
        near = self._near.get(key, self)
        if near is self:
            reduction(op)
            near = self._small(key, "all_reduce", op, a, what) if a.nbytes <= CAPACITY else None
        if near is None:
            return self._all_reduce(a, group, op, what, check_out(out, shape, dtype))
        out = np.empty(shape, dtype) if out is None else check_out(out, shape, dtype)
        near.enter(self, what)
        f, mine, tag = REDUCTIONS[op], a, near.tag ^ self.identity << 28
        # Recursive doubling: with the next, the next but one ...
        for lane, _, above, boxes in near.steps:
            if not lane.swap(mine, tag):
                self._wait(lambda lane=lane: lane.here(tag), near.g)
            # In rank order, so that all ranks get the same bits.
            theirs = boxes[lane.side]
            mine = f(mine, theirs, out) if above else f(theirs, mine, out)
        return out

    def _all_reduce(self, a, group, op: str, what: str, out: np.ndarray):
        f = REDUCTIONS[op]
        if not a.flags.c_contiguous:
            a = a.copy()
        small = a.nbytes <= SMALL
        g = self._begin(group, "all_reduce", op, a.shape, a.dtype, what, a.nbytes >= AGREE)
        if g.k == 1:
            np.copyto(out, a)
        elif g.k == 2 or small and g.pairwise:
            self._double(g, a, out, f, op, not small)
        elif a.dtype.char in NATIVE:
            if a.nbytes < AGREE:
                self._agree(g)
            where = self.MPI.IN_PLACE if a is out else a
            self._wait(g.comm.Iallreduce(where, out, self._ops[op]).Test, g, True)
        else:                                               # float16, bool: MPI has no type for them
            parts = self.all_gather(a, g.ranks, what)
            np.copyto(out, parts[0])
            for x in parts[1:]:
                f(out, x, out=out)
        return out

    def start_all_reduce(self, a, what=""):
        if self.size == 1 or a.dtype.char not in NATIVE:
            return super().start_all_reduce(a, what)
        # a separate communicator: these may still be in transit
        key = (*range(self.size), -1)
        g = self._groups.get(key)
        if g is None:
            everyone = self._groups[None]
            self._begin(None, "new group", "", None, None, what, True)
            g = self._groups[key] = Group(everyone.ranks, self.rank, everyone.comm.Dup(), key)
        g.number += 1
        g.called, g.identity = ("start_all_reduce", "sum", a.shape, a.dtype, what), self.identity
        wait, request = self._about(g), g.comm.Iallreduce(self.MPI.IN_PLACE, a)

        def arrive() -> np.ndarray:
            self._wait(request.Test, wait)
            return a

        return arrive

    def _double(self, g: Group, a, out, f: np.ufunc, op: str, near: bool) -> None:
        """Compute all_reduce by recursive doubling: after step i, groups of 2^(i+1) ranks have their sum."""
        comm, me, tag = g.comm, g.me, self._call_tag("all_reduce", op, a.shape, a.dtype)
        theirs = np.empty_like(out) if g.k > 2 or out is a or np.may_share_memory(a, out) else out
        got, mine, d = flat(theirs), a, 1
        while d < g.k:
            other = me ^ d
            receive = comm.Irecv(got, other, tag)
            send = comm.Isend(flat(mine), other, tag)
            self._wait(receive.Test, g, near)
            if not send.Test():
                self._wait(send.Test, g, near)
            # In rank order, so that all ranks get the same bits.
            if me < other:
                f(mine, theirs, out=out)
            else:
                f(theirs, mine, out=out)
            mine, d = out, d * 2

    def all_gather(self, a, group=None, what="", out=None):
        key = (group if type(group) is not list else tuple(group), "", a.shape, a.dtype)
        near = self._near.get(key, self)
        if near is self:
            near = self._small(key, "all_gather", "", a, what) if a.nbytes <= CAPACITY else None
        if near is None:
            return self._all_gather(a, group, what, out)
        out = check_out(out, (len(near.steps) + 1, *a.shape), a.dtype)
        near.enter(self, what)
        tag = near.tag ^ self.identity << 28
        for lane, *_ in near.steps:
            lane.put(a, tag)
        out[near.g.me] = a
        for lane, i, _, boxes in near.steps:
            if not lane.here(tag, True):
                self._wait(lambda lane=lane: lane.here(tag), near.g)
            out[i] = boxes[lane.side]
        return out

    def _all_gather(self, a, group, what: str, out):
        if not a.flags.c_contiguous:
            a = a.copy()
        direct = a.nbytes < AGREE
        g = self._begin(group, "all_gather", "", a.shape, a.dtype, what, not direct)
        out = check_out(out, (g.k, *a.shape), a.dtype)
        if g.k == 2 or g.k <= 4 and direct:
            comm, me = g.comm, g.me
            mine, tag = flat(a), self._call_tag(*g.called[:4])
            requests = [comm.Irecv(flat(out[i:i + 1]), i, tag) for i in range(g.k) if i != me]
            requests += [comm.Isend(mine, i, tag) for i in range(g.k) if i != me]
            out[me] = a
            for r in requests:
                if not r.Test():
                    self._wait(r.Test, g, not direct)
        else:
            if direct:
                self._agree(g)
            self._wait(g.comm.Iallgather(flat(a), flat(out)).Test, g, True)
        return out

    def reduce_scatter(self, a, group=None, op="sum", what=""):
        f = reduction(op)
        if not a.flags.c_contiguous:
            a = a.copy()
        g = self._begin(group, "reduce_scatter", op, a.shape, a.dtype, what, True)
        check_lead(a, g.call())
        out = np.empty(a.shape[1:], a.dtype)
        if g.k == 1:
            np.copyto(out, a[0])
        elif g.k > 2 and a.dtype.char in NATIVE:
            self._wait(g.comm.Ireduce_scatter_block(a, out, self._ops[op]).Test, g, True)
        else:
            tag = self._tag("reduce_scatter", op, a.shape, a.dtype)
            others = [i for i in range(g.k) if i != g.me]
            parts = np.empty(a.shape, a.dtype)
            requests = [g.comm.Irecv(flat(parts[i:i + 1]), i, tag) for i in others]
            requests += [g.comm.Isend(flat(a[i:i + 1]), i, tag) for i in others]
            self._wait(lambda: self.MPI.Request.Testall(requests), g, True)
            parts[g.me] = a[g.me]
            np.copyto(out, parts[0])
            for x in parts[1:]:
                f(out, x, out=out)
        return out

    def broadcast(self, a, root, group=None, what=""):
        g = self._begin(group, "broadcast", f"from rank {root}", None, None, what, True)
        check_root(a, root, self.rank, g.call())
        if g.k == 1:
            return np.array(a)
        head = np.full(TEXT, 32, np.uint8)
        if self.rank == root:
            a = np.array(a, order="C")
            text = json.dumps([a.shape, a.dtype.str]).encode()
            head[:len(text)] = np.frombuffer(text, np.uint8)
        self._wait(g.comm.Ibcast(head, g.ranks.index(root)).Test, g, True)
        if self.rank != root:
            shape, dtype = json.loads(bytes(head))
            a = np.empty(shape, dtype)
        self._wait(g.comm.Ibcast(flat(a), g.ranks.index(root)).Test, g, True)
        return a

    def barrier(self, group=None, what=""):
        self._begin(group, "barrier", "", None, None, what, True)

    def all_gather_object(self, obj, group=None, what=""):
        data = np.frombuffer(json.dumps(obj).encode(), np.uint8)
        g = self._begin(group, "all_gather_object", "", None, None, what, True)
        if g.k == 1:
            return [json.loads(bytes(data))]
        sizes = np.empty(g.k, np.int64)
        self._wait(g.comm.Iallgather(np.array([data.size]), sizes).Test, g, True)
        mine, every = np.zeros(sizes.max(), np.uint8), np.empty((g.k, sizes.max()), np.uint8)
        mine[:data.size] = data
        self._wait(g.comm.Iallgather(mine, every).Test, g, True)
        return [json.loads(bytes(row[:n])) for row, n in zip(every, sizes)]

    def close(self) -> None:
        super().close()
        self._lanes.window.Free()
