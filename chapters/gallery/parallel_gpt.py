"""A GPT on four devices: data parallel over two groups, and tensor parallel over the devices of each group.

    python chapters/gallery/parallel_gpt.py [--steps 60] [--out FOLDER] [--quick]
    python -m flowedu.distributed.launch --nproc_per_node 4 chapters/gallery/parallel_gpt.py

The first command uses four virtual devices of one process, and the second uses four ranks (mpi4py). The model
is trained on the text of this file. The drawing compares the losses with those of one device.
"""
import argparse
from pathlib import Path

import numpy as np
from curves import draw_curves
from tqdm.auto import tqdm

import flowedu as flow
from flowedu import nn
from flowedu.models import GPT

B, split = flow.sbp.broadcast, flow.sbp.split
GRID = [[0, 1], [2, 3]]                                   # each row has a copy of the model
BATCH, LENGTH = 8, 32
SPLITS = {
    # split along outputs
    "qkv.weight": split(0), "qkv.bias": split(0), "mlp.0.weight": split(0), "mlp.0.bias": split(0),
    # split along inputs
    "proj.weight": split(1), "mlp.2.weight": split(1)}


class Train(nn.Graph):
    """A training step. flowedu derives the communication from the layouts of inputs and parameters."""

    def __init__(self, model, optimizer):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, idx, targets):
        loss = self.model(idx, targets)[1]
        loss.backward()
        return loss


def choose_split(name: str):
    return next((sbp for end, sbp in SPLITS.items() if name.endswith(end)), B)


def distribute(model: nn.Module) -> nn.Module:
    """Split each parameter over the devices of a row by SPLITS. Both rows have the same parameters."""
    placement = flow.placement("cpu", GRID)
    for name, p in model.named_parameters():
        whole = flow.tensor(p.detach().numpy(), placement=placement, sbp=(B, B))
        p.data = whole.to_global(sbp=(B, choose_split(name)))
    return model


def train(model: nn.Module, batches: list, title: str, rank: int, **layout) -> list[float]:
    """Train the model and return the losses."""
    graph, losses = Train(model, flow.optim.AdamW(model.parameters(), lr=3e-3)), []
    for batch in tqdm(batches, desc=title, unit=" steps", leave=False, disable=True if rank else None):
        loss = graph(*(flow.tensor(a, **layout) for a in batch))
        losses.append(float(loss.numpy()))                # a global tensor: every rank gets the whole value
    return losses


def main(options) -> None:
    if flow.env.get_world_size() == 1:
        flow.distributed.set_virtual_devices(4)
    elif flow.env.get_world_size() != 4:
        raise SystemExit("this program needs 4 ranks: --nproc_per_node 4")
    rank = flow.env.get_rank()
    text = Path(__file__).read_text(encoding="utf-8")
    letters = sorted(set(text))
    tokens, rng = np.array([letters.index(c) for c in text], np.int64), np.random.default_rng(0)
    batches = []
    for _ in range(5 if options.quick else options.steps):
        at = rng.integers(0, len(tokens) - LENGTH - 1, BATCH)[:, None] + np.arange(LENGTH + 1)
        batches.append((tokens[at[:, :-1]], tokens[at[:, 1:]]))

    def make_model():
        flow.manual_seed(0)
        return GPT(len(letters), n_layer=2, n_head=4, d=32 if options.quick else 64, block_size=LENGTH)

    single = train(make_model(), batches, "one device", rank)
    several = train(distribute(make_model()), batches, "four devices", rank,
                    placement=flow.placement("cpu", GRID), sbp=(split(0), B))
    difference = max(abs(a - b) for a, b in zip(single, several))
    if rank == 0:
        print(f"loss of step 1: {single[0]:.4f} on one device, {several[0]:.4f} on four; of step "
              f"{len(single)}: {single[-1]:.4f}, {several[-1]:.4f}; largest difference {difference:.1e}")
        print(draw_curves(options.out / "parallel_gpt.svg", "cross-entropy per character", one_device=single,
                          four_devices=several))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A GPT, data and tensor parallel on four devices.")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("build/gallery"))
    parser.add_argument("--quick", action="store_true", help="a smaller network and 5 steps; takes seconds")
    main(parser.parse_args())
