"""Counts of loads, stores, and waits of the GPU kernels at fixed sizes, from the simulator: `make counters`.

The counts are the same on every machine, so two versions of a kernel can be compared without a GPU. A warp
that reads 32 adjacent floats touches 4 sectors of 32 bytes. With more sectors, it moves bytes that it does
not use.
"""
from __future__ import annotations

import argparse
import io
import os

import numpy as np

# Calls with x, y: 128 x 256 floats; v: 256 floats; p: 8 x 16 x 16 x 16 images; w: 16 x 16 x 3 x 3; i: 128
# indices.
CALLS = """
x + y
x + v
(x * y).relu()
x.t() + 1.0
x.t().contiguous()
flow.cat([x, y], 1)
x.sum()
x.sum(0)
x.sum(1)
x.max(1)
x.argmax(1)
flow.softmax(x, 1)
flow.softmax(x, 0)
flow.log_softmax(x, 1)
F.cross_entropy(x, i)
F.layer_norm(x, (256,))
F.batch_norm(p, None, None, training=True)
x @ y.t()
x.t() @ y
F.conv2d(p, w, padding=1)
F.conv2d(p, w[:, :1], padding=1, groups=16)
F.max_pool2d(p, 2)
F.avg_pool2d(p, 2)
F.interpolate(p, scale_factor=2.0, mode="bilinear", align_corners=False)
x[i]
flow.gather(x, 1, i.reshape(128, 1))
F.one_hot(i, 256)
x.cumsum(1)
x.cumsum(0)
x[:4].sort(1)
flow.rand(128, 256, device="cuda")
flow.randn(128, 256, device="cuda")
F.dropout(x, 0.5, True)
flow.linalg.inv(x[:, :128].reshape(8, 16, 128)[:, :, :16].contiguous())
""".strip().splitlines()

# Calls whose backward pass is also counted.
LEARNT = ("flow.softmax(x, 1)", "F.cross_entropy(x, i)", "F.layer_norm(x, (256,))", "x @ y.t()",
          "F.conv2d(p, w, padding=1)", "F.max_pool2d(p, 2)", "x[i]",
          "F.batch_norm(p, None, None, training=True)")
OPTIMIZERS = ("SGD(ps, 0.1)", "Adam(ps, 0.1)", "LAMB(ps, 0.1)")
HEAD = ("kernel", "launches", "bytes", "sectors/access", "loads", "stores", "shared", "conflicts", "barriers",
        "atomics", "divergent")


def operands(flow) -> dict:
    rng = np.random.default_rng(0)
    made = {n: flow.tensor(rng.standard_normal(s, dtype=np.float32), device="cuda", requires_grad=True)
            for n, s in {"x": (128, 256), "y": (128, 256), "v": (256,), "p": (8, 16, 16, 16),
                         "w": (16, 16, 3, 3)}.items()}
    return {**made, "i": flow.tensor(rng.integers(0, 128, 128), device="cuda"), "F": flow.nn.functional,
            "flow": flow}


def line(name: str, c: dict[str, int]) -> tuple:
    accesses = c["global_loads"] + c["global_stores"]
    return (name, c["launches"], c["global_bytes"], f"{c['sectors'] / accesses:.2f}" if accesses else "-",
            c["global_loads"], c["global_stores"], c["shared_loads"] + c["shared_stores"], c["conflicts"],
            c["barriers"], c["atomics"], c["divergent"])


def table(rows: list[tuple]) -> str:
    widths = [max(len(str(r[k])) for r in rows) for k in range(len(HEAD))]
    cells = [[f"{x!s:>{w}}" if k else f"{x!s:<{w}}" for k, (x, w) in enumerate(zip(r, widths))] for r in rows]
    return "\n".join("  ".join(r).rstrip() for r in cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("calls", nargs="*", help="parts of calls to count (default: all)")
    options = parser.parse_args()
    os.environ["FLOWEDU_CUDA"] = "sim"
    import flowedu as flow
    names, rows = operands(flow), [HEAD]

    def count(what: str, f) -> None:
        if options.calls and not any(c in what for c in options.calls):
            return
        with flow.cuda.profile(io.StringIO()) as p:
            f()
        rows.append((what, *[""] * (len(HEAD) - 1)))
        rows.extend(line(f"  {kernel}", c) for kernel, c in p.kernels.items())

    for call in CALLS:
        with flow.no_grad():
            count(call, lambda call=call: eval(call, names))
    for call in LEARNT:
        names = operands(flow)
        y = eval(call, names)
        count(f"backward of {call}", lambda y=y: y.backward(flow.ones_like(y)))
    for call in OPTIMIZERS:
        ps = [flow.nn.Parameter(flow.ones(n, device="cuda")) for n in (10, 1000, 5000)]
        optimizer = eval(f"flow.optim.{call}", {"flow": flow, "ps": ps})
        for p in ps:
            p.grad = flow.ones_like(p)
        count(f"step of {call}", optimizer.step)
    print(table(rows))


if __name__ == "__main__":
    main()
