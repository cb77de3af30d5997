"""Predicted time of a training step on many devices, compared with two processes.

The prediction uses the cost model of chapter 6.

The model counts bytes that boxing moves (core/sbp/choose.py), elements that calls touch (core/ops/axes.py,
with the weights of distributed/auto), and bytes of a rank's memory plan. It has no seconds, so these are
measured: a step on one device, the bytes per second between two processes, and, for comparison, a step on two
processes.

    seconds = seconds on one device * share of its work * waiting in a pipeline + bytes sent / bytes per
    second

As a script on ranks of the launcher, it measures: scale_devices.py WIDTH DEPTH BATCH MICRO ROUNDS.
"""
from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterable
from contextlib import contextmanager
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

import flowedu as flow
from flowedu import nn
from flowedu.core.sbp.boxing.algebra import Route
from flowedu.core.sbp.ranks import VirtualComm, VirtualEngine, current, use
from flowedu.core.values.spec import Spec
from flowedu.distributed.auto.model import work
from scale_rows import noise, resident

PLANS = ("data", "tensor", "pipeline", "ZeRO 1", "ZeRO 2", "ZeRO 3")


class Size(NamedTuple):
    """Sizes of a model: `depth` layers of width x width, and the number of micro-batches of a pipeline."""

    width: int = 1024
    depth: int = 8
    batch: int = 1024
    micro: int = 8


class Train(nn.Graph):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model, self.loss = model, nn.CrossEntropyLoss()
        self.add_optimizer(flow.optim.Adam(model.parameters(), lr=1e-3))

    def build(self, x, y):
        loss = self.loss(self.model(x), y)
        loss.backward()
        return loss


def stages(size: Size, devices: int) -> int:
    """Return the number of pipeline stages. With more devices than layers, a stage splits its batch."""
    return min(size.depth, devices)


def _tensor_parallel_sbp(p, layer: int):
    """Return the SBP of a parameter: even layers are split by outputs, odd ones by inputs."""
    if layer % 2 == 0:
        return flow.sbp.split(0)
    return flow.sbp.split(1) if p.ndim == 2 else flow.sbp.broadcast


def laid_out(plan: str, size: Size, devices: int):
    """Return (graph, inputs) of one plan, which is given by placements and SBP signatures only."""
    split, whole = flow.sbp.split, flow.sbp.broadcast
    flow.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(size.width, size.width), nn.ReLU()) for _ in range(size.depth)]
    model, at = nn.Sequential(*layers), flow.placement("cpu", list(range(devices)))
    if plan == "pipeline":
        many = stages(size, devices)
        row = devices // many
        places = [flow.placement("cpu", list(range(i * row, (i + 1) * row))) for i in range(many)]
        part = [places[i * many // size.depth] for i in range(size.depth)]
        for layer, place in zip(layers, part):
            layer.to_global(place, whole)
        graph = Train(model)
        for i, place in enumerate(part):
            graph.model[i].to(nn.graph.GraphModule).set_stage(places.index(place), place)
        graph.config.set_gradient_accumulation_steps(size.micro)
        ends = [(places[0], split(0) if row > 1 else whole), (places[-1], split(0) if row > 1 else whole)]
    else:
        model.to_global(at, whole)
        if plan == "tensor":
            for i, layer in enumerate(layers):
                layer.to_global(sbp=lambda p, i=i: _tensor_parallel_sbp(p, i))
        graph = Train(model)
        if plan.startswith("ZeRO"):
            graph.config.enable_zero(True, stage=int(plan[-1]))
        ends = [(at, whole if plan == "tensor" else split(0))] * 2
    x, y = noise(size.batch, size.width), np.arange(size.batch) % size.width
    return graph, [flow.tensor(a, placement=place, sbp=sbp) for a, (place, sbp) in zip((x, y), ends)]


# ---- predictions
class _Alone(VirtualComm):
    """Communicator of the only existing rank. It receives its own messages, and zeros from other ranks."""

    def all_gather_object(self, x):
        return [x] * self.size

    def broadcast(self, x, *rest):
        return x

    def box(self, route, part, what="", identity=0):
        at = route.dst
        if self.rank not in at.devices:
            return None
        return np.zeros(at.local_shape(route.spec.shape, at.devices.index(self.rank)), route.spec.dtype.numpy)


class _Imagined(VirtualEngine):
    """Engine for `k` ranks of which only rank 0 exists. It can compile programs but not run them."""

    def __init__(self, k: int):
        super().__init__(k)
        self.owned = (0,)

    def comm(self, rank: int):
        return _Alone(self.world, rank, self.size)


@contextmanager
def imagined(devices: int):
    """Context manager for compiling on `devices` imagined devices.

    Routes have one message with the right number of bytes, because listing all pairs of 1,000 devices takes
    minutes.
    """
    with use(_Imagined(devices)), \
            patch.object(Route, "messages", lambda route: [(0, 1, route.bytes // devices)] if route.bytes
                         else []):
        yield


def predicted(plan: str, size: Size, devices: int) -> dict[str, float]:
    """Return bytes sent per device, work of the busiest device, waiting (1: none), and memory of device 0."""
    with imagined(devices):
        graph, inputs = laid_out(plan, size, devices)
        graph._compile(*inputs)
        view = graph._compiled.spread
        many = stages(size, devices) if plan == "pipeline" else 1
        return {"sent": graph.bytes / devices, "memory": graph.memory()[0].total,
                "work": max(worked(view.inferred.rows, i * (devices // many)) for i in range(many)),
                "waiting": (size.micro + many - 1) / size.micro if many > 1 else 1.0}


def worked(rows: Iterable, rank: int) -> int:
    """Return the number of elements that one rank touches in a step."""
    total = 0
    for row in rows:
        if row.node is None or row.op == "parallel_cast" or rank not in row.devices:
            continue
        i = row.devices.index(rank)
        if row.calls is not None:
            call = row.calls[i]
            total += work(call.op, call.ins, call.outs, call.attrs)
        else:
            ins = [Spec(at.local_shape(x.shape, at.devices.index(rank)) if rank in at.devices
                        else (0,) * x.ndim, x.dtype)
                   for x, at in zip(row.node.inputs, row.reads)]
            total += work(row.node.op, ins, [y.spec for y in row.node.outputs], row.node.attrs)
    return total


def seconds(found: dict[str, float], alone: dict[str, float], speed: float) -> float:
    """Return the predicted seconds of a step. alone: data of one device; speed: bytes per second."""
    return alone["seconds"] * found["work"] / alone["work"] * found["waiting"] + found["sent"] / speed


# ---- measurements
def measured(plan: str, size: Size, rounds: int) -> dict[str, float]:
    """Return seconds and memory of a step on the existing ranks, measured on this rank."""
    before = resident()
    graph, inputs = laid_out(plan, size, current().size)
    times = []
    for _ in range(rounds + 1):                             # the first compiles
        start = time.perf_counter()
        graph(*inputs)
        times.append(time.perf_counter() - start)
    kept.append(graph)
    return {"seconds": statistics.median(times[1:]), "memory": resident() - before}


kept: list = []          # keeps graphs alive, so that each allocates its own memory


def speed(size: Size, rounds: int) -> float:
    """Return the bytes per second between two ranks, measured by an all-reduce of a layer's weights."""
    engine = current()
    comm, a = engine.comm(engine.rank), np.ones(size.width * size.width, np.float32)
    out, times = np.empty_like(a), []
    for _ in range(2 * rounds + 1):
        start = time.perf_counter()
        comm.all_reduce(a, out=out)
        times.append(time.perf_counter() - start)
    return a.nbytes / statistics.median(times[1:])


def main() -> None:
    *numbers, rounds = map(int, sys.argv[1:])
    size, engine = Size(*numbers), current()
    flow.set_num_threads(1)
    found = {plan: measured(plan, size, rounds) for plan in PLANS}
    rate = speed(size, rounds)
    if engine.rank == 0:
        print(json.dumps({"plans": found, "speed": rate}))
    engine.comm(engine.rank).barrier()


if __name__ == "__main__":
    main()
