"""Executable form of a OneFlow 0.4 job after its body ran: arguments, host part, plan, results.

If no shape varies, the job has one plan. If a shape varies from call to call (tp.ListNumpy arguments, images
that were just decoded), one plan is compiled for each combination of shapes. The most recently used plans are
cached.
"""
from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Any

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.ir import GraphValue
from flowedu.core.job.blob import JobBlob
from flowedu.core.job.compiled import Compiled
from flowedu.core.job.program import CompiledJob
from flowedu.core.job.session import Session
from flowedu.core.job.values import aligned_array
from flowedu.core.layers.context import use_context
from flowedu.core.values import placeholder as ph
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.errors import CheckError
from flowedu.oneflow04.job import debug
from flowedu.oneflow04.job.containers import (
    as_numpy_dtype,
    check_returned,
    copy_for_caller,
    flatten_values,
    split_per_device,
)
from flowedu.oneflow04.job.context04 import Context04
from flowedu.oneflow04.job.host_part import HostPart
from flowedu.oneflow04.job.placed_blobs import ConsistentBlob, MirroredBlob
from flowedu.oneflow04.job.session04 import Session04

KEPT = 32                # plans per job of varying shapes


class LoggedPlan(Compiled):
    """A plan whose steps and rates are logged in debug mode."""

    job: Any                            # the Job04, set by Program04
    step: Any                           # the array of the step counter, or None

    def link(self, session: Session) -> None:
        super().link(session)
        if self.step is not None and debug.enabled():
            self.run = self.run_logged

    def run_logged(self, args: tuple) -> list[np.ndarray]:
        with self.program.lock:
            outputs = self.program.run(args)
            debug.step(self.job, int(self.step[0]) - 1, [float(rate[0]) for _, rate in self.schedules])
        return self.deliver(outputs)


class Program04(CompiledJob):
    """The executable form of one job.

    Attributes, in addition to those of CompiledJob:
        fed: for each argument, its definition and its value on each device.
        host: the calls that run before the plan.
        varying: the inputs whose sizes vary.
        kept: the cached plans by size.
    """

    context_type = Context04
    context: Context04
    session: Session04
    only: Any                           # a LoggedPlan, or None if a shape varies

    def __init__(self, job, session):
        self.fed: list[tuple[ph.ArgBlobDef, tuple[GraphValue, ...]]] = []
        super().__init__(job, session)

    # ---- building
    def input(self, d: ph.ArgBlobDef) -> JobBlob:
        context, spec = self.context, Spec(d.shape, d.dtype)
        if isinstance(d, ph.FixedTensorDef):
            value = context.graph.input(d.op_name, spec)
            self.fed.append((d, (value,)))
            blob = ConsistentBlob(value, d.op_name, "out", context)
            blob = blob if d.distribute is None else blob.with_distribute(d.distribute)
            return context.views.cast(blob) if context.views.micro_batches > 1 else blob
        if not context.views.mirrored:
            raise CheckError(f"{context.name}: {type(d).__name__} needs flow.scope.mirrored_view",
                             got=repr(d), expected="tp.Numpy placeholders in a consistent view",
                             fix="config.default_logical_view(flow.scope.mirrored_view()), or use "
                             "tp.Numpy.Placeholder")
        devices = context.placement.devices
        values = tuple(context.graph.input(d.op_name if len(devices) == 1 else f"{d.op_name}_{i}", spec)
                       for i in range(len(devices)))
        self.fed.append((d, values))
        if d.is_tensor_list:
            context.lists.update(values)
        return MirroredBlob(values, d.op_name, "out", context, True)

    def complete(self) -> None:
        context, config = self.context, self.job.config
        depth = int(config.values.get("prefetch", 2)) if config else 2
        self.host = HostPart(context, lambda n: self.session.variables[n].tensor._on_host(), depth)
        self._hoist()
        self.plain = self.obstacle() is None
        self.runs = 0
        self.kept: OrderedDict[tuple, LoggedPlan] = OrderedDict()
        # If shapes vary, this plan is for the largest. It reports errors early and declares the optimizer's
        # variables.
        self.only = self._compile({})

    def obstacle(self) -> str | None:
        """Describe why a call cannot be a single run of one plan on its arrays. Return None if it can."""
        if self.host.calls:
            return "a reader or another call that runs before the plan"
        if self.varying:
            return "a placeholder whose shape varies"
        if any(type(d) is not ph.FixedTensorDef for d, _ in self.fed):
            return "an argument that is a list of arrays"
        return None if all(len(v) == 1 for v in self.fetched) else "a result on several devices"

    def _hoist(self) -> None:
        """Remove the host calls from the graph.

        Their results that the plan reads become inputs of the graph.
        """
        context, graph = self.context, self.context.graph
        host = [c for c in context.calls if c.is_host]
        made = {r for c in host for r in c.results}
        read = {v for c in context.calls if not c.is_host for v in c.inputs()}
        read.update(v for values, _, _ in context.watches for v in values)
        if context.goal:
            read.update(v for values in context.goal.losses for v in values)
            read.update(context.blobs[n] for n in context.goal.training.rate_names() if n in context.blobs)
        varies = self._varying_values()
        nodes = {n for c in host for n in c.nodes}
        graph.nodes = [n for n in graph.nodes if n not in nodes]
        for value in [v for v in graph.inputs.values() if v in context.lists]:
            del graph.inputs[value.name]
        for value in made & read:
            value.kind, value.node = "input", None
            graph.inputs[value.name] = value
        self.varying = [v for v in graph.inputs.values() if v in varies]
        self.direct = {v for values in self.fetched for v in values if v in made or v in context.lists}
        check_returned(context.name, self.direct)
        # A value that another call reads is copied, because the result of that call may share its memory.
        fetched = Counter(v for values in self.fetched for v in values)
        used = {v for c in context.calls for v in c.inputs()} | set(graph.inputs.values())
        alone = {v for v in self.direct - used if fetched[v] == 1 and v.node is not None}
        # Returned without a copy.
        self.given = {v for v in alone if getattr(v.node.op.host, "anew", False)}

    def _varying_values(self) -> set[GraphValue]:
        """Return the values whose size may differ from call to call."""
        found = {v for d, values in self.fed if d.is_dynamic for v in values}
        for call in self.context.calls:
            if not found.isdisjoint(call.inputs()):
                found.update(call.results)
            found.update(r for r in call.results if self.context.is_dynamic(r, ()))
        return found

    def _compile(self, specs: dict[GraphValue, Spec]) -> LoggedPlan:
        context, table = self.context.resized(specs) if self.varying else (self.context, lambda v: v)
        with use_context(context), context.graph.building():
            planned = [as_numpy_dtype(table(v)) for values in self.fetched for v in values
                       if v not in self.direct]
        plan = LoggedPlan(context, planned, self.off, self.session.device_count)
        plan.job = self.job
        return plan

    def link(self) -> None:
        if self.varying:
            self.only = None
        else:
            self.only.link(self.session)

    def close(self) -> None:
        """End the thread that reads ahead."""
        self.host.close()

    # ---- running
    def run(self, args: tuple) -> tuple[LoggedPlan, list[list]]:
        """Run one call. Return (the plan that ran, the arrays of each returned blob, one per device)."""
        feed = self._feed(args)
        known = {**feed, **self.host.run(feed)} if self.host.calls else feed

        def value(v: GraphValue) -> np.ndarray:
            return known[v].numpy() if isinstance(known[v], Tensor) else known[v]

        compiled: Any = self.only
        if compiled is None:
            specs = {v: Spec(a.shape, as_dtype(a.dtype)) for v in self.varying for a in [value(v)]}
            with self.session.lock:
                compiled = self._plan_for(specs)
                # Plans must not repeat each other's random values.
                compiled.program.executor.runs = self.runs
                self.runs += 1
        outputs = compiled.run(tuple(aligned_array(value(v)) for v in self.context.graph.inputs.values()))
        numbers = iter(range(len(compiled.returned)))

        def fetch(v: GraphValue) -> Any:
            if v not in self.direct:
                return compiled.fetch(outputs, next(numbers))
            return value(v) if v in self.given else copy_for_caller(value(v))

        return compiled, [[fetch(v) for v in values] for values in self.fetched]

    def _plan_for(self, specs: dict[GraphValue, Spec]) -> LoggedPlan:
        key = tuple(specs.values())
        found = self.kept.pop(key, None)
        if found is None:
            found = self._compile(specs)
            found.link(self.session)
        self.kept[key] = found
        if len(self.kept) > KEPT:
            self.kept.popitem(last=False)
        return found

    def _feed(self, args: tuple) -> dict[GraphValue, Any]:
        """Return {input of the graph: array or TensorList}."""
        job, devices = self.job, self.context.devices
        trees = job.signature.check_arguments(self.defs, args, devices)
        feed: dict[GraphValue, Any] = {}
        for (d, values), array in zip(self.fed, flatten_values(self.defs, trees)):
            feed.update(zip(values, split_per_device(d, array)))
        return feed
