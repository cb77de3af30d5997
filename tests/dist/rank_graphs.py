"""Helpers that run logical graphs as rank graphs."""
import numpy as np

import flowedu as flow
from flowedu.core.graph.program import Program
from flowedu.core.values.place import Place
from flowedu.distributed.graph.infer import Inference
from flowedu.distributed.graph.lower import lower
from flowedu.distributed.graph.view import RankPrograms
from flowedu.distributed.perform import perform
from flowedu.distributed.rank_graphs import unread
from flowedu.distributed.ranks.workers import VirtualEngine
from flowedu.tensor import tensor


class Counting:
    """Comm that counts the bytes sent by its rank. Collectives count as the best algorithms: (k-1)/k of the
    array for reduce-scatter and for each half of all-reduce, each part k-1 times for all-gather.
    """

    def __init__(self, comm):
        self.comm = comm
        self.rank = comm.rank
        self.size = comm.size
        self.sent = 0

    def box(self, route, part, what=""):
        return perform(self, route, part, what)

    def exchange(self, sends, recvs, what=""):
        self.sent += sum(a.nbytes for _, a in sends)
        return self.comm.exchange(sends, recvs, what)

    def all_reduce(self, a, group=None, *args, **kwargs):
        self.sent += 2 * a.nbytes * (len(group) - 1) / len(group)
        return self.comm.all_reduce(a, group, *args, **kwargs)

    def all_gather(self, a, group=None, *args, **kwargs):
        self.sent += a.nbytes * (len(group) - 1)
        return self.comm.all_gather(a, group, *args, **kwargs)

    def reduce_scatter(self, a, group=None, *args, **kwargs):
        self.sent += a.nbytes * (len(group) - 1) / len(group)
        return self.comm.reduce_scatter(a, group, *args, **kwargs)

    def broadcast(self, a, root, group=None, *args, **kwargs):
        self.sent += a.nbytes * (len(group) - 1) if root == self.rank else 0
        return self.comm.broadcast(a, root, group, *args, **kwargs)


def cut(a, at, i):
    """Return device i's part of an array in a layout without partial sums."""
    return np.ascontiguousarray(a[tuple(slice(*b) for b in at.box(a.shape, i))])


def whole(parts, at, shape, dtype):
    """Assemble the logical array from {rank: part}."""
    addends = np.zeros((max(at.slots, 1), *shape), dtype)
    for i, d in enumerate(at.devices):
        addends[(at.slot(i), *(slice(*b) for b in at.box(shape, i)))] = parts[d]
    return {"max": np.max, "min": np.min}.get(at.reducer, np.sum)(addends, axis=0).astype(dtype)


class Run:
    """Logical graph on `k` virtual devices. variables, hosts: {name: array}; sources: {name: layout}."""

    def __init__(self, graph, k, sources, variables=(), off=(), **options):
        self.graph, self.engine = graph, VirtualEngine(k)
        self.engine.comms = self.comms = [Counting(c) for c in self.engine.comms]
        unread(graph)
        table = {**graph.inputs, **graph.variables, **graph.hosts}
        self.inferred = Inference(graph, Place(tuple(range(k)), (k,)),
                                  {table[n]: at for n, at in sources.items()}, **options).run()
        self.ranks = lower(self.inferred, self.engine.owned)
        self.programs = RankPrograms(self.engine, self.ranks, off)
        self.arrays = {r: {} for r in self.ranks}
        for name, a in dict(variables).items():
            at = self.inferred.layout_of(table[name])
            for i, r in enumerate(at.devices):
                self.arrays[r][name] = tensor(cut(np.asarray(a), at, i))
        self.programs.link(self.arrays)

    def __call__(self, *arrays):
        """Run one step and return the logical outputs."""
        args = {r: [] for r in self.ranks}
        for v, a in zip(self.graph.inputs.values(), arrays):
            at = self.inferred.layout_of(v)
            for i, r in enumerate(at.devices):
                args[r].append(tensor(cut(np.asarray(a), at, i)))
        out = self.programs.run({r: tuple(a) for r, a in args.items()})
        found = []
        for n, v in enumerate(self.graph.outputs):
            at = self.inferred.layout_of(v)
            parts = {r: out[r][g.outputs.index(n)].numpy() for r, g in self.ranks.items() if n in g.outputs}
            found.append(whole(parts, at, v.shape, v.dtype.numpy))
        return found

    @property
    def sent(self):
        """Return the bytes that the ranks have sent so far."""
        return sum(c.sent for c in self.comms)

    def variable(self, name):
        v = self.graph.variables[name]
        parts = {r: t[name].numpy() for r, t in self.arrays.items() if name in t}
        return whole(parts, self.inferred.layout_of(v), v.shape, v.dtype.numpy)


class Single:
    """The same graph on one device."""

    def __init__(self, graph, variables=(), off=()):
        self.graph = graph
        self.program = Program(graph, off, tensors=False)
        self.arrays = {n: tensor(np.array(a)) for n, a in dict(variables).items()}
        table = {v: self.arrays[n] for t in (graph.variables, graph.hosts) for n, v in t.items()}
        self.program.link(table)

    def __call__(self, *arrays):
        return self.program.run(tuple(np.ascontiguousarray(a) for a in arrays))

    def variable(self, name):
        return self.arrays[name].numpy()


def spec(a):
    return flow.core.values.spec.Spec(np.shape(a), flow.core.values.dtype.as_dtype(np.asarray(a).dtype))
