"""Compare flowedu with its peers on a GPU (`make bench-gpu`).

    python benchmarks/gpu.py [--quick] [rows ...]

As in run.py, all contenders of a row run interleaved in one process, after a check that they compute the same
result. A timing queues some steps and waits once. A memory-bound kernel is compared with a copy that moves
the same number of bytes.

Without a GPU, the program exits with a message. `--simulate --quick` runs the same code in the simulator on
tiny sizes, whose times have no meaning.
"""
from __future__ import annotations

import argparse
import contextlib
import datetime
import functools
import operator
import os
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import twins
from run import Result, Row, busy, measure

try:
    import torch
    if not torch.cuda.is_available():
        torch = None
except ImportError:
    torch = None


class Sizes(NamedTuple):
    """Sizes of the rows; smaller ones are used in the simulator."""

    product: int = 4096
    elements: int = 1 << 26
    row: int = 1024
    batch: int = 100
    pictures: int = 64
    length: int = 128
    steps: int = 20                   # steps queued per timing


SMALL = Sizes(32, 1 << 10, 64, 2, 1, 8, 1)


def f32(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def agree(contenders: dict[str, Callable], tolerance: float = 2e-3) -> dict[str, Callable]:
    """Return the contenders after a check that they compute the same result."""
    found = {name: np.asarray(f().detach().cpu()) for name, f in contenders.items() if "copy" not in name}
    for name, value in found.items():
        np.testing.assert_allclose(value, found["flowedu"], rtol=tolerance, atol=tolerance, err_msg=name)
    return contenders


# ---- one kernel
def product(n: int) -> dict[str, Callable]:
    """Return n x n matrix products by our kernel, by cuBLAS, and by PyTorch, all without rounding to TF32."""
    import flowedu as flow
    from flowedu.cuda import blas
    a, b = f32(n, n), f32(n, n) / n
    x, y = flow.tensor(a, device="cuda"), flow.tensor(b, device="cuda")
    found = {"flowedu": lambda: x @ y}
    z = flow.empty(n, n, device="cuda")
    with contextlib.suppress(flow.errors.UnsupportedError):       # cuBLAS is not installed
        blas.library()
        addresses = [t.data_ptr() for t in (x, y, z)]

        def call_cublas():
            blas.gemm(*addresses, 0, n, n, n, 0, n, 0, n, 1, 0, 0, None)
            return z

        found["cuBLAS"] = call_cublas
    if torch:
        torch.backends.cuda.matmul.allow_tf32 = False
        p, q = torch.tensor(a, device="cuda"), torch.tensor(b, device="cuda")

        def call_torch():
            return p @ q

        found["torch eager"] = call_torch
    return agree(found)


# Memory-bound calls: the call in both libraries, and how many arrays of the size of x it reads and writes.
BOUND = {"relu": ("lib.relu(x)", 2), "sum of all": ("x.sum()", 1), "sum of rows": ("x.sum(1)", 1),
         "sum of columns": ("x.sum(0)", 1), "softmax": ("lib.softmax(x, 1)", 2),
         "transpose": ("x.t().contiguous()", 2),
         "layer norm": ("lib.nn.functional.layer_norm(x, (x.shape[1],))", 2), "exp": ("lib.exp(x)", 2)}


def bound(text: str, arrays: int, sizes: Sizes) -> dict[str, Callable]:
    import flowedu as flow
    from flowedu.cuda.machine import machine
    a = f32(sizes.elements // sizes.row, sizes.row)
    ours = eval(f"lambda lib, x: {text}")
    x = flow.tensor(a, device="cuda")
    moved = a.nbytes * arrays // 2                               # a copy reads and writes
    source, target = flow.empty(moved // 4, device="cuda"), flow.empty(moved // 4, device="cuda")
    driver = machine().driver
    source.fill_(0.0)
    found = {"flowedu": lambda: ours(flow, x),
             "copy": lambda: driver.memcpy_dtod_async(target.data_ptr(), source.data_ptr(), moved, None)}
    if torch:
        p = torch.tensor(a, device="cuda")
        found["torch eager"] = functools.partial(ours, torch, p)
    return agree(found, 2e-2)


# ---- a training step of a model
def training(build: Callable, batch: Callable, optimizer: Callable, loss: Callable) -> dict[str, Callable]:
    """Return training steps as nn.Graph and eagerly, and of PyTorch eagerly, compiled, and as CUDA graph."""
    import flowedu as flow
    flow.manual_seed(0)
    x, y = batch()
    model, second = build(flow), build(flow)
    second.load_state_dict({n: t.detach().clone() for n, t in model.state_dict().items()})
    peers = ({name: twin(build, model) for name in ("torch eager", "torch compile", "torch CUDA graph")}
             if torch else {})
    model, second = model.cuda(), second.cuda()
    ours = flow.tensor(x, device="cuda"), flow.tensor(y, device="cuda")
    by_hand = twins.eager_step(second, optimizer(flow, second.parameters()), loss(flow))
    graph = twins.graph_step(flow, model, optimizer(flow, model.parameters()), loss(flow))
    found = {"flowedu": lambda: graph(*ours), "our eager": lambda: by_hand(*ours)}
    try:
        graph(*ours)
        by_hand(*ours)                                            # so both did the same number of steps
    except flow.errors.FlowError as e:
        print(f"  (no graph on this device: {str(e).splitlines()[0]})")
        found = {"flowedu": found["our eager"]}
        by_hand(*ours)
    for name, net in peers.items():
        theirs = torch.tensor(x, device="cuda"), torch.tensor(y, device="cuda")
        found[name] = peer(name, net.cuda(), *theirs, optimizer, loss)
    return agree(found, 1e-2)


def twin(build: Callable, model):
    net = build(torch, fused=True) if getattr(build, "has_fused", False) else build(torch)
    twins.share_weights(model, net, torch.tensor)
    return net


def peer(name: str, net, x, y, optimizer: Callable, loss: Callable) -> Callable:
    """Return a training step of PyTorch that is warmed up."""
    captured = name.endswith("graph")
    more = {"capturable": True} if captured and optimizer is adamw else {}
    rule = optimizer(torch, net.parameters(), **more)

    def forward(x, y):
        return loss(torch)(net(x), y)

    if name.endswith("compile"):
        forward = torch.compile(forward)

    def step():
        rule.zero_grad()
        value = forward(x, y)
        value.backward()
        rule.step()
        return value

    if not captured:
        step()
        return step
    kept = {k: v.clone() for k, v in net.state_dict().items()}
    aside = torch.cuda.Stream()
    with torch.cuda.stream(aside):
        for _ in range(3):                                        # PyTorch requires warm-up before a capture
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    rule.zero_grad()
    with torch.cuda.graph(graph):
        value = step()
    net.load_state_dict(kept)
    for state in rule.state.values():
        for v in state.values():
            v.zero_()
    graph.replay()
    return lambda: (graph.replay(), value)[1]


def sgd(lib, parameters, **more):
    return lib.optim.SGD(parameters, lr=1e-3, **more)


def adamw(lib, parameters, **more):
    return lib.optim.AdamW(parameters, lr=3e-4, weight_decay=0.01, **more)


def labelled(classes: int, *shape: int) -> Callable:
    return lambda: (f32(*shape), np.random.default_rng(1).integers(0, classes, shape[0]))


def rows(s: Sizes, small: bool) -> list[Row]:
    """Return the rows. `target`: the project's goal for the ratio to the best peer, or to the copy."""
    cross = operator.attrgetter("nn.functional.cross_entropy")
    squared = operator.attrgetter("nn.functional.mse_loss")
    width, heads = (16, 2) if small else (256, 4)

    def gpt(lib, fused=False):
        return twins.gpt_block(lib, s.length, width, heads, fused)

    gpt.has_fused = True
    hidden, side = (16, 8) if small else (512, 32)
    flat = labelled(10, s.batch, 784)
    models = [("MLP 784-512-10", lambda lib: twins.mlp(lib, (784, hidden, 10)), flat, sgd, cross, 1.0),
              ("LeNet", twins.lenet, labelled(10, s.batch, 1, 28, 28), sgd, cross, 1.0),
              ("MobileNetV2", twins.mobilenet, labelled(1000, s.pictures, 3, side, side), sgd, cross, 0),
              ("GPT block", gpt, lambda: (f32(2, s.length, width), f32(2, s.length, width)), adamw,
               squared, 0)]
    if small:                          # the simulator would take hours
        models = [models[0], models[3]]
    return [Row(f"product of {s.product} x {s.product}", lambda _: product(s.product), 0.9),
            *[Row(f"{name}, {s.elements} elements",
                  lambda _, text=text, arrays=arrays: bound(text, arrays, s), 0.9)
              for name, (text, arrays) in BOUND.items()],
            *[Row(f"{name}, training step", lambda _, m=m: training(*m), target)
              for name, *m, target in models]]


def queued(row: Row, steps: int, wait: Callable) -> Row:
    """Return the row with `steps` calls queued per timing, and one wait at the end."""
    def make(threads: int) -> dict[str, Callable]:
        def several(f: Callable) -> Callable:
            def run():
                for _ in range(steps):
                    f()
                wait()
            return run
        return {name: several(f) for name, f in row.make(threads).items()}
    return row.__class__(row.name, make, row.target, 1, row.rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="rows to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="few rounds: a smoke test, not a measurement")
    parser.add_argument("--simulate", action="store_true",
                        help="tiny sizes in the simulator: times mean nothing")
    options = parser.parse_args()
    if options.simulate:
        os.environ["FLOWEDU_CUDA"] = "sim"
    import flowedu as flow
    from flowedu.cuda.machine import kind
    if not flow.cuda.is_available() or kind() == "sim" and not options.simulate:
        print("bench-gpu: there is no GPU here: nothing was measured (--simulate --quick tries the code in "
              "the simulator)")
        return
    sizes = SMALL if options.simulate else Sizes()

    def wait() -> None:
        flow.cuda.synchronize()
        if torch:
            torch.cuda.synchronize()

    print(f"{datetime.date.today()}  {flow.cuda.get_device_name()}, "
          f"{'PyTorch ' + torch.__version__ if torch else 'no PyTorch with CUDA here'}{busy()}")
    print("our time; then others' time / ours (above 1: we are faster), of minima (of medians), the fastest "
          "peer first")
    for row in rows(sizes, options.simulate):
        if not options.rows or any(r in row.name for r in options.rows):
            times = measure(queued(row, sizes.steps, wait), 2 if options.quick else row.rounds)
            per_step = {name: [t / sizes.steps for t in of] for name, of in times.items()}
            print(Result(row.name, row.target, per_step).line(), flush=True)


if __name__ == "__main__":
    main()
