"""Program: a graph with its memory and executor, which can be run many times.

    passes     rewrite the graph once into a shorter, equivalent one (passes.py)
    plan       turns nodes into kernel calls, and values into memory regions (plan.py, memory.py)
    executor   stores the plan as one C array of calls, and runs it in one call (executor.pyx)

A plan is valid for one number of threads (kernels allocate scratch memory per thread) and for the
addresses of the variables. If either has changed, the next run makes a new plan.

Job functions, nn.Graph, the ranks of a graph of global tensors, and loaded graphs use this class.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from threading import RLock
from time import perf_counter
from typing import Any

from flowedu.core import extensions
from flowedu.core.eager.dispatch import TensorBase, get_num_threads
from flowedu.core.graph.executor import Executor
from flowedu.core.graph.ir import Graph, GraphValue
from flowedu.core.graph.passes import run_passes
from flowedu.core.graph.plan import Plan, make_plan
from flowedu.errors import graphs as errors


class Program:
    """A graph with its passes applied, its plan, and its executor.

    Args:
        graph: the graph to run. The constructor runs the passes on it.
        off: names of passes that are switched off.
        tensors: True if arguments and outputs are tensors, False if they are ndarrays.
        share: number of programs that run at the same time, with equal shares of the threads.
        lock: lock held during each run, for programs that share variables. Default: a new lock.
        place: the device of the program (Block.device).

    Attributes: `report` has one line per pass. `link` sets `plan` and `executor`.
    """

    def __init__(self, graph: Graph, off: Iterable[str] = (), *, tensors: bool = True,
                 share: int = 1, lock: AbstractContextManager | None = None, place: int = 0):
        self.graph, self.tensors = graph, tensors
        self.share, self.place = share, place
        self.gpu = extensions.gpu_plan(place) if place else None
        self.off = frozenset(off).union(self.gpu.off if self.gpu else ())
        self.report = run_passes(graph, self.off, self.gpu.lower if self.gpu else None)
        self.lock: AbstractContextManager = RLock() if lock is None else lock
        self.plan: Plan | None = None
        self.executor: Executor | Any = None

    def link(self, arrays: Mapping[GraphValue, Any], counter: TensorBase | None = None,
             before: Sequence[Callable[[], None]] = ()) -> None:
        """Set the memory of the variables, and make the plan and the executor.

        Args:
            arrays: {variable or host value: its tensor}.
            counter: the variable (int64) that counts the finished steps, if the graph has one.
            before: functions called at the start of each run to write the host values.
        """
        self.arrays, self.counter, self.before = dict(arrays), counter, tuple(before)
        written = {node.inputs[k] for node in self.graph.nodes for k in node.mutates}
        self.written = [t for v, t in self.arrays.items() if v in written and v.kind == "variable"]
        self.lay_out()

    def lay_out(self) -> None:
        """Make the plan and the executor for the current threads and variable addresses."""
        for value, t in self.arrays.items():
            if t.spec != value.spec:
                raise errors.changed_value(self.graph.name, value, t.spec)
        threads = max(1, get_num_threads() // self.share)
        self.plan = make_plan(self.graph, self.arrays, self.report, threads=threads,
                              inplace="inplace" not in self.off, reuse="reuse" not in self.off,
                              scratch=self.gpu.scratch if self.gpu else None)
        start = perf_counter()
        make = self.gpu.executor if self.gpu else extensions.make_executor or Executor
        executor = make(self.plan, threads=threads)
        executor.as_tensors = self.tensors
        executor.counter, executor.written = self.counter, self.written
        self.graph.spent["executor"] = perf_counter() - start
        if self.executor is not None:
            executor.runs = self.executor.runs       # continue the sequence of random numbers
        self.executor = executor
        if executor.pythons:  # Python kernels may run programs; the executor prevents deadlocks
            self.lock = nullcontext()

    def stale(self) -> bool:
        """Return True if the plan is no longer valid."""
        return self.executor.stale(self.share)

    def run(self, arguments: tuple) -> list:
        """Run once and return the outputs. `arguments` are contiguous and match the inputs' Specs.

        All runs share one arena, so calls from several threads run one after the other.
        """
        with self.lock:
            if self.executor.stale(self.share):    # inlined: a small graph takes less than 1 us
                self.lay_out()
            for write in self.before:
                write()
            return self.executor.run(arguments)
