"""A GPT on four devices: two copies, each with its matrices cut over two devices; on devices of this process, or on ranks.

    python chapters/gallery/parallel_gpt.py [--steps 60] [--out FOLDER] [--quick]
    python -m flowedu.distributed.launch --nproc_per_node 4 chapters/gallery/parallel_gpt.py     # needs the extra mpi

The text is the program's own. Losses are those of one device; the picture has both.
"""
import argparse
from pathlib import Path

import numpy as np
from curves import curves
from tqdm.auto import tqdm

import flowedu as flow
from flowedu import nn
from flowedu.models import GPT

B, split = flow.sbp.broadcast, flow.sbp.split
GRID = [[0, 1], [2, 3]]                                   # a row is a copy of the model, a column has the same part of it
BATCH, LENGTH = 8, 32
CUT = {"qkv.weight": split(0), "qkv.bias": split(0), "mlp.0.weight": split(0), "mlp.0.bias": split(0),       # units
       "proj.weight": split(1), "mlp.2.weight": split(1)}                                                    # inputs


class Train(nn.Graph):
    """One step; what devices must tell each other follows from how inputs and parameters lie."""

    def __init__(self, model, optimizer):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, idx, targets):
        loss = self.model(idx, targets)[1]
        loss.backward()
        return loss


def cut_of(name: str):
    return next((how for end, how in CUT.items() if name.endswith(end)), B)


def spread(model: nn.Module) -> nn.Module:
    """Every parameter over the grid: the same in both rows, cut along a row as CUT says."""
    placement = flow.placement("cpu", GRID)
    for name, p in model.named_parameters():
        whole = flow.tensor(p.detach().numpy(), placement=placement, sbp=(B, B))
        p.data = whole.to_global(sbp=(B, cut_of(name)))
    return model


def trained(model: nn.Module, batches: list, title: str, rank: int, **where) -> list[float]:
    graph, losses = Train(model, flow.optim.AdamW(model.parameters(), lr=3e-3)), []
    for batch in tqdm(batches, desc=title, unit=" steps", leave=False, disable=True if rank else None):
        loss = graph(*(flow.tensor(a, **where) for a in batch))
        losses.append(float(loss.numpy()))                # of a global tensor: every rank gets all of it
    return losses


def main(options) -> None:
    if flow.env.get_world_size() == 1:
        flow.distributed.set_virtual_devices(4)
    elif flow.env.get_world_size() != 4:
        raise SystemExit("this program is for 4 ranks: --nproc_per_node 4")
    rank = flow.env.get_rank()
    text = Path(__file__).read_text(encoding="utf-8")
    letters = sorted(set(text))
    tokens, rng = np.array([letters.index(c) for c in text], np.int64), np.random.default_rng(0)
    batches = []
    for _ in range(5 if options.quick else options.steps):
        at = rng.integers(0, len(tokens) - LENGTH - 1, BATCH)[:, None] + np.arange(LENGTH + 1)
        batches.append((tokens[at[:, :-1]], tokens[at[:, 1:]]))

    def model():
        flow.manual_seed(0)
        return GPT(len(letters), n_layer=2, n_head=4, d=32 if options.quick else 64, block_size=LENGTH)

    alone = trained(model(), batches, "one device", rank)
    several = trained(spread(model()), batches, "four devices", rank, placement=flow.placement("cpu", GRID),
                      sbp=(split(0), B))
    apart = max(abs(a - b) for a, b in zip(alone, several))
    if rank == 0:
        print(f"loss of step 1: {alone[0]:.4f} on one device, {several[0]:.4f} on four; of step {len(alone)}: "
              f"{alone[-1]:.4f}, {several[-1]:.4f}; apart by at most {apart:.1e}")
        print(curves(options.out / "parallel_gpt.svg", "cross-entropy a letter", one_device=alone, four_devices=several))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A GPT, data and tensor parallel on four devices.")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("build/gallery"))
    parser.add_argument("--quick", action="store_true", help="a smaller network, 5 steps: seconds")
    main(parser.parse_args())
