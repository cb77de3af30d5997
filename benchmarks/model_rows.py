"""Rows of models as nn.Graph, as jobs, and eagerly, against PyTorch and, for inference, against runtimes."""
from __future__ import annotations

import functools

import numpy as np

import flowedu as flow
import jobs
import peers
import twins


def sgd(lib, parameters, **more):
    return lib.optim.SGD(parameters, lr=1e-3, **more)


def adamw(lib, parameters, **more):
    return lib.optim.AdamW(parameters, lr=3e-4, weight_decay=0.01, **more)


def cross_entropy(lib):
    return lib.nn.functional.cross_entropy


def squared_error(lib):
    return lib.nn.functional.mse_loss


def arrays(model) -> list[np.ndarray]:
    return [p.detach().numpy().copy() for p in model.parameters()]


def number(value) -> float:
    """Return the loss of any library as a number. Jobs return one loss per sample."""
    return float(np.mean(value.detach().numpy() if hasattr(value, "detach") else value))


def named_job(job, *given) -> dict:
    """Return {"job": call}, or {} for models without a job, because jobs lack some layers."""
    return {} if job is None else {"job": job(*given)}


def training(build, job, batch, threads, optimizer=sgd, loss=cross_entropy, images=False):
    """Return training steps. build(lib) -> model; job(start, x, y) -> call or None; batch() -> (x, y)."""
    flow.manual_seed(0)
    x, y = batch()
    build_ours = functools.partial(build, fused=True) if getattr(build, "has_fused", False) else build
    model = build_ours(flow)
    found = {**peers.training(build, model, x, y, optimizer, loss, images),
             **named_job(job, arrays(model), x, y)}
    second = build_ours(flow)
    second.load_state_dict({n: t.detach().clone() for n, t in model.state_dict().items()})
    ours = flow.tensor(x), flow.tensor(y)
    by_hand = twins.eager_step(second, optimizer(flow, second.parameters()), loss(flow))
    graph = twins.graph_step(flow, model, optimizer(flow, model.parameters()), loss(flow))
    found = {"flowedu": lambda: graph(*ours), "our eager": lambda: by_hand(*ours), **found}
    # rounding grows fast through 52 batch norms (in float64 the losses agree)
    for rtol in (1e-4, 1e-3, 1e-2):
        losses = {name: number(f()) for name, f in found.items()}
        for name, value in losses.items():
            np.testing.assert_allclose(value, losses["flowedu"], rtol=rtol, err_msg=name)
    return found


def inference(build, job, batch, threads, images=False):
    """Return contenders that compute the logits of a batch in evaluation mode."""
    flow.manual_seed(0)
    x, _ = batch()
    model, given = build(flow).eval(), flow.tensor(x)
    graph = twins.predictor(flow, model)
    graph(given)

    def by_hand():
        with flow.no_grad():
            return model(given)

    found = {"flowedu": lambda: graph(given), "our eager": by_hand, **named_job(job, arrays(model), x),
             **peers.inference(build, model, graph, x, images, threads)}
    want = graph(given).numpy()
    for name, f in found.items():
        np.testing.assert_allclose(np.asarray(f()), want, rtol=2e-3, atol=2e-3, err_msg=name)
    return found


def labelled(shape, classes):
    def batch():
        r = np.random.default_rng(1)
        return r.standard_normal(shape).astype(np.float32), r.integers(0, classes, shape[0])
    return batch


def sequences(batch, length):
    return np.random.default_rng(1).standard_normal((2, batch, length, 256)).astype(np.float32)


def steps_of_rows():
    """Return inputs of shape (64 steps, 32 rows, 64) and targets of shape (64, 32, 128)."""
    r = np.random.default_rng(1)
    return [r.standard_normal((64, 32, n)).astype(np.float32) for n in (64, 128)]


def gpt_block(length):
    def build(lib, fused=False):
        return twins.gpt_block(lib, length, 256, 4, fused)

    build.has_fused = True
    return build


def rows(Row) -> list:
    def row(name, kind, build, job, batch, target, inner=1, rounds=20, **more):
        return Row(name, functools.partial(kind, build, job, batch, **more), target, inner, rounds)

    def tiny(lib):
        return twins.mlp(lib, (4, 16, 3))

    def mlp(lib):
        return twins.mlp(lib, (784, 512, 10))

    flat4, flat = labelled((8, 4), 3), labelled((100, 784), 10)
    digits, images = labelled((100, 1, 28, 28), 10), labelled((64, 3, 32, 32), 1000)
    return [
        row("MLP 4-16-3 batch 8, training step", training, tiny, jobs.mlp, flat4, 5, inner=1000),
        row("MLP 784-512-10 batch 100, training step", training, mlp, jobs.mlp, flat, 1.3, inner=20),
        row("LeNet batch 100, training step", training, twins.lenet, jobs.lenet, digits, 1.1, images=True),
        row("LeNet batch 100, inference", inference, twins.lenet, jobs.lenet, digits, 1.1, inner=2,
            images=True),
        row("MobileNetV2 batch 64 of 32x32, training step", training, twins.mobilenet, jobs.mobilenet,
            images, 1.3, rounds=15, images=True),
        row("MobileNetV2 batch 64 of 32x32, inference", inference, twins.mobilenet, jobs.mobilenet,
            images, 1.0, images=True),
        *(row(f"GPT block batch {batch}, length {length}, training step", training, gpt_block(length),
              jobs.gpt_block if length == 128 else None, functools.partial(sequences, batch, length), 1.5,
              rounds=rounds,
              optimizer=adamw, loss=squared_error) for batch, length, rounds in ((4, 128, 20), (1, 2048, 6))),
        *(row(f"{kind} 64-128 batch 32, 64 steps, training step", training,
              functools.partial(twins.recurrent, kind=kind), None, steps_of_rows, 1.3, loss=squared_error)
          for kind in ("LSTM", "GRU", "RNN")),
        row("LSTM 64-128 batch 32, 64 steps, inference", inference, twins.recurrent, None, steps_of_rows, 1.0,
            inner=2),
    ]
