"""Rows of bfloat16 and float32: inference, and the cost of autocast in a small step.

The models of inference are compiled by nn.Graph.

"flowedu" uses bfloat16 or autocast, and "our float32" does not. PyTorch also computes in bfloat16.
"""
from __future__ import annotations

import functools
from contextlib import nullcontext

import numpy as np

import flowedu as flow
import peers
import twins


def pictures(n: int, side: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((n, 3, side, side)).astype(np.float32)


def words(n: int, length: int, width: int) -> np.ndarray:
    return np.random.default_rng(1).standard_normal((n, length, width)).astype(np.float32)


def inference(build, batch, threads, images=False):
    """Return contenders that compute the outputs of a batch in evaluation mode.

    After 50 layers, bfloat16 outputs may differ by a tenth of the largest output.
    """
    flow.manual_seed(0)
    x, wide = flow.tensor(batch()), build(flow).eval()
    narrow = build(flow).eval()
    narrow.load_state_dict(wide.state_dict())
    graphs = twins.predictor(flow, wide), twins.predictor(flow, narrow.bfloat16())
    half = x.bfloat16()
    found = {"flowedu": lambda: graphs[1](half), "our float32": lambda: graphs[0](x)}
    for way in peers.ways(peers.INFERENCE[:2], images):
        net = peers.twin(build, wide, way).bfloat16()
        tx = peers.given(x.numpy(), way).bfloat16()

        def forward(net=net, tx=tx):
            with peers.torch.inference_mode():
                return net(tx)

        found[f"torch {way.name}, bfloat16"] = forward
    want = graphs[0](x).numpy()
    for name, f in found.items():
        np.testing.assert_allclose(f().float().numpy(), want, rtol=0, atol=0.1 * np.abs(want).max(),
                                   err_msg=name)
    return found


def small_step(threads):
    """Return training steps by hand, with and without autocast around the forward pass."""
    x, y = np.random.default_rng(1).standard_normal((8, 4)).astype(np.float32), np.arange(8) % 3

    def step(lib, cast):
        model = twins.mlp(lib, (4, 16, 3))
        rule, tx, ty = lib.optim.SGD(model.parameters(), lr=1e-3), lib.tensor(x), lib.tensor(y)

        def f():
            with lib.amp.autocast("cpu", dtype=lib.bfloat16) if cast else nullcontext():
                value = lib.nn.functional.cross_entropy(model(tx), ty)
            rule.zero_grad()
            value.backward()
            rule.step()
            return value
        return f

    found = {"flowedu": step(flow, True), "our float32": step(flow, False)}
    if peers.torch:
        found |= {"torch autocast": step(peers.torch, True), "torch float32": step(peers.torch, False)}
    return found


def block(length: int, width: int, lib):
    return twins.gpt_block(lib, length, width, width // 64)


def rows(Row) -> list:
    def row(name, build, batch, **more):
        return Row(f"bfloat16: {name}, inference", functools.partial(inference, build, batch, **more), 0,
                   rounds=15)

    return [row("MobileNetV2 batch 64 of 32x32", twins.mobilenet, lambda: pictures(64, 32), images=True),
            row("MobileNetV2 batch 8 of 224x224", twins.mobilenet, lambda: pictures(8, 224), images=True),
            row("GPT block batch 4, length 128", functools.partial(block, 128, 256),
                lambda: words(4, 128, 256)),
            row("GPT block width 1024, one word", functools.partial(block, 1, 1024),
                lambda: words(1, 1, 1024)),
            Row("autocast: MLP 4-16-3 batch 8, training step by hand", small_step, 0, inner=200)]
