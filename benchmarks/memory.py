"""Comparison of the peak memory of training with PyTorch's, each in a separate process.

    python benchmarks/memory.py

Peak: memory of the whole process. Growth: memory that the training steps added after the model and one batch
existed.
"""
from __future__ import annotations

import resource
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np

CASES = {"LeNet batch 100": ("lenet", (100, 1, 28, 28), 10),
         "MobileNetV2 batch 64": ("mobilenet", (64, 3, 32, 32), 1000)}
STEPS = 5


def peak() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def train(library: str, build: str, shape: tuple, classes: int) -> None:
    """Run some steps of SGD and print growth and peak."""
    import twins
    r = np.random.default_rng(0)
    x, y = r.standard_normal(shape).astype(np.float32), r.integers(0, classes, shape[0])
    if library == "torch":
        import torch as lib
    else:
        import flowedu as lib
    lib.set_num_threads(1)
    model = getattr(twins, build)(lib)
    optimizer, loss = lib.optim.SGD(model.parameters(), lr=1e-3), lib.nn.functional.cross_entropy
    x, y = lib.tensor(x), lib.tensor(y)
    before = peak()
    if library == "flowedu, graph":
        step = twins.graph_step(lib, model, optimizer, loss)
    else:
        step = twins.eager_step(model, optimizer, loss)
    for _ in range(STEPS):
        step(x, y)
    print(f"{peak() - before:.0f} {peak():.0f}")


def main() -> None:
    if len(sys.argv) > 2:
        train(sys.argv[1], *CASES[sys.argv[2]])
        return
    print(f"{'MB':48s} {'growth':>8s} {'peak':>8s}")
    for case in CASES:
        for library in ("flowedu, graph", "flowedu, eager", *(["torch"] if find_spec("torch") else [])):
            out = subprocess.run([sys.executable, __file__, library, case], capture_output=True,
                                 encoding="utf-8", check=True,
                                 cwd=Path(__file__).parent)
            growth, most = out.stdout.split()
            print(f"{case + ', ' + library:48s} {growth:>8s} {most:>8s}")


if __name__ == "__main__":
    main()
