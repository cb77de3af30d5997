"""Program: a graph, laid out, that can be run again and again.

    passes     the graph becomes a shorter one that means the same, once                     (passes.py)
    plan       each node becomes a kernel call, each value a place in memory                 (plan.py, memory.py)
    executor   the plan as one C array of calls: a run is one call, whatever the graph       (executor.pyx)

A plan holds for one number of threads (kernels ask for scratch memory per thread) and for variables that lie where they
lay when it was made. Where that changed the program is stale, and the next run lays it out anew.

Job functions, nn.Graph, each rank of a graph of global tensors, and graphs loaded from a file all are run by this.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from threading import RLock
from time import perf_counter

from flowedu.core.eager.dispatch import get_num_threads
from flowedu.core.extensions import extension
from flowedu.core.graph.executor import Executor
from flowedu.core.graph.ir import Graph, GraphValue
from flowedu.core.graph.passes import run_passes
from flowedu.core.graph.plan import Plan, make_plan
from flowedu.errors import GraphError


class Program:
    """One graph and the one memory it runs in.

    Args:
        graph: what to run. The passes work on it here and now.
        off: names of passes that are switched off.
        tensors: whether arguments and outputs are tensors (else ndarrays).
        share: how many programs run at the same time, this one included; each gets an equal share of the threads.
        lock: held by each run, for programs that share variables with others. Default: a lock of its own.
        place: the device it runs on (Block.device).

    Attributes: report, a line from each pass; plan and executor, once it is linked.
    """

    def __init__(self, graph: Graph, off: Iterable[str] = (), *, tensors: bool = True, share: int = 1, lock=None,
                 place: int = 0):
        self.graph, self.tensors, self.share, self.place = graph, tensors, share, place
        self.gpu = extension("plans on a GPU")(place) if place else None
        self.off = frozenset(off).union(self.gpu.off if self.gpu else ())
        self.report = run_passes(graph, self.off, self.gpu.lower if self.gpu else None)
        self.lock = RLock() if lock is None else lock
        self.plan: Plan | None = None
        self.executor: Executor | None = None

    def link(self, arrays: Mapping[GraphValue, object], counter=None, before: Sequence[Callable[[], None]] = ()) -> None:
        """Give the program its memory, and lay it out there.

        Args:
            arrays: {variable or host value: its tensor}.
            counter: the variable (int64) that counts the steps made, if there is one.
            before: called at the start of each run; they write the host values.
        """
        self.arrays, self.counter, self.before = dict(arrays), counter, tuple(before)
        written = {node.inputs[k] for node in self.graph.nodes for k in node.mutates}
        self.written = [t for v, t in self.arrays.items() if v in written and v.kind == "variable"]
        self.lay_out()

    def lay_out(self) -> None:
        """Plan and executor, for the present number of threads and the memory that the variables have now."""
        for value, t in self.arrays.items():
            if t.spec != value.spec:
                raise GraphError(f"{self.graph.name}: {value.name} has changed since the graph was compiled",
                                 expected=str(value.spec), got=str(t.spec), fix="convert modules before the first call")
        threads = max(1, get_num_threads() // self.share)
        self.plan = make_plan(self.graph, self.arrays, self.report, threads=threads, inplace="inplace" not in self.off,
                              reuse="reuse" not in self.off, scratch=self.gpu.scratch if self.gpu else None)
        start = perf_counter()
        make = self.gpu.executor if self.gpu else extension("executor of a plan", Executor)
        executor = make(self.plan, threads=threads)
        executor.as_tensors, executor.counter, executor.written = self.tensors, self.counter, self.written
        self.graph.spent["executor"] = perf_counter() - start
        if self.executor is not None:
            executor.runs = self.executor.runs              # random numbers go on where they were
        self.executor = executor
        if executor.pythons:                                # its kernels may run other programs, even from two threads:
            self.lock = nullcontext()                       # the executor sees to it that they do not wait for each other

    def stale(self) -> bool:
        """Whether the layout does not hold any more."""
        return self.executor.stale(self.share)

    def run(self, arguments: tuple) -> list:
        """One run; the outputs. `arguments`: contiguous, of the inputs' shapes and dtypes.

        There is one arena: whatever thread calls, one run follows the other.
        """
        with self.lock:
            if self.executor.stale(self.share):         # written out: a call of a small graph takes less than 1 us
                self.lay_out()
            for write in self.before:
                write()
            return self.executor.run(arguments)
