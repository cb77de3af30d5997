"""nn.Graph and eager flowedu against PyTorch: eager, channels-last, and compiled where FLOWEDU_BENCH_COMPILE=1."""
from __future__ import annotations

import os

import numpy as np

import flowedu as flow
import twins

try:
    import torch
except ImportError:
    torch = None

COMPILE = os.environ.get("FLOWEDU_BENCH_COMPILE") == "1"


def training(build, batch, optimizer=lambda lib, p: lib.optim.SGD(p, lr=1e-3), loss=None, images=False, eager=True):
    """A training step. build(lib) -> model; batch() -> arrays (x, y); loss(lib) -> function of (output, y)."""
    loss = loss or (lambda lib: lib.nn.functional.cross_entropy)
    flow.manual_seed(0)
    x, y = batch()
    model = build(flow)
    start = {n: t.detach().clone() for n, t in model.state_dict().items()}
    graph = twins.graph_step(flow, model, optimizer(flow, model.parameters()), loss(flow))
    ours = flow.tensor(x), flow.tensor(y)
    found = {"flowedu": lambda: graph(*ours)}
    if eager:
        second = build(flow)
        second.load_state_dict(start)
        by_hand = twins.eager_step(second, optimizer(flow, second.parameters()), loss(flow))
        found["our eager"] = lambda: by_hand(*ours)
    if torch:
        theirs = torch.tensor(x), torch.tensor(y)
        first = None
        for name in ("torch", *(["channels-last"] if images else []), *(["compile"] if COMPILE else [])):
            peer = build(torch)
            twins.share_weights(model, peer, torch.tensor) if first is None else peer.load_state_dict(first)
            first = first or {k: v.clone() for k, v in peer.state_dict().items()}
            given = theirs
            if name == "channels-last":
                peer, given = peer.to(memory_format=torch.channels_last), (
                    theirs[0].contiguous(memory_format=torch.channels_last), theirs[1])
            call = torch.compile(peer) if name == "compile" else peer
            step = twins.eager_step(call, optimizer(torch, peer.parameters()), loss(torch))
            found[name] = lambda step=step, given=given: step(*given)
        for rtol in (1e-5, 1e-3, 1e-2):       # rounding grows fast through 52 batch norms (in float64 the losses agree)
            np.testing.assert_allclose(graph(*ours).item(), found["torch"]().item(), rtol=rtol)
    return found


def inference(build, batch, images=False, eager=True):
    """Logits of a batch, in evaluation mode."""
    flow.manual_seed(0)
    x, _ = batch()
    model = build(flow).eval()
    graph, given = twins.predictor(flow, model), flow.tensor(x)
    found = {"flowedu": lambda: graph(given)}

    def by_hand():
        with flow.no_grad():
            return model(given)

    if eager:
        found["our eager"] = by_hand
    if torch:
        peer = build(torch).eval()
        twins.share_weights(model, peer, torch.tensor)
        tx = torch.tensor(x)

        def theirs(net=peer, tx=tx):
            with torch.no_grad():
                return net(tx)

        found["torch"] = theirs
        if images:
            last, lx = peer.to(memory_format=torch.channels_last), tx.contiguous(memory_format=torch.channels_last)
            np.testing.assert_allclose(graph(given).numpy(), theirs().numpy(), rtol=2e-3, atol=2e-3)
            found["channels-last"] = lambda: theirs(last, lx)
            again = build(torch).eval()
            twins.share_weights(model, again, torch.tensor)
            found["torch"] = lambda: theirs(again, tx)
        if COMPILE:
            compiled = torch.compile(again if images else peer)
            found["compile"] = lambda: theirs(compiled, tx)
    return found


def labelled(shape, classes):
    def batch():
        r = np.random.default_rng(1)
        return r.standard_normal(shape).astype(np.float32), r.integers(0, classes, shape[0])
    return batch


def _sequence():
    r = np.random.default_rng(1)
    return r.standard_normal((2, 4, 128, 256)).astype(np.float32)


def rows(Row) -> list:
    tiny, mlp, digits, images = (labelled(*a) for a in (((8, 4), 3), ((100, 784), 10), ((100, 1, 28, 28), 10),
                                                       ((64, 3, 32, 32), 1000)))
    return [
        Row("graph: MLP 4-16-3 batch 8, training step",
            lambda: training(lambda lib: twins.mlp(lib, (4, 16, 3)), tiny), 50, inner=1000, rounds=20),
        Row("graph: MLP 784-512-10 batch 100, training step",
            lambda: training(lambda lib: twins.mlp(lib, (784, 512, 10)), mlp), 1.3, inner=20, rounds=30),
        Row("graph: LeNet batch 100, training step", lambda: training(twins.lenet, digits, images=True), 1.1, rounds=20),
        Row("graph: LeNet batch 100, inference", lambda: inference(twins.lenet, digits, images=True), 1.5, inner=2,
            rounds=20),
        Row("graph: MobileNetV2 batch 64, training step", lambda: training(twins.mobilenet, images, images=True), 2.0,
            rounds=15),
        Row("graph: MobileNetV2 batch 64, inference", lambda: inference(twins.mobilenet, images, images=True), 1.3,
            rounds=20),
        Row("graph: GPT block batch 4, length 128, training step",
            lambda: training(lambda lib: twins.gpt_block(lib, 128, 256, 4), _sequence,
                             lambda lib, p: lib.optim.AdamW(p, lr=3e-4, weight_decay=0.01),
                             lambda lib: lib.nn.functional.mse_loss), 1.0, rounds=20),
    ]
