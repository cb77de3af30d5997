"""Compiled: the graph of a job for one set of argument shapes, with its Program and outputs."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowedu.core import extensions
from flowedu.core.eager.arrays import copied
from flowedu.core.graph.ir import GraphValue
from flowedu.core.graph.program import Program
from flowedu.core.job.context import JobContext
from flowedu.core.job.session import Session
from flowedu.core.layers.context import use_context


class Compiled:
    """A compiled graph that runs the calls of a job.

    Args:
        context: the context of the job, after its body ran.
        returned: the values to fetch.
        off: names of the passes to leave out.
        devices: number of virtual devices of the graph.

    `returned` has the position of each returned value in the outputs. `deliveries` has pairs
    (positions in the outputs, handler). `spread` is the distribution over several devices, or None.
    """

    def __init__(self, context: JobContext, returned: Sequence[GraphValue], off: Sequence[str] = (),
                 devices: int = 1):
        self.context = context
        self.graph = graph = context.graph
        with use_context(context), graph.building():
            watched = context.finish()
        unique = list(dict.fromkeys([*returned, *(v for values, _ in watched for v in values)]))
        graph.outputs = list(unique)
        self.returned = [unique.index(v) for v in returned]
        self.deliveries = [(tuple(map(unique.index, values)), handler)
                           for values, handler in watched]
        readers = Counter([*self.returned, *(i for where, _ in self.deliveries for i in where)])
        self.shared = {i for i, n in readers.items() if n > 1}    # each reader gets a copy
        self.spread = extensions.spread_job(graph, devices) if devices > 1 else None
        # Jobs share variables, so the lock of the session allows one run at a time.
        self.program = Program(graph, off, tensors=False, lock=context.session.lock,
                               place=context.place)

    def link(self, session: Session) -> None:
        rates = [(schedule, copied(np.full(1, schedule(0), np.float32)), value)
                 for schedule, value in self.context.rates]
        arrays: dict = {v: session.variables[n].tensor for n, v in self.graph.variables.items()}
        arrays.update({value: rate for _, rate, value in rates})
        step = session.variables.get(f"System-Train-TrainStep-{self.context.name}")
        counter = step.tensor if step is not None else None
        self.step: Any = counter.numpy() if counter is not None else None
        self.schedules = [(schedule, rate.numpy()) for schedule, rate, _ in rates]
        self.varying = [pair for pair in self.schedules if not pair[0].is_constant]
        self.program.link(arrays, counter,
                          [self._write_rates] if self.varying and step is not None else ())
        if not self.deliveries:
            self.run = self.program.run  # type: ignore[assignment]  # no handlers to call

    def _write_rates(self) -> None:
        for schedule, rate in self.varying:
            rate[0] = schedule(int(self.step[0]))

    def run(self, args: tuple) -> list[np.ndarray]:  # type: ignore[no-redef]  # see link
        """Run one step on checked arrays, call the watch handlers, and return the outputs."""
        return self.deliver(self.program.run(args))

    def deliver(self, outputs: list[np.ndarray]) -> list[np.ndarray]:
        """Call the watch handlers with their outputs."""
        for where, handler in self.deliveries:
            handler([outputs[i].copy() if i in self.shared else outputs[i] for i in where])
        return outputs

    def fetch(self, outputs: list[np.ndarray], number: int) -> np.ndarray:
        """Return the value `number` of the job's results. No other reader shares this array."""
        i = self.returned[number]
        return outputs[i].copy() if i in self.shared else outputs[i]
