"""Chapter 5: training steps whose activations are computed again, or whose batch is cut. Losses and weights are those of
the plain step; memory is what differs."""
from __future__ import annotations

import types

import numpy as np

from flowedu.learn.laws import Law, case_of, where_differ
from flowedu.nn.graph.unroll import Checkpoint

WIDTH = 8


def _model(blocks, layers, rate=0.0, norm=False, width=WIDTH):
    import flowedu as flow
    from flowedu import nn
    flow.manual_seed(3)

    def block():
        return nn.Sequential(*[m for _ in range(layers) for m in (
            nn.Linear(width, width), nn.Tanh(), *([nn.Dropout(rate)] if rate else []),
            *([nn.BatchNorm1d(width)] if norm else []))])

    return nn.Sequential(*[block() for _ in range(blocks)], nn.Linear(width, 3)).double()      # no law about rounding


def _optimizer(model):
    import flowedu as flow
    return flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def _graph(model, micro=1, again=0, shown=False):
    """A training step of the model; again: the first so many of its parts are not kept; shown: what the model gives comes
    with the loss."""
    from flowedu import nn

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model, self.loss_fn = model, nn.CrossEntropyLoss()
            self.add_optimizer(_optimizer(model))
            self.config.set_gradient_accumulation_steps(micro)

        def build(self, x, y):
            found = self.model(x)
            loss = self.loss_fn(found, y)
            loss.backward()
            return (loss, found) if shown else loss

    graph = Train()
    for _, part in zip(range(again), graph.model):
        part.to(nn.graph.GraphModule).activation_checkpointing = True
    return graph


def _data(rows, width=WIDTH):
    import flowedu as flow
    rng = np.random.default_rng(5)
    return flow.tensor(rng.standard_normal((rows, width))), flow.tensor(rng.integers(0, 3, rows))


def _kept(model):
    named = [*model.named_parameters(), *model.named_buffers()]
    return {n: t.detach().numpy().copy() for n, t in named if t.is_floating_point()}


def _differ(mine, right):
    """The first weight that differs, in a line."""
    for n, w in right.items():
        if not np.allclose(mine[n], w, rtol=1e-4, atol=1e-6):
            i = int(np.argmax(np.abs(mine[n] - w)))
            return f"  {n} is {mine[n].flat[i]:.6f} after two steps, and should be {w.flat[i]:.6f}"
    return None


def _arena(graph):
    return graph._compiled.program.plan.arena


# ---- computed again
def _forgotten(rng, size):
    """(blocks, layers in each, dropout)"""
    return rng.randint(1, 1 + size // 2), rng.randint(1, size), rng.choice((0.0, 0.5))


def _smaller_forgotten(case):
    blocks, layers, rate = case
    yield from (c for c in ((blocks, layers, 0.0), (1, layers, rate), (blocks, 1, rate)) if c != case)


def _trained(case, again, rows=12):
    """(first loss, weights after two steps, graph)"""
    model = _model(*case)
    graph = _graph(model, again=again)
    x, y = _data(rows)
    losses = [graph(x, y).item() for _ in range(2)]
    return losses[0], _kept(model), graph


def _many(n, what):
    return f"{n} {what}{'s' * (n != 1)}"


def _block_said(case):
    blocks, layers, rate = case
    dropout = f", dropout {rate}" if rate else ""
    return f"  smallest case   {_many(blocks, 'block')} of {_many(layers, 'layer')}{dropout}, none kept"


def _again_judged(case, yours):
    want, weights, _ = _trained(case, 0)
    got, mine, _ = _trained(case, case[0])
    if not np.isclose(got, want, rtol=1e-5):
        return [_block_said(case), f"  yours           a loss of {got:.6f}", f"  with all kept   {want:.6f}"]
    differ = _differ(mine, weights)
    return differ and [_block_said(case), differ, "  a gradient was computed from other numbers than those of forward"]


def _once_judged(case, yours):
    from flowedu.core.ops.define import REGISTRY
    operators = _trained(case, case[0])[2]._compiled.operators             # as they were appended, before the passes
    again, made = sum(o.node.op is REGISTRY["tanh"] for o in operators), case[0] * case[1]
    if again <= 2 * made:
        return None
    return [_block_said(case), f"  yours           {made} calls of tanh are made again {again - made} times",
            "  each once: all nodes of a block are, when one of them is asked for first"]


same_step = Law("loss and weights as with all kept", _forgotten, _again_judged, _smaller_forgotten, cases=12,
                told=case_of(_block_said))
made_once = Law("each node is made again once", _forgotten, _once_judged, _smaller_forgotten, cases=6,
                told=case_of(_block_said))
_AGAIN = types.FunctionType(Checkpoint.again.__code__, Checkpoint.again.__globals__, "again")


def again_stars(yours, seed=0):
    """Bytes of the arena of a step of 4 blocks of 4 layers, none kept."""
    from flowedu.learn.swap import swapped
    mine = _arena(_trained((4, 4, 0.0), 4, 256)[2])
    with swapped(Checkpoint.again, _AGAIN):
        return {"memory": mine, "library": _arena(_trained((4, 4, 0.0), 4, 256)[2])}


# ---- micro-batches
def _cut(rng, size):
    """(micro-batches, rows in each, layers, batch norm)"""
    return rng.randint(2, 2 + size), rng.randint(2, 2 + size), rng.randint(1, 2), rng.random() < 0.4


def _smaller_cut(case):
    k, rows, layers, norm = case
    if norm:
        yield k, rows, layers, False
    for i, least in enumerate((2, 2, 1)):
        if case[i] > least:
            yield (*case[:i], case[i] - 1, *case[i + 1:])


def _loop(case):
    """(losses of two steps, weights afterwards, what the model gave in the second) of a loop over micro-batches that adds
    up gradients."""
    from flowedu import nn
    k, rows, layers, norm = case
    model = _model(1, layers, norm=norm)
    optimizer, loss_fn = _optimizer(model), nn.CrossEntropyLoss()
    x, y = _data(k * rows)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        found = [model(x[i:i + rows]) for i in range(0, k * rows, rows)]
        of = [loss_fn(f, y[i * rows:(i + 1) * rows]) / k for i, f in enumerate(found)]
        for loss in of:
            loss.backward()
        optimizer.step()
        losses.append(sum(loss.item() for loss in of))
    return losses, _kept(model), np.concatenate([f.detach().numpy() for f in found])


def _cut_said(case):
    k, rows, layers, norm = case
    return f"  smallest case   {k} micro-batches of {rows} rows, {_many(layers, 'layer')}{', batch norm' * norm}"


def _micro_judged(case, yours):
    k, rows, layers, norm = case
    model = _model(1, layers, norm=norm)
    graph = _graph(model, k, shown=True)
    x, y = _data(k * rows)
    ran = [graph(x, y) for _ in range(2)]
    got = [float(loss.numpy().mean()) for loss, _ in ran]
    losses, weights, found = _loop(case)
    if not np.allclose(got, losses, rtol=1e-4):
        return [_cut_said(case), f"  yours           losses {got[0]:.6f}, {got[1]:.6f}",
                f"  a loop has      {losses[0]:.6f}, {losses[1]:.6f}"]
    differ = _differ(_kept(model), weights)
    if differ:
        return [_cut_said(case), differ]
    if lines := where_differ("model(x)", ran[1][1].numpy(), found):
        return [_cut_said(case), *lines, "  each micro-batch has a table of its own: which values are this one's"]
    return None


def _passes_judged(case, yours):
    """What a pipeline asks: of which micro-batch a node is, and whether backward."""
    k, rows, layers, norm = case
    graph = _graph(_model(1, layers, norm=norm), k)
    graph(*_data(k * rows))
    tracer = graph._compiled.tracer
    for i in range(k):
        for back, what, least in ((False, "forward", 2 * layers), (True, "backward", layers)):
            count = sum(p == (i, back) for p in tracer.passes.values())
            if count < least:
                return [_cut_said(case), f"  tracer.passes has {count} nodes of the {what} pass of micro-batch {i}"]
    return None


def _rows_of(case):
    return f"{case} micro-batches of {1024 // case} rows"


def _peak_judged(case, yours):
    whole, cut = (_graph(_model(4, 2, width=32), k) for k in (1, case))
    for graph in (whole, cut):
        graph(*_data(1024, 32))
    if _arena(cut) < 0.45 * _arena(whole):
        return None
    return [f"  case            {_rows_of(case)}",
            f"  yours           an arena of {_arena(cut):,} bytes; as one batch {_arena(whole):,}",
            "  one micro-batch's activations are alive at a time, if each is finished before the next"]


accumulated = Law("losses and weights as in a loop", _cut, _micro_judged, _smaller_cut, cases=20, told=case_of(_cut_said))
labelled = Law("every node is noted in tracer.passes", _cut, _passes_judged, _smaller_cut, cases=6, told=case_of(_cut_said))
peak = Law("four need less than 0.45 of the memory", lambda rng, size: 4, _peak_judged, cases=1, told=_rows_of)
