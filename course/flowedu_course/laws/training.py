"""Laws of chapter 6: training on several devices.

For every part that a student may replace, the losses must equal those of one device; only the bytes moved may
differ.
"""
from __future__ import annotations

import numpy as np

import flowedu as flow
from flowedu import nn
from flowedu.core.graph.ir import Graph
from flowedu.core.ops.define import REGISTRY
from flowedu.core.sbp.sbp import layout
from flowedu.core.values.dtype import float32, int64
from flowedu.core.values.spec import Spec
from flowedu.distributed.graph.infer import HINT
from flowedu_course.laws import become, each, fewer, holds, simpler
from flowedu_course.laws.boxing import devices


def _mlp(sizes, views):
    """Return an MLP; with `views`, the first weight is also read through a transposed view."""
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(sizes[0], sizes[1]), nn.Linear(sizes[1], sizes[2])

        def forward(self, x):
            h = flow.relu(self.first(x))
            if views:
                h = h + flow.matmul(x, self.first.weight.t())
            return self.last(h)

    return Tied()


def _graph(case, k, stage):
    sizes, rule, views = case
    flow.manual_seed(1)
    model = _mlp(sizes, views).to_global(flow.placement("cpu", list(range(k))), flow.sbp.broadcast)

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer((flow.optim.Adam if rule == "Adam" else flow.optim.SGD)(model.parameters(),
                                                                                       lr=0.01))
            if stage:
                self.config.enable_zero(True, stage=stage, shard_min_size=8)

        def build(self, x, t):
            loss = (self.model(x) - t).square().mean()
            loss.backward()
            return loss

    return Train()


def trained(case, k, stage, steps=3):
    """Train for some steps and return (graph, losses)."""
    place, rows = flow.placement("cpu", list(range(k))), flow.sbp.split(0)
    graph, rng = _graph(case, k, stage), np.random.default_rng(2)
    losses = []
    for _ in range(steps):
        x, t = (flow.tensor(rng.standard_normal((12, n)).astype(np.float32), placement=place, sbp=rows)
                for n in (case[0][0], case[0][2]))
        losses.append(float(graph(x, t).numpy().mean()))
    return graph, losses


def _trainings(rng, size):
    """Draw ((sizes, rule, views), devices, stage)."""
    sizes = tuple(4 * rng.randint(1, 1 + size) for _ in range(3))
    return (sizes, rng.choice(("SGD", "Adam")), rng.random() < 0.4), rng.randint(2, 4), rng.randint(1, 3)


_smaller_trainings = simpler((0, simpler((2, become(False)), (1, become("SGD")))), (1, become(2)))


def _describe(case):
    (sizes, rule, views), k, stage = case
    read = ", the first weight read twice" if views else ""
    return f"stage {stage}, {k} devices, an MLP {' - '.join(map(str, sizes))}{read}, {rule}"


@holds("losses equal those without ZeRO", _trainings, _smaller_trainings, cases=8, told=_describe)
def same_losses(case, yours):
    with devices(4):
        want, got = trained(case[0], case[1], 0)[1], trained(case[0], case[1], case[2])[1]
    if np.allclose(got, want, rtol=1e-4):
        return None
    return [f"  yours           losses {[round(v, 5) for v in got]}",
            f"  without ZeRO    {[round(v, 5) for v in want]}"]


# ---- the casts themselves, in a graph of a few nodes
READS = ("plain", "view", "twice", "shared", "unary")


def _readings(rng, size):
    """Draw (how each reader reads the weight, stage).

    "twice" is a view of a view, "shared" is what the previous reader reads, and "unary" is a reader with one
    input that is not a view.
    """
    return tuple(rng.choice(READS) for _ in range(rng.randint(1, 1 + size))), rng.randint(1, 3)


def _logical(reads):
    """Return (graph, weight, gradient, nodes that read the weight, update node)."""
    g = Graph("zero")
    square = Spec((8, 8), float32)
    h, w = g.input("x", square), g.variable("w", square)
    rate, step = g.host("rate", Spec((1,), float32)), g.host("step", Spec((1,), int64))
    seen, readers = w, []
    with g.building():
        for how in reads:
            seen = seen if how == "shared" else w
            for _ in range({"view": 1, "twice": 2}.get(how, 0)):
                seen = REGISTRY["transpose"](seen, perm=(1, 0))
            result = REGISTRY["neg"](seen) if how == "unary" else seen
            h = REGISTRY["matmul"](h, result)
            readers.append(result.node if how == "unary" else h.node)
        grad = REGISTRY["matmul"](g.inputs["x"], h, transpose_a=True)
        REGISTRY["sgd_update"](rate, step, w, grad)
    g.outputs = [h]
    return g, w, grad, readers, g.nodes[-1]


def _origin(value):
    """Return the node whose result `value` is a view of; a cast counts as such a node."""
    while value.node is not None and value.node.op is not HINT and value.node.op.view is not None:
        value = value.node.inputs[0]
    return value.node


def _describe_reads(case):
    reads, stage = case
    often = {0: "by its update only", 1: "once"}.get(len(reads), f"{len(reads)} times")
    return f"stage {stage}, a weight that is read {often} ({', '.join(reads)})".replace(" ()", "")


@holds("casts only where they are needed", _readings, simpler((0, fewer), (0, each(become("plain")))),
       cases=60, told=_describe_reads,
       edges=[(reads, s) for reads in ((), ("plain",), ("view", "shared"), ("unary",)) for s in (1, 2, 3)],
       large=[(READS * 24, 3)])
def casts(case, yours):
    reads, stage = case
    g, w, grad, readers, update = _logical(reads)
    like = dict.fromkeys(g.nodes, "its reader's")
    alone = yours(g, {w: layout("B", range(4))}, stage, like)
    known = {*g.inputs.values(), *g.variables.values(), *g.hosts.values()}
    for n in g.nodes:
        if any(x not in known for x in n.inputs):
            return [f"  {n.name} comes before a node that it reads"]
        known.update(n.outputs)
    made = [n for n in g.nodes if n.op is HINT and n.inputs[0] is w]
    want = len(reads) if stage == 3 else min(1, len(reads))
    if len(made) != want:
        return [f"  yours           {len(made)} casts of the weight", f"  should be       {want}"]
    if len({n.name for n in g.nodes}) != len(g.nodes):
        return ["  two nodes have the same name"]
    for n in readers:
        if _origin(n.inputs[-1]) not in made:
            return [f"  {n.name} reads the split weight: each device has only a part"]
    if stage == 3 and len({_origin(n.inputs[-1]) for n in readers}) != len(readers):
        return ["  two readers share a cast, so its result is kept from forward to backward"]
    if update.inputs[2] is not w:
        return ["  the update does not write the weight"]
    cut = [n for n in g.nodes if n.op is HINT and n.inputs[0] is grad]
    if len(cut) != (stage == 1) or (cut and update.inputs[3] is not cut[0].outputs[0]):
        return [f"  yours           {len(cut)} casts of the gradient",
                f"  should be       "
                f"{'one, which the update reads: all-reduced, then split' if stage == 1 else 'none'}"]
    if set(alone) != (set(made) if stage == 3 else set()):
        return [f"  yours           returns {len(alone)} casts",
                f"  should be       {'the casts of the weight' if stage == 3 else 'none'}"]
    if any(n not in like for n in (*made, *cut)):
        return ["  a cast has no entry in `like`, which should be that of its reader"]
    return None


# ---- bytes moved and memory
def _describe_bill(case):
    width, stage = case
    return f"stage {stage}, an MLP {width} - {2 * width} - {width} on 4 devices"


@holds("stage 1 sends 1.5x the bytes, stage 2 1x", lambda rng, size: (32 * size, rng.randint(1, 3)),
       lambda case: [(32, case[1])] if case[0] > 32 else [], cases=6, told=_describe_bill)
def bill(case, yours):
    width, stage = case
    with devices(4):
        plain, graph = (trained(((width, 2 * width, width), "SGD", False), 4, s, 1)[0].bytes
                        for s in (0, stage))
    least, most = {1: (1.49, 1.51), 2: (0.99, 1.01), 3: (1.01, 1.5)}[stage]
    shares = {1: "1.5", 2: "1", 3: "between 1 and 1.5"}
    if least <= graph / plain <= most:
        return None
    return [f"  yours           {graph:,} bytes in a step: {graph / plain:.2f} of data parallelism's "
            f"{plain:,}", f"  should be       {shares[stage]} of it"]


