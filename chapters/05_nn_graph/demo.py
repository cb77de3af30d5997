"""Chapter 5's demo: MobileNetV2 on CIFAR-10, first eagerly, then the same model as a graph.

    python chapters/05_nn_graph/demo.py [--data FOLDER] [--steps 30] [--epochs 2] [--width 1.0] [--threads N]
                                        [--out FOLDER] [--quick]

If FOLDER contains the original files of CIFAR-10 (cifar-10-batches-py/...), the demo trains on them.
Otherwise it trains on synthetic images of ten classes in the same format. It prints which data it uses.
"""
import argparse
import copy
import os
import shutil
import time
from pathlib import Path

import numpy as np
from tqdm.auto import tqdm

import flowedu as flow
from flowedu import nn
from flowedu.vision import datasets, models, transforms
from flowedu_course.demo import opening

BATCH = 64


def pictures_of(folder: Path, train: bool, count: int):
    """Return (dataset, description of the data)."""
    to_tensor = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.5,) * 3)])
    if (folder / "cifar-10-batches-py").is_dir():
        real = datasets.CIFAR10(folder, train=train, transform=to_tensor)
        return flow.utils.data.Subset(real, range(min(count, len(real)))), "CIFAR-10"
    return datasets.SyntheticCIFAR10(train, to_tensor, size=count), \
        "drawn pictures in CIFAR-10's format (no CIFAR-10 under " + str(folder) + ")"


class Train(nn.Graph):
    """Graph of one training step: forward pass, backward pass, update."""

    def __init__(self, model, loss_fn, optimizer):
        super().__init__()
        self.model, self.loss_fn = model, loss_fn
        self.add_optimizer(optimizer)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


class Predict(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def build(self, x):
        return self.model(x)


def eager_step(model, loss_fn, optimizer, x, y):
    loss = loss_fn(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def run_steps(title: str, step, batches) -> tuple[list[float], list[float]]:
    """Run one step per batch. Return (losses, seconds of each step)."""
    losses, seconds = [], []
    for x, y in tqdm(batches, desc=title, unit=" steps", leave=False, disable=None):
        start = time.perf_counter()
        losses.append(step(x, y).item())
        seconds.append(time.perf_counter() - start)
    return losses, seconds


def accuracy(predict: Predict, loader) -> float:
    right = total = 0
    for x, y in loader:
        right += int((predict(x).argmax(1) == y).sum().item())
        total += len(y)
    return right / total


def run(options) -> None:
    flow.manual_seed(options.seed)
    flow.set_num_threads(options.threads)
    data, what = pictures_of(options.data, True, options.count)
    test, _ = pictures_of(options.data, False, options.count // 5)
    print(f"data: {what}, {len(data):,} pictures; {options.threads} threads")
    loader = flow.utils.data.DataLoader(data, BATCH, shuffle=True, drop_last=True)
    batches = [b for _, b in zip(range(options.steps), loader)]

    by_hand = models.mobilenet_v2(num_classes=10, width_mult=options.width)
    by_hand.classifier[0].p = 0.0                     # no dropout: eager and graph masks would differ
    compiled = copy.deepcopy(by_hand)
    loss_fn = nn.CrossEntropyLoss()
    parameters = sum(p.numel() for p in by_hand.parameters())
    print(f"MobileNetV2, {parameters:,} parameters, batches of {BATCH} x 3 x 32 x 32")

    optimizer = flow.optim.SGD(by_hand.parameters(), lr=1e-3)
    eager, slow = run_steps("eager", lambda x, y: eager_step(by_hand, loss_fn, optimizer, x, y), batches)
    graph = Train(compiled, loss_fn, flow.optim.SGD(compiled.parameters(), lr=1e-3))
    static, fast = run_steps("graph", graph, batches)
    print("\n loss of step     " + "".join(f"{i:>9d}" for i in range(5)))
    print("   eager          " + "".join(f"{v:>9.4f}" for v in eager[:5]))
    print("   graph          " + "".join(f"{v:>9.4f}" for v in static[:5]))
    print(f"   largest difference over the first 5: "
          f"{max(abs(a - b) for a, b in zip(eager[:5], static[:5])):.1e} (rounding, which 52 batch norms "
          f"amplify at every step)")
    ms, graph_ms = (1e3 * float(np.median(s[1:])) for s in (slow, fast))
    print(f" a step: eager {ms:.1f} ms, graph {graph_ms:.1f} ms, {ms / graph_ms:.2f} times as fast "
          f"(the first call, which compiles: {fast[0]:.2f} s)\n")
    print(graph.report())
    compared = list(static)

    options.out.mkdir(parents=True, exist_ok=True)
    graph = Train(compiled, loss_fn, flow.optim.SGD(compiled.parameters(), lr=options.lr, momentum=0.9,
                                                    weight_decay=1e-4))
    for epoch in range(1, options.epochs + 1):
        losses, seconds = run_steps(f"epoch {epoch}/{options.epochs}", graph, loader)
        compiled.eval()
        predict = Predict(compiled)
        score = accuracy(predict, flow.utils.data.DataLoader(test, BATCH, drop_last=True))
        compiled.train()
        print(f"epoch {epoch}   loss {np.mean(losses):.4f}   accuracy {score:.1%}   "
              f"{BATCH / np.median(seconds):,.0f} pictures/s")
        static += losses

    compiled.eval()                                      # the saved graph is for inference
    state = options.out / "state"
    shutil.rmtree(state, ignore_errors=True)
    flow.save(graph.state_dict(), state)
    flow.save(predict, options.out / "1" / "model")
    loaded, x = flow.load_graph(options.out / "1" / "model"), batches[0][0]
    print("the saved graph, without the model's code, gives the same logits:",
          bool((loaded(x) == predict(x)).all()))
    draw(graph, eager, compared, static[len(compared):], options)


def draw(graph: Train, eager: list[float], static: list[float], trained: list[float], options) -> None:
    drawn = [graph.draw(options.out / "graph.svg", "graph")]
    try:
        drawn.append(graph.draw(options.out / "memory.svg", "memory"))
        from matplotlib.figure import Figure
        figure = Figure(figsize=(10, 3.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.plot(static, label="graph", linewidth=1)
        left.plot(eager, label="eager", linestyle="--", linewidth=1)
        left.set(xlabel="step", ylabel="loss",
                 title="The same model, the same batches: the same\nbut for rounding, which batch norms "
                 "amplify")
        left.legend()
        right.plot(trained, linewidth=1)
        right.set(xlabel="step", title="Training the graph")
        figure.savefig(options.out / "losses.svg")
        drawn.append(options.out / "losses.svg")
    except ImportError:
        print("two pictures are missing: they need matplotlib (pip install matplotlib)")
    print("pictures:", *drawn)


def main() -> int:
    parser = argparse.ArgumentParser(description="MobileNetV2 eagerly and as a graph.")
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder with cifar-10-batches-py")
    parser.add_argument("--steps", type=int, help="steps to compare (default 30, with --quick 6)")
    parser.add_argument("--epochs", type=int, help="epochs to train the graph (default 2, with --quick 1)")
    parser.add_argument("--width", type=float, help="width multiplier (default 1.0, with --quick 0.35)")
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0))
                        if hasattr(os, "sched_getaffinity")
                        else os.cpu_count() or 1, help="default: one per core")
    parser.add_argument("--out", type=Path, default=Path("build/chapter-5"),
                        help="folder for pictures and states")
    parser.add_argument("--quick", action="store_true",
                        help="a small net on few pictures, to see that it runs")
    options = parser.parse_args()
    quick = options.quick
    options.steps = options.steps or (6 if quick else 30)
    if options.epochs is None:
        options.epochs = 1 if quick else 2
    options.width = options.width or (0.35 if quick else 1.0)
    options.count = 640 if quick else 10_000
    if options.steps < 2 or options.epochs < 1 or options.threads < 1 or not options.width > 0:
        parser.error("--steps must be 2 or more; --epochs, --threads and --width above 0")
    opening(__file__, quick)
    try:
        run(options)
    except KeyboardInterrupt:
        print("\nstopped")
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
