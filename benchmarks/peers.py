"""Peers of a row: PyTorch in several ways, and inference runtimes, if they are installed.

PyTorch's performance guide recommends these ways for CPUs: channels-last memory for images,
fused optimizers, `scaled_dot_product_attention`, `torch.compile`, and for inference `torch.jit.freeze` with
`optimize_for_inference`. The fastest one counts.
"""
from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import flowedu as flow
import twins

try:
    import torch
except ImportError:
    torch = None

QUICK = os.environ.get("FLOWEDU_BENCH_COMPILE") == "0"        # compiling takes a minute per row


@dataclass(frozen=True)
class Way:
    """One way to run PyTorch."""

    name: str
    last: bool = False           # channels-last memory
    fused: bool = False          # fused optimizer and attention
    compiled: bool = False
    frozen: bool = False


TRAINING = (Way("eager"), Way("fused", fused=True), Way("channels-last", last=True, fused=True),
            Way("compile", fused=True, compiled=True), Way("compile, channels-last", last=True, fused=True,
                                                           compiled=True))
INFERENCE = (Way("eager"), Way("channels-last", last=True), Way("compile", compiled=True),
             Way("compile, channels-last", last=True, compiled=True), Way("frozen", frozen=True),
             Way("frozen, channels-last", last=True, frozen=True))


def ways(all_ways: tuple[Way, ...], images: bool) -> list[Way]:
    """Return the ways that apply to this model on this machine."""
    return [w for w in all_ways if torch and (images or not w.last) and not (w.compiled and QUICK)]


def twin(build: Callable, model, way: Way):
    """Return the PyTorch version of a flowedu model, with the same weights."""
    peer = build(torch, fused=way.fused) if getattr(build, "has_fused", False) else build(torch)
    peer.train(model.training)
    twins.share_weights(model, peer, torch.tensor)
    return peer.to(memory_format=torch.channels_last) if way.last else peer


def given(x: np.ndarray, way: Way):
    tensor = torch.tensor(x)
    return tensor.contiguous(memory_format=torch.channels_last) if way.last else tensor


def training(build: Callable, model, x, y, optimizer: Callable, loss: Callable,
             images: bool) -> dict[str, Callable]:
    """Return {name: training step}. model: the flowedu model, whose weights are copied."""
    found = {}
    for way in ways(TRAINING, images):
        peer = twin(build, model, way)
        rule = optimizer(torch, peer.parameters(), **({"fused": True} if way.fused else {}))

        def forward(x, y, peer=peer):
            return loss(torch)(peer(x), y)

        if way.compiled:
            forward = torch.compile(forward)
        tx, ty = given(x, way), torch.tensor(y)

        def step(forward=forward, rule=rule, tx=tx, ty=ty):
            value = forward(tx, ty)
            rule.zero_grad()
            value.backward()
            rule.step()
            return value

        found[f"torch {way.name}"] = step
    return found


def inference(build: Callable, model, graph, x: np.ndarray, images: bool,
              threads: int) -> dict[str, Callable]:
    """Return {name: call that computes a batch in evaluation mode}. graph: flowedu's, already called once."""
    found = {}
    for way in ways(INFERENCE, images):
        net, tx = twin(build, model, way), given(x, way)
        with torch.inference_mode(), warnings.catch_warnings():
            warnings.simplefilter("ignore")                       # torch.jit is deprecated, but often fastest
            if way.frozen:
                net = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(net, tx)))
            elif way.compiled:
                net = torch.compile(net)

        def forward(net=net, tx=tx):
            with torch.inference_mode():
                return net(tx)

        found[f"torch {way.name}"] = forward
    return {**found, **runtimes(graph, x, threads)}


def runtimes(graph, x: np.ndarray, threads: int) -> dict[str, Callable]:
    """Return {name: call} of onnxruntime and OpenVINO, if installed, on the file of flow.onnx.export."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "model.onnx")
        try:
            import onnx  # noqa: F401
        except ImportError:
            return found
        flow.onnx.export(graph, file)
        try:
            import onnxruntime
        except ImportError:
            pass
        else:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
            session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
            name = session.get_inputs()[0].name

            def call_onnxruntime():
                return session.run(None, {name: x})[0]

            found["onnxruntime"] = call_onnxruntime
        try:
            import openvino
        except ImportError:
            pass
        else:
            core = openvino.Core()
            compiled = core.compile_model(core.read_model(file), "CPU", {
                "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY",
                "INFERENCE_PRECISION_HINT": "f32"})
            request = compiled.create_infer_request()

            def call_openvino():
                return request.infer([x])[0]

            found["OpenVINO"] = call_openvino
    return found
