"""Rows of the benchmark. Each builds the same computation for flowedu and the peers that are installed."""
from __future__ import annotations

import contextlib
from importlib import metadata
from importlib.util import find_spec

import numpy as np

import flowedu as flow
import jobs
import twins
from data_rows import READ_AHEAD, data_pipeline
from dist_rows import rows as dist_rows
from function_rows import rows as function_rows
from half_rows import rows as half_rows
from inference_rows import rows as inference_rows
from model_rows import arrays
from model_rows import rows as model_rows
from run import Row
from watch_rows import watched_step

try:
    import torch
except ImportError:
    torch = None


def versions() -> str:
    """Return the versions of NumPy and of the installed peers."""
    found = {"numpy": np.__version__}
    for name in ("torch", "onnxruntime", "openvino", "mpi4py"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return ", ".join(f"{name} {version}" for name, version in found.items())


def peer_threads(n: int) -> None:
    """Set PyTorch's number of threads to flowedu's. NumPy's OpenBLAS keeps its own."""
    if torch:
        torch.set_num_threads(n)


def agree(a, b, tol: float = 2e-3) -> None:
    """Raise AssertionError if two contenders do not compute the same result."""
    np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tol, atol=tol)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


# ---- eager
def eager_add():
    a, b = rng().standard_normal((2, 4, 4)).astype(np.float32)
    x, y = flow.tensor(a), flow.tensor(b)
    found = {"flowedu": lambda: x + y}
    if torch:
        p, q = torch.tensor(a), torch.tensor(b)
        agree((x + y).numpy(), (p + q).numpy())

        def add_by_torch():
            return p + q

        found["torch eager"] = add_by_torch
    return {**found, "numpy": lambda: a + b}


def eager_backward():
    r = rng()
    a, w, b = (r.standard_normal(s).astype(np.float32) for s in ((8, 16), (16, 16), (16,)))
    x, v, c = (flow.tensor(t, requires_grad=True) for t in (a, w, b))

    def ours():
        (x @ v + c).relu().sum().backward()
        g = v.grad
        x.grad = v.grad = c.grad = None
        return g

    found = {"flowedu": ours}
    if torch:
        p, q, s = (torch.tensor(t, requires_grad=True) for t in (a, w, b))

        def theirs():
            (p @ q + s).relu().sum().backward()
            g = q.grad
            p.grad = q.grad = s.grad = None
            return g

        agree(ours().numpy(), theirs().numpy())
        found["torch eager"] = theirs
    return found


def numpy_by_hand(threads: int):
    """Return a training step of the MLP in NumPy. OpenBLAS uses all processors, so flowedu must as well."""
    r = rng()
    x, y = r.standard_normal((100, 784)).astype(np.float32), r.integers(0, 10, 100)
    flow.manual_seed(0)
    model = twins.mlp(flow, (784, 512, 10))
    a1, b1, a2, b2 = arrays(model)
    step = jobs.mlp([a1.copy(), b1.copy(), a2.copy(), b2.copy()], x, y)
    rows = np.arange(len(x))

    def by_hand():
        h = np.maximum(x @ a1.T + b1, 0)
        o = h @ a2.T + b2
        p = np.exp(o - o.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        loss = -np.log(p[rows, y])
        p[rows, y] -= 1
        p *= np.float32(1 / len(x))
        dh = (p @ a2) * (h > 0)
        for parameter, gradient in ((a2, p.T @ h), (b2, p.sum(0)), (a1, dh.T @ x), (b1, dh.sum(0))):
            parameter -= np.float32(1e-3) * gradient
        return loss

    for _ in range(3):
        agree(step(), by_hand())
    return {"flowedu": step, "numpy": by_hand}


def all_rows() -> list[Row]:
    """Return all rows in the order of the table. `target`: goal for the ratio to the best peer."""
    pictures = find_spec("PIL") and find_spec("google")
    return [
        Row("eager add, 4x4", lambda threads: eager_add(), 3, inner=20000, rounds=30),
        Row("eager relu(x@w+b).sum() + backward, 8x16x16", lambda threads: eager_backward(), 5, inner=2000,
            rounds=30),
        *function_rows(Row),
        *model_rows(Row),
        *inference_rows(Row),
        *half_rows(Row),
        Row("job: MLP 784-512-10 training, by hand in NumPy", numpy_by_hand, 1.0, inner=20, threads=(2,)),
        Row("job: MLP training step, two things watched", lambda threads: watched_step(), 0.9, inner=20,
            rounds=40),
        *([Row("data: 100 JPEGs read and resized", lambda threads: data_pipeline(), 1, inner=12, rounds=10,
               threads=(2,), settle=READ_AHEAD),
           Row("data: 4 x 64 JPEGs of 320x240 made 224x224", lambda threads: data_pipeline(photos=True), 1,
               rounds=10, threads=(2,), settle=READ_AHEAD)] if pictures else []),
        *dist_rows(Row),
    ]
