"""Compiled: a job's graph for one set of argument shapes, from its last node to its executor."""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext

import numpy as np

from flowedu.context import pushed
from flowedu.graph.executor import Executor, scratch_bytes
from flowedu.graph.ir import GraphValue
from flowedu.graph.passes import run_passes
from flowedu.graph.plan import Plan, make_plan
from flowedu.ops.core import get_num_threads
from flowedu.tensor import tensor


class Compiled:
    """Passes, plan and executor.

    Args:
        context: the job, its body done.
        returned: the values to fetch.
        off: passes that are switched off.
        devices: how many virtual devices the graph is laid on.

    Attributes: plan and executor (after `link`); returned, where in the outputs each returned value is; deliveries,
    (positions in the outputs, handler).
    """

    def __init__(self, context, returned: Sequence[GraphValue], off: Sequence[str], devices: int):
        self.context, self.off = context, tuple(off)
        self.graph = graph = context.graph
        with pushed(context), graph.building():
            watched = context.finish()
        unique = list(dict.fromkeys([*returned, *(v for d in watched for v in d.values)]))
        graph.outputs = list(unique)
        self.returned = [unique.index(v) for v in returned]
        self.deliveries = [(tuple(map(unique.index, d.values)), d.handler) for d in watched]
        asked = Counter([*self.returned, *(i for where, _ in self.deliveries for i in where)])
        self.shared = {i for i, n in asked.items() if n > 1}      # every receiver gets an array of its own
        self.spread = None
        if devices > 1:
            from flowedu.dist.spread import spread
            self.spread = spread(graph, devices)
        self.report = run_passes(graph, self.off)
        self.executor: Executor | None = None
        self.on_step: Callable[[int, list[float]], None] | None = None     # debug mode: told every step and its rates

    def link(self, session) -> None:
        """Plan the graph over the session's variables."""
        graph, name = self.graph, self.context.name
        rates = [(schedule, tensor(np.zeros(1, np.float32)), value) for schedule, value in self.context.rates]
        self.arrays: dict[GraphValue, object] = {v: session.variables[n].tensor for n, v in graph.variables.items()}
        self.arrays.update({value: rate for _, rate, value in rates})
        step = session.variables.get(f"System-Train-TrainStep-{name}")
        self.counter = step.tensor if step is not None else None
        self.step = self.counter.numpy() if step is not None else None
        self.schedules = [(schedule, rate.numpy()) for schedule, rate, _ in rates]
        self.varying = []
        for schedule, rate in self.schedules:
            rate[0] = schedule(0)
            if not schedule.is_constant:
                self.varying.append((schedule, rate))
        self.nodes, self.outputs = list(graph.nodes), list(graph.outputs)
        self.lay_out()

    def lay_out(self) -> None:
        """Make the plan and its executor, for the present number of threads."""
        graph = self.graph
        graph.nodes, graph.outputs = list(self.nodes), list(self.outputs)
        runs = self.executor.runs if self.executor else 0
        self.plan: Plan = make_plan(graph, self.arrays, scratch_bytes, self.report, inplace="inplace" not in self.off,
                                    reuse="reuse" not in self.off)
        self.executor = Executor(self.plan)
        self.executor.runs, self.executor.counter = runs, self.counter
        # Jobs share variables: one runs at a time, whatever thread calls it. Python kernels may call other jobs, even from
        # two threads; plans with those keep order by themselves.
        self.lock = nullcontext() if any(s.entry.python for s in self.plan.steps) else self.context.session.lock

    def run(self, args: tuple) -> list[np.ndarray]:
        """One step on arrays that `executor.accepts`; the outputs. Watch handlers have been called when it returns."""
        with self.lock:
            if self.executor.nt != get_num_threads():
                self.lay_out()
            outputs = self.executor.run(args) if self.step is None else self._step(args)
        for where, handler in self.deliveries:
            handler([outputs[i].copy() if i in self.shared else outputs[i] for i in where])
        return outputs

    def _step(self, args: tuple) -> list[np.ndarray]:
        """One step of training: rates, plan, step counter."""
        step = self.step
        for schedule, rate in self.varying:
            rate[0] = schedule(int(step[0]))
        outputs = self.executor.run(args)
        if self.on_step is not None:
            self.on_step(int(step[0]) - 1, [float(rate[0]) for _, rate in self.schedules])
        return outputs

    def fetch(self, outputs: list[np.ndarray], number: int) -> np.ndarray:
        """Returned value `number`, an array of its own."""
        i = self.returned[number]
        return outputs[i].copy() if i in self.shared else outputs[i]
