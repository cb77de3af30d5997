"""A classifier of handwritten digits, trained on randomly shifted images.

The program saves the misclassified test images.

    python chapters/gallery/classifier.py [--epochs 4] [--out FOLDER] [--quick]

The data are the 7,000 images of MNIST that are part of flowedu. Four epochs take about ten seconds on two
cores.
"""
import argparse
from pathlib import Path

from tqdm.auto import tqdm

import flowedu as flow
from flowedu import nn
from flowedu.utils.data import DataLoader, Subset
from flowedu.vision import datasets, transforms
from flowedu.vision.utils import save_image

BATCH, MAX_SHIFT = 64, 2                                 # MAX_SHIFT: in pixels


def make_network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2, 2),
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(32 * 49, 10))


class Train(nn.Graph):
    """A training step."""

    def __init__(self, model, optimizer, scheduler):
        super().__init__()
        self.model, self.loss_fn = model, nn.CrossEntropyLoss(label_smoothing=0.05)
        self.add_optimizer(optimizer, lr_sch=scheduler)

    def build(self, x, y):
        loss = self.loss_fn(self.model(x), y)
        loss.backward()
        return loss


def find_errors(model, data) -> tuple[float, list, list[str]]:
    """Return (accuracy, misclassified images, their captions)."""
    model.eval()
    images, captions, right = [], [], 0
    with flow.no_grad():
        for x, y in DataLoader(data, 200):
            guess = model(x).argmax(1)
            right += int((guess == y).sum())
            for i in flow.nonzero(guess != y).flatten().tolist():
                images.append(x[i])
                captions.append(f"{y[i].item()} as {guess[i].item()}")
    model.train()
    return right / len(data), images, captions


def main(options) -> None:
    flow.manual_seed(0)
    shifted = transforms.Compose([transforms.RandomCrop(28, padding=MAX_SHIFT), transforms.ToTensor()])
    train, test = datasets.MNISTSubset(True, shifted), datasets.MNISTSubset(False, transforms.ToTensor())
    if options.quick:
        train, test = Subset(train, range(10 * BATCH)), Subset(test, range(200))
    loader = DataLoader(train, BATCH, shuffle=True, drop_last=True)
    model, epochs = make_network(), 1 if options.quick else options.epochs
    optimizer = flow.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    graph = Train(model, optimizer, flow.optim.lr_scheduler.CosineDecayLR(optimizer, epochs * len(loader)))
    for epoch in range(1, epochs + 1):
        bar = tqdm(loader, desc=f"epoch {epoch}/{epochs}", unit=" steps", leave=False, disable=None)
        losses = [graph(x, y).item() for x, y in bar]
        accuracy, images, captions = find_errors(model, test)
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}, accuracy {accuracy:.2%} on "
              f"{len(test):,} test images")
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "misclassified.png"
    save_image(images[:40] or [test[0][0]], file, nrow=8, pad_value=0.5)
    print(f"{file}: {', '.join(captions[:5]) or 'no errors'} ...")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A classifier of handwritten digits.")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("build/gallery"))
    parser.add_argument("--quick", action="store_true", help="few images and one epoch; takes seconds")
    main(parser.parse_args())
