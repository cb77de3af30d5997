"""Rows of inference: models in common use, against PyTorch and runtimes.

Batches and images have the usual sizes.

`share` of a row is the fraction of the machine's peak speed: the time that its multiply-adds, or reading its
weights, would take at the measured peak, divided by our time.
"""
from __future__ import annotations

import functools
import time

import numpy as np

import flowedu as flow
import peers
import twins


def inference(build, shape, threads, images=True):
    """Return contenders that compute the logits of one batch in evaluation mode."""
    flow.manual_seed(0)
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    model, given = build(flow).eval(), flow.tensor(x)
    graph = twins.predictor(flow, model)
    want = graph(given).numpy()

    def by_hand():
        with flow.no_grad():
            return model(given)

    found = {"flowedu": lambda: graph(given), "our eager": by_hand,
             **peers.inference(build, model, graph, x, images, threads)}
    bound = 2e-3 * float(np.abs(want).max())
    for name, f in found.items():
        np.testing.assert_allclose(np.asarray(f()), want, rtol=2e-3, atol=bound, err_msg=name)
    return found


def multiply_adds(model, shape) -> tuple[float, int]:
    """Return (floating-point operations of convolutions and products, bytes of the weights) of one call."""
    flops, weights = 0.0, sum(p.numel() * 4 for p in model.parameters())

    def count(module, given, out):
        nonlocal flops
        weight = getattr(module, "weight", None)
        if weight is not None and weight.ndim in (2, 4):
            each = weight.numel() // weight.shape[0]
            flops += 2.0 * out.numel() * each

    hooks = [m.register_forward_hook(count) for m in model.modules() if not list(m.children())]
    with flow.no_grad():
        model(flow.zeros(*shape))
    for hook in hooks:
        hook.remove()
    return flops, weights


@functools.cache
def limits(threads: int) -> tuple[float, float]:
    """Measure (FLOP, bytes read) per second, by a 1536 x 1536 product and a sum over 256 MB."""
    flow.set_num_threads(threads)
    a, big = flow.ones(1536, 1536), flow.ones(1 << 26)
    return 2 * 1536.0 ** 3 / quickest(lambda: a @ a), 4.0 * (1 << 26) / quickest(big.sum)


def quickest(f, rounds: int = 12) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        f()
        best = min(best, time.perf_counter() - start)
    return best


def share(build, shape, threads: int, ours: float) -> str:
    """Return the share of the machine's peak speed that a row reaches, with the limiting resource."""
    flops, weights = multiply_adds(build(flow).eval(), shape)
    speed, bandwidth = limits(threads)
    by = {"arithmetic": flops / speed, "reading weights": weights / bandwidth if weights > 40e6 else 0.0}
    what = max(by, key=by.get)
    return f"{by[what] / ours:.0%} of the limit ({what})"


MODELS = {
    "LeNet, 100 of 28x28": (twins.lenet, (100, 1, 28, 28)),
    "MobileNetV2, 64 of 32x32": (twins.mobilenet, (64, 3, 32, 32)),
    "MobileNetV2, 1 of 224x224": (twins.mobilenet, (1, 3, 224, 224)),
    "MobileNetV2, 8 of 224x224": (twins.mobilenet, (8, 3, 224, 224)),
    "ResNet-18, 1 of 224x224": (twins.resnet18, (1, 3, 224, 224)),
    "ResNet-18, 8 of 224x224": (twins.resnet18, (8, 3, 224, 224)),
    "small ViT, 8 of 64x64": (twins.small_vit, (8, 3, 64, 64)),
    "MLP 1024-4096-4096-1000, batch 1": (functools.partial(twins.mlp, sizes=(1024, 4096, 4096, 1000)),
                                         (1, 1024)),
}


def rows(Row) -> list:
    return [Row(f"inference: {name}", functools.partial(inference, build, shape, images=len(shape) == 4), 1.0,
                share=functools.partial(share, build, shape)) for name, (build, shape) in MODELS.items()]
