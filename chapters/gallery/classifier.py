"""Handwritten digits, with pictures moved about while training: a classifier, and the digits it reads wrongly.

    python chapters/gallery/classifier.py [--epochs 4] [--out FOLDER] [--quick]

The digits are the 7,000 of MNIST that come with flowedu. Four epochs take some ten seconds on two cores.
"""
import argparse
from pathlib import Path

from tqdm.auto import tqdm

import flowedu as flow
from flowedu import nn
from flowedu.utils.data import DataLoader, Subset
from flowedu.vision import datasets, transforms
from flowedu.vision.utils import save_image

BATCH, SPARE = 64, 2                                     # SPARE: by how many pixels a picture is moved at most


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(32 * 49, 10))


class Train(nn.Graph):
    """One step, compiled once."""

    def __init__(self, model, optimizer, scheduler):
        super().__init__()
        self.model, self.loss_fn = model, nn.CrossEntropyLoss(label_smoothing=0.05)
        self.add_optimizer(optimizer, lr_sch=scheduler)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


def wrong_ones(model, data) -> tuple[float, list, list[str]]:
    """(share of right answers, the pictures read wrongly, what was read)."""
    model.eval()
    pictures, words, right = [], [], 0
    with flow.no_grad():
        for x, y in DataLoader(data, 200):
            read = model(x).argmax(1)
            right += int((read == y).sum())
            for i in flow.nonzero(read != y).flatten().tolist():
                pictures.append(x[i])
                words.append(f"{y[i].item()} read as {read[i].item()}")
    model.train()
    return right / len(data), pictures, words


def main(options) -> None:
    flow.manual_seed(0)
    moved = transforms.Compose([transforms.RandomCrop(28, padding=SPARE), transforms.ToTensor()])
    train, test = datasets.MNISTSubset(True, moved), datasets.MNISTSubset(False, transforms.ToTensor())
    if options.quick:
        train, test = Subset(train, range(10 * BATCH)), Subset(test, range(200))
    loader = DataLoader(train, BATCH, shuffle=True, drop_last=True)
    model, epochs = network(), 1 if options.quick else options.epochs
    optimizer = flow.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    graph = Train(model, optimizer, flow.optim.lr_scheduler.CosineDecayLR(optimizer, epochs * len(loader)))
    for epoch in range(1, epochs + 1):
        bar = tqdm(loader, desc=f"epoch {epoch}/{epochs}", unit=" steps", leave=False, disable=None)
        losses = [graph(x, y).item() for x, y in bar]
        share, pictures, words = wrong_ones(model, test)
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}, {share:.2%} of {len(test):,} test digits read rightly")
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "read_wrongly.png"
    save_image(pictures[:40] or [test[0][0]], file, nrow=8, pad_value=0.5)
    print(f"{file}: {', '.join(words[:5]) or 'none was'} ...")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A classifier of handwritten digits.")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("build/gallery"))
    parser.add_argument("--quick", action="store_true", help="few digits, one epoch: seconds")
    main(parser.parse_args())
