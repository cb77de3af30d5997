"""A small GPT that learns to write as the lessons do, letter by letter, and then writes.

    python chapters/gallery/chargpt.py [--steps 1000] [--out FOLDER] [--quick]

Its text is what lies in chapters/: all lessons in English. 1000 steps take about a minute on two cores.
"""
import argparse
from pathlib import Path

import numpy as np
from curves import curves
from tqdm.auto import tqdm

import flowedu as flow
from flowedu import nn
from flowedu.models import GPT

CHAPTERS = Path(__file__).parents[1]
BATCH, LENGTH = 32, 64


def lessons() -> str:
    files = sorted(p for p in CHAPTERS.glob("[0-9]*/*.md") if not p.name.endswith(".zh.md"))
    return "\n".join(p.read_text(encoding="utf-8") for p in files)


class Train(nn.Graph):
    def __init__(self, model, optimizer):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, idx, targets):
        loss = self.model(idx, targets)[1]
        loss.backward()
        return loss


def main(options) -> None:
    flow.manual_seed(0)
    rng, text = np.random.default_rng(0), lessons()
    letters = sorted(set(text))
    code = {c: i for i, c in enumerate(letters)}
    tokens = np.array([code[c] for c in text], np.int64)
    kept, held = tokens[: len(tokens) * 9 // 10], tokens[len(tokens) * 9 // 10:]          # held back: never trained on
    small = dict(n_layer=1, n_head=2, d=32) if options.quick else dict(n_layer=3, n_head=4, d=96)
    model = GPT(len(letters), block_size=LENGTH, **small)
    graph = Train(model, flow.optim.AdamW([{"params": list(model.parameters()), "clip_grad_max_norm": 1.0,
                                            "clip_grad_norm_type": 2.0}], lr=1e-3))
    print(f"{len(tokens):,} letters of {len(letters)} kinds, {sum(p.numel() for p in model.parameters()):,} parameters; "
          f"who guesses blindly has the loss {np.log(len(letters)):.2f}")

    def batch(source):
        at = rng.integers(0, len(source) - LENGTH - 1, BATCH)[:, None] + np.arange(LENGTH + 1)
        return flow.from_numpy(source[at[:, :-1]]), flow.from_numpy(source[at[:, 1:]])

    steps, losses, tests = 30 if options.quick else options.steps, [], []
    for _ in tqdm(range(steps), desc="training", unit=" steps", leave=False, disable=None):
        losses.append(graph(*batch(kept)).item())
        with flow.no_grad():
            tests.append(model(*batch(held))[1].item() if len(losses) % 10 == 0 or not tests else tests[-1])
    print(f"loss {np.mean(losses[-20:]):.3f}, on text held back {np.mean(tests[-20:]):.3f}")
    start = flow.tensor([[code[c] for c in "A tensor "]])
    written = model.generate(start, 40 if options.quick else 240, temperature=0.8, top_k=20)
    print("it writes:\n    " + "".join(letters[i] for i in written[0].tolist()).replace("\n", "\n    "))
    print(curves(options.out / "chargpt.svg", "cross-entropy a letter", trained=losses, held_back=tests))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A GPT of letters, trained on the lessons.")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("build/gallery"))
    parser.add_argument("--quick", action="store_true", help="a smaller network, 30 steps: seconds")
    main(parser.parse_args())
