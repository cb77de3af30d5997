"""Laws of chapter 5: training steps with activation checkpointing or micro-batches.

Losses and weights must equal those of the plain step; only memory use differs.
"""
from __future__ import annotations

import numpy as np

import flowedu as flow
from flowedu import nn
from flowedu.core.ops.define import REGISTRY
from flowedu.nn.graph.unroll import Checkpoint
from flowedu.swap import swapped
from flowedu_course.laws import become, copy_function, holds, less, simpler, where_differ

WIDTH = 8


def _model(blocks, layers, rate=0.0, norm=False, width=WIDTH):
    flow.manual_seed(3)

    def block():
        return nn.Sequential(*[m for _ in range(layers) for m in (
            nn.Linear(width, width), nn.Tanh(), *([nn.Dropout(rate)] if rate else []),
            *([nn.BatchNorm1d(width)] if norm else []))])

    return nn.Sequential(*[block() for _ in range(blocks)], nn.Linear(width, 3)).double()     # float64


def _optimizer(model):
    return flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def _graph(model, micro=1, again=0, shown=False):
    """Return a training step of the model.

    again: number of leading parts with activation checkpointing; shown: also return the model's output.
    """
    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model, self.loss_fn = model, nn.CrossEntropyLoss()
            self.add_optimizer(_optimizer(model))
            self.config.set_gradient_accumulation_steps(micro)

        def build(self, *batch):
            if batch:
                found = self.model(batch[0])
                loss = self.loss_fn(found, batch[1])
            else:
                loss = _size(self.model)
            loss.backward()
            return (loss, found) if shown and batch else loss

    graph = Train()
    for _, part in zip(range(again), graph.model):
        part.to(nn.graph.GraphModule).activation_checkpointing = True
    return graph


def _size(model):
    """Return the loss of a graph without inputs."""
    return model[-1].weight.square().sum()


def _data(rows, width=WIDTH):
    rng = np.random.default_rng(5)
    return flow.tensor(rng.standard_normal((rows, width))), flow.tensor(rng.integers(0, 3, rows))


def _copy_state(model):
    named = [*model.named_parameters(), *model.named_buffers()]
    return {n: t.detach().numpy().copy() for n, t in named if t.is_floating_point()}


def _differ(mine, right):
    """Return a line about the first weight that differs."""
    for n, w in right.items():
        if not np.allclose(mine[n], w, rtol=1e-4, atol=1e-6):
            i = int(np.argmax(np.abs(mine[n] - w)))
            return f"  {n} is {mine[n].flat[i]:.6f} after two steps, should be {w.flat[i]:.6f}"
    return None


def _arena(graph):
    return graph._compiled.program.plan.arena


# ---- activation checkpointing
def _draw_model(rng, size):
    """Draw (blocks, layers per block, dropout)."""
    return rng.randint(1, 1 + size // 2), rng.randint(1, size), rng.choice((0.0, 0.5))


_smaller_forgotten = simpler((2, become(0.0)), (0, become(1)), (1, become(1)))


def _trained(case, again, rows=12):
    """Return (first loss, weights after two steps, graph)."""
    model = _model(*case)
    graph = _graph(model, again=again)
    x, y = _data(rows)
    losses = [graph(x, y).item() for _ in range(2)]
    return losses[0], _copy_state(model), graph


def _format_count(n, what):
    return f"{n} {what}{'s' * (n != 1)}"


def _describe_block(case):
    blocks, layers, rate = case
    dropout = f", dropout {rate}" if rate else ""
    return f"{_format_count(blocks, 'block')} of {_format_count(layers, 'layer')}{dropout}, none kept"


@holds("loss and weights are unchanged", _draw_model, _smaller_forgotten, cases=12, told=_describe_block,
       edges=[(1, 1, 0.0), (1, 1, 0.5)], large=[(6, 4, 0.5)])
def same_step(case, yours):
    return _changes(_trained(case, 0), _trained(case, case[0]))


def _changes(right, mine):
    """Return the lines of a failure if the loss or the weights of a step differ, or None."""
    (want, weights, _), (got, mine, _) = right, mine
    if not np.isclose(got, want, rtol=1e-5):
        return [f"  yours           a loss of {got:.6f}", f"  with all kept   {want:.6f}"]
    differ = _differ(mine, weights)
    return differ and [differ, "  a gradient was computed from other values than those of the forward pass"]


@holds("each node is recomputed once", _draw_model, _smaller_forgotten, cases=6, told=_describe_block)
def made_once(case, yours):
    return _repeats(case, _trained(case, case[0])[2])


def _repeats(case, graph):
    operators = graph._compiled.operators          # in the order of the build, before any pass
    again, made = sum(o.node.op is REGISTRY["tanh"] for o in operators), case[0] * case[1]
    if again <= 2 * made:
        return None
    return [f"  yours           {made} calls of tanh are recomputed {again - made} times",
            "  each should be recomputed once: recompute a whole block when its first node is needed"]


_AGAIN = copy_function(Checkpoint.again)


def again_stars(yours, seed=0):
    """Return the arena bytes of a step with 4 blocks of 4 layers, all of them checkpointed."""
    case = 4, 4, 0.0
    mine = _trained(case, 4, 256)
    same_step.accept(case, _changes(_trained(case, 0, 256), mine))
    made_once.accept(case, _repeats(case, mine[2]))
    with swapped(Checkpoint.again, _AGAIN):
        return {"memory": _arena(mine[2]), "library": _arena(_trained(case, 4, 256)[2])}


# ---- micro-batches
def _cut(rng, size):
    """Draw (micro-batches, rows in each, layers, batch norm). With 0 rows, the graph has no inputs."""
    return rng.randint(2, 2 + size), rng.randint(2, 2 + size), rng.randint(1, 2), rng.random() < 0.4


_smaller_cut = simpler((3, become(False)), (0, less(2)), (1, less(2)), (2, less(1)))


def _loop(case):
    """Run a loop over micro-batches that accumulates gradients.

    Returns (losses of two steps, weights afterwards, model outputs of the second step).
    """
    k, rows, layers, norm = case
    model = _model(1, layers, norm=norm)
    optimizer, loss_fn = _optimizer(model), nn.CrossEntropyLoss()
    x, y = _data(k * rows)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        outputs = [model(x[i * rows:(i + 1) * rows]) for i in range(k)]
        of = [(loss_fn(f, y[i * rows:(i + 1) * rows]) if rows else _size(model)) / k
              for i, f in enumerate(outputs)]
        for loss in of:
            loss.backward()
        optimizer.step()
        losses.append(sum(loss.item() for loss in of))
    return losses, _copy_state(model), np.concatenate([f.detach().numpy() for f in outputs])


def _describe_cut(case):
    k, rows, layers, norm = case
    if not rows:
        return f"{k} micro-batches of a graph without inputs"
    return f"{k} micro-batches of {rows} rows, {_format_count(layers, 'layer')}{', batch norm' * norm}"


@holds("losses and weights equal those of a loop", _cut, _smaller_cut, cases=20, told=_describe_cut,
       edges=[(2, 2, 1, False), (3, 2, 1, True), (2, 0, 1, False)], large=[(8, 2, 6, True)])
def accumulated(case, yours):
    k, rows, layers, norm = case
    model = _model(1, layers, norm=norm)
    graph = _graph(model, k, shown=True)
    batch = _data(k * rows) if rows else ()
    ran = [graph(*batch) for _ in range(2)]
    got = [float((step[0] if rows else step).numpy().mean()) for step in ran]
    losses, weights, found = _loop(case)
    if not np.allclose(got, losses, rtol=1e-4):
        return [f"  yours           losses {got[0]:.6f}, {got[1]:.6f}",
                f"  a loop has      {losses[0]:.6f}, {losses[1]:.6f}"]
    differ = _differ(_copy_state(model), weights)
    if differ:
        return [differ]
    if rows and (lines := where_differ("model(x)", ran[1][1].numpy(), found)):
        return [*lines, "  each micro-batch needs its own table of values"]
    return None


@holds("tracer.passes has every node", _cut, _smaller_cut, cases=6, told=_describe_cut)
def labelled(case, yours):
    """Check that the tracer records the micro-batch and the direction of each node, which pipelines need."""
    k, rows, layers, norm = case
    graph = _graph(_model(1, layers, norm=norm), k)
    graph(*_data(k * rows))
    tracer = graph._compiled.tracer
    for i in range(k):
        for back, what, least in ((False, "forward", 2 * layers), (True, "backward", layers)):
            count = sum(p == (i, back) for p in tracer.passes.values())
            if count < least:
                return [f"  tracer.passes has {count} nodes of the {what} pass of micro-batch {i}"]
    if any(node.op is REGISTRY["slice"] for node in tracer.passes):
        return ["  tracer.passes has a node that cuts an input: it belongs to no micro-batch"]
    return None


def _rows_of(case):
    return f"{case} micro-batches of {1024 // case} rows"


@holds("4 micro-batches: less than 0.45 of the memory", lambda rng, size: 4, cases=1, told=_rows_of,
       label="case")
def peak(case, yours):
    whole, cut = (_graph(_model(4, 2, width=32), k) for k in (1, case))
    for graph in (whole, cut):
        graph(*_data(1024, 32))
    if _arena(cut) < 0.45 * _arena(whole):
        return None
    return [f"  yours           an arena of {_arena(cut):,} bytes; as one batch {_arena(whole):,}",
            "  one micro-batch's activations are alive at a time, if each is finished before the next"]
