"""Milestone 6: LeNet, trained on digits under four plans on four devices, with equal losses.

It prints the bytes moved and the memory of each plan.
"""
import sys
import time
from pathlib import Path

import numpy as np

import flowedu as flow
from flowedu.distributed.ring import ring_all_reduce
from flowedu_course.exercises import load

PLANS, STEPS = ("one device", "data", "tensor", "pipeline", "ZeRO 2"), 10
sys.path.insert(0, str(Path(__file__).parent))     # networks.py, which the demo imports
demo = load(Path(__file__).with_name("demo.py"))


def in_a_ring(net, data) -> np.ndarray:
    """Return the losses of training on three real ranks (threads).

    Each rank has a third of every batch, and the gradients are averaged with the ring all-reduce.
    """
    def rank():
        r, k = flow.env.get_rank(), flow.env.get_world_size()
        model, loss_fn, losses = net.make(), flow.nn.CrossEntropyLoss(), []
        optimizer = net.rule(model.parameters())
        for x, y in data:
            loss = loss_fn(model(flow.tensor(x[r::k])), flow.tensor(y[r::k]))
            optimizer.zero_grad()
            loss.backward()
            for p in model.parameters():
                p.grad.copy_(ring_all_reduce(p.grad) / k)
            optimizer.step()
            losses.append(loss.item())
        return losses

    return np.mean(flow.distributed.spawn(rank, 3), axis=0)


def main() -> None:
    flow.distributed.set_virtual_devices(4)
    net = demo.networks()["lenet"]
    data = list(net.batches(STEPS))
    want = None
    print(f"{'LeNet on 4 devices':20}{'moved in a step':>16}{'fullest device':>18}{'losses':>28}")
    for plan in PLANS:
        start = time.perf_counter()
        graph, losses, _ = demo.train(net, plan, data)
        want = losses if want is None else want
        most = max(m.total for m in graph.memory().values())
        print(f"{plan:20}{graph.bytes:16,}{most:18,}{losses[0]:14.5f} ... {losses[-1]:.5f}   "
              f"{time.perf_counter() - start:.0f} s", flush=True)
        off(plan, losses, want)
    off("three ranks in a ring", in_a_ring(net, data), want)
    print("three ranks with your own all-reduce: the same losses")
    print("milestone 6 reached: one network, four plans, one set of losses")


def off(plan: str, losses, want) -> None:
    """End the program if the losses differ from those of one device, or if the latter do not decrease."""
    worst = float(np.abs(np.array(losses) / np.array(want) - 1).max())
    if not worst < 1e-3 or not want[-1] < want[0]:
        print(f"milestone 6 missed: {plan} has other losses than one device, by {worst:.1e} of them")
        raise SystemExit(1)


if __name__ == "__main__":
    main()
