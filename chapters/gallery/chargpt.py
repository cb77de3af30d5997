"""A small GPT that is trained on the English lessons, character by character, and then generates text.

    python chapters/gallery/chargpt.py [--steps 1000] [--out FOLDER] [--quick]

1000 steps take about one minute on two cores.
"""
import argparse
from pathlib import Path

import numpy as np
from curves import draw_curves
from tqdm.auto import tqdm

import flowedu as flow
from flowedu import nn
from flowedu.models import GPT

CHAPTERS = Path(__file__).parents[1]
BATCH, LENGTH = 32, 64


def read_lessons() -> str:
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
    rng, text = np.random.default_rng(0), read_lessons()
    letters = sorted(set(text))
    code = {c: i for i, c in enumerate(letters)}
    tokens = np.array([code[c] for c in text], np.int64)
    train_tokens, test_tokens = tokens[: len(tokens) * 9 // 10], tokens[len(tokens) * 9 // 10:]
    small = dict(n_layer=1, n_head=2, d=32) if options.quick else dict(n_layer=3, n_head=4, d=96)
    model = GPT(len(letters), block_size=LENGTH, **small)
    graph = Train(model, flow.optim.AdamW([{"params": list(model.parameters()), "clip_grad_max_norm": 1.0,
                                            "clip_grad_norm_type": 2.0}], lr=1e-3))
    print(f"{len(tokens):,} characters, {len(letters)} different ones, "
          f"{sum(p.numel() for p in model.parameters()):,} parameters; the loss of a random guess is "
          f"{np.log(len(letters)):.2f}")

    def draw_batch(source):
        at = rng.integers(0, len(source) - LENGTH - 1, BATCH)[:, None] + np.arange(LENGTH + 1)
        return flow.from_numpy(source[at[:, :-1]]), flow.from_numpy(source[at[:, 1:]])

    steps, losses, test_losses = 30 if options.quick else options.steps, [], []
    for _ in tqdm(range(steps), desc="training", unit=" steps", leave=False, disable=None):
        losses.append(graph(*draw_batch(train_tokens)).item())
        with flow.no_grad():
            measure = len(losses) % 10 == 0 or not test_losses
            test_losses.append(model(*draw_batch(test_tokens))[1].item() if measure else test_losses[-1])
    print(f"training loss {np.mean(losses[-20:]):.3f}, test loss {np.mean(test_losses[-20:]):.3f}")
    start = flow.tensor([[code[c] for c in "A tensor "]])
    written = model.generate(start, 40 if options.quick else 240, temperature=0.8, top_k=20)
    print("generated text:\n    " + "".join(letters[i] for i in written[0].tolist()).replace("\n", "\n    "))
    print(draw_curves(options.out / "chargpt.svg", "cross-entropy per character", training=losses,
                      test=test_losses))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A GPT of characters, trained on the lessons.")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path("build/gallery"))
    parser.add_argument("--quick", action="store_true", help="a smaller network and 30 steps; takes seconds")
    main(parser.parse_args())
