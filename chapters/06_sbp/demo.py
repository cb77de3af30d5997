"""Demo of chapter 6: three networks, each trained under nine plans on four devices.

The losses of all plans are equal, but the moved bytes and the memory differ.

    python chapters/06_sbp/demo.py [--full] [--steps 10] [--networks lenet gpt] [--threads N] [--out FOLDER]
    [--quick]

The devices are virtual: one process has a thread for each of them. The demo counts the bytes that a network
would carry between real devices.
"""
import argparse
import os
import time
from pathlib import Path

import numpy as np
from networks import INPUTS, Network, networks
from tqdm.auto import tqdm

import flowedu as flow
from flowedu import nn
from flowedu_course.demo import opening

PLANS = ("one device", "data", "tensor", "hybrid 2x2", "pipeline", "ZeRO 1", "ZeRO 2", "ZeRO 3", "automatic")


class Train(nn.Graph):
    """Graph of one training step of a network."""

    def __init__(self, net: Network, model: nn.Module):
        super().__init__()
        self.model, self.loss_fn = model, nn.CrossEntropyLoss()
        self.add_optimizer(net.rule(model.parameters()))

    def build(self, x, labels):
        loss = self.loss_fn(self.model(x), labels)
        loss.backward()
        return loss


def cut_weights(net: Network, model: nn.Module, before=()) -> None:
    """Split the weights of a model for tensor parallelism, as `net.cut` describes.

    Args:
        before: sbp of the weights along the grid's other axes.
    """
    for name, how in net.cut.items():
        def sbp(p, how=how):
            if how != INPUTS:
                return (*before, flow.sbp.split(0))
            return (*before, flow.sbp.split(1) if p.ndim > 1 else flow.sbp.broadcast)
        model.get_submodule(name).to_global(sbp=sbp)


def laid_out(net: Network, plan: str):
    """Return (graph, (placement, sbp) of the inputs, (placement, sbp) of the labels) for a plan."""
    B, rows = flow.sbp.broadcast, flow.sbp.split(0)
    model = net.make()
    if plan == "pipeline":
        places = [flow.placement("cpu", [i]) for i in range(4)]
        for part, place in zip(model.children(), places):
            part.to_global(place, B)
        graph = Train(net, model)
        for i, name in enumerate("abcd"):
            getattr(graph.model, name).to(nn.graph.GraphModule).set_stage(i, places[i])
        graph.config.set_gradient_accumulation_steps(net.micro)
        return graph, (places[0], B), (places[3], B)
    if plan == "hybrid 2x2":
        at, sbp = flow.placement("cpu", [[0, 1], [2, 3]]), (rows, B)
        cut_weights(net, model.to_global(at, (B, B)), (B,))
    elif plan == "tensor":
        at, sbp = flow.placement("cpu", [0, 1, 2, 3]), B
        cut_weights(net, model.to_global(at, B))
    else:
        at, sbp = ((flow.placement("cpu", [0]), B) if plan == "one device"
                   else (flow.placement("cpu", [0, 1, 2, 3]), rows))
        model.to_global(at, B)
    graph = Train(net, model)
    if plan.startswith("ZeRO"):
        graph.config.enable_zero(True, stage=int(plan[-1]))
    if plan == "automatic":
        graph.config.enable_auto_parallel(True)
        graph.config.enable_auto_parallel_ignore_user_sbp_config(True)
    return graph, (at, sbp), (at, sbp)


def train(net: Network, plan: str, data) -> tuple[Train, list[float], float]:
    """Train under a plan and return (graph, losses, seconds per step)."""
    graph, x_at, y_at = laid_out(net, plan)
    losses, start = [], 0.0
    # disable=None: show the progress bar only in a terminal.
    for x, y in tqdm(data, desc=f"{plan:10}", unit=" steps", leave=False, disable=None):
        loss = graph(flow.tensor(x, placement=x_at[0], sbp=x_at[1]),
                     flow.tensor(y, placement=y_at[0], sbp=y_at[1]))
        losses.append(float(loss.numpy().mean()))
        start = start or time.perf_counter()                     # the first step compiles
    return graph, losses, (time.perf_counter() - start) / max(1, len(data) - 1)


def show(net: Network, steps: int):
    """Train under every plan and print both tables.

    Return (title, names of the plans, bytes moved per step, {part: bytes} of the fullest device).
    """
    data = list(net.batches(steps))
    size = sum(p.numel() for p in net.make().parameters())
    print(f"\n{net.title}: {size:,} parameters ({net.dtype}), batches of {len(data[0][0])}")
    told = sorted({0, *(round((steps - 1) * f) for f in (0.25, 0.5, 0.75, 1))})
    print(f"  {'loss of step':12}" + "".join(f"{i + 1:>10}" for i in told))
    results = {}
    for plan in PLANS:
        results[plan] = graph, losses, _ = train(net, plan, data)
        print(f"  {plan:12}" + "".join(f"{losses[i]:>10.5f}" for i in told))
    want = np.array(results["one device"][1])
    worst = max(float(np.abs(np.array(losses) / want - 1).max()) for _, losses, _ in results.values())
    print(f"  largest difference from one device: {worst:.1e} of the loss\n")
    print(f"  {'':12}{'moved':>14}   {'memory of the fullest device, in bytes':>48}")
    parts = ("activations", "parameters", "states")
    print(f"  {'plan':12}{'in a step':>14}   {'all':>12}" + "".join(f"{n:>12}"
                                                                    for n in parts) + f"{'ms a step':>12}")
    names, moved, memory = list(results), [], []
    for plan, (graph, _, seconds) in results.items():
        fullest = max(graph.memory().values(), key=lambda m: m.total)
        moved.append(graph.bytes)
        memory.append({"parameters": fullest.parameters, "states": fullest.states,
                       "activations": fullest.total - fullest.parameters - fullest.states})
        print(f"  {plan:12}{graph.bytes:>14,}   {fullest.total:>12,}" + "".join(
            f"{memory[-1][n]:>12,}" for n in parts) + f"{1e3 * seconds:>12.1f}")
    if worst > 1e-3:
        raise SystemExit(f"{net.title}: a plan has other losses")
    return net.title, names, moved, memory


def write_table(found, path: Path) -> Path:
    """Write the table of plans.md: for each network, MB moved and MB on the fullest device."""
    head = ["| | " + " | | ".join(title.split(" (")[0].partition(" on ")[0] for title, *_ in found) + " | |",
            "|---|" + "---:|---:|" * len(found), "| **plan** |" + " **moved** | **memory** |" * len(found)]
    lines = [f"| {plan} |" + "".join(f" {moved[i] / 1e6:.2f} | {sum(memory[i].values()) / 1e6:.2f} |"
                                     for _, _, moved, memory in found) for i, plan in enumerate(PLANS)]
    path.write_text("\n".join(head + lines) + "\n", encoding="utf-8")
    return path


def run(options) -> None:
    flow.set_num_threads(options.threads)
    flow.distributed.set_virtual_devices(4)
    found = [show(net, options.steps) for name, net in networks().items() if name in options.networks]
    import pictures
    drawn = pictures.draw_routes(options.out)
    try:
        drawn.append(pictures.draw_plans(found, options.out / "plans.svg"))
    except ImportError:
        print("one picture is missing: it needs matplotlib (pip install matplotlib)")
    print("\npictures:", *drawn, "and the numbers as a table:", write_table(found, options.out / "table.md"))


def main() -> int:
    parser = argparse.ArgumentParser(description="Three networks under nine plans on four virtual devices.")
    parser.add_argument("--full", action="store_true", help="all three networks, 20 steps each: some minutes")
    parser.add_argument("--steps", type=int, help="default 10, with --full 20, with --quick 4")
    parser.add_argument("--networks", nargs="+", choices=("lenet", "mobilenet", "gpt"),
                        help="default lenet and gpt, with --full all")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0))
                        if hasattr(os, "sched_getaffinity")
                        else os.cpu_count() or 1, help="default: one per core")
    parser.add_argument("--out", type=Path, default=Path("build/chapter-6"), help="folder for pictures")
    parser.add_argument("--quick", action="store_true", help="4 steps, to see that it runs")
    options = parser.parse_args()
    usual = 20 if options.full else 10
    options.steps = options.steps or (4 if options.quick else usual)
    options.networks = (options.networks or (["lenet", "mobilenet", "gpt"] if options.full
                                             else ["lenet", "gpt"]))
    if options.steps < 1 or options.threads < 1:
        parser.error("--steps and --threads must be 1 or more")
    opening(__file__, options.quick)
    try:
        run(options)
    except KeyboardInterrupt:
        print("\nstopped")
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
