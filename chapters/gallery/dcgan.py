"""Two networks against each other: one draws digits, one tells drawn from real ones (DCGAN, Radford et al. 2016).

    python chapters/gallery/dcgan.py [--epochs 6] [--out FOLDER] [--quick]

Six epochs over the digits that come with flowedu take about half a minute on two cores.
"""
import argparse
from pathlib import Path

from tqdm.auto import tqdm

import flowedu as flow
from flowedu import nn
from flowedu.utils.data import DataLoader, Subset
from flowedu.vision import datasets, transforms
from flowedu.vision.utils import save_image

BATCH, NOISE = 64, 64


def up(i: int, o: int, *kernel: int) -> list[nn.Module]:
    return [nn.ConvTranspose2d(i, o, *kernel, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]


def generator() -> nn.Module:
    """Noise (B, NOISE, 1, 1) -> pictures (B, 1, 28, 28) in [-1, 1]."""
    return nn.Sequential(*up(NOISE, 64, 7, 1, 0), *up(64, 32, 4, 2, 1), nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Tanh())


def judge() -> nn.Module:
    """Pictures -> (B, 1): above 0 for those it takes for real."""
    return nn.Sequential(nn.Conv2d(1, 32, 4, 2, 1), nn.LeakyReLU(0.2, True),
                         nn.Conv2d(32, 64, 4, 2, 1, bias=False), nn.BatchNorm2d(64), nn.LeakyReLU(0.2, True),
                         nn.Flatten(), nn.Linear(64 * 49, 1))


def first_weights(m: nn.Module) -> None:
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(m.weight, 0.0, 0.02)


class Judging(nn.Graph):
    """A step of the judge: real ones up, drawn ones down."""

    def __init__(self, draws, judges, optimizer, loss_fn):
        super().__init__()
        self.draws, self.judges, self.loss_fn = draws, judges, loss_fn
        self.add_optimizer(optimizer)

    def build(self, real, noise):
        said, of_drawn = self.judges(real), self.judges(self.draws(noise).detach())
        loss = self.loss_fn(said, flow.ones_like(said) * 0.9) + self.loss_fn(of_drawn, flow.zeros_like(of_drawn))
        loss.backward()
        return loss


class Drawing(nn.Graph):
    """A step of the generator: what it draws is to be taken for real."""

    def __init__(self, draws, judges, optimizer, loss_fn):
        super().__init__()
        self.draws, self.judges, self.loss_fn = draws, judges, loss_fn
        self.add_optimizer(optimizer)

    def build(self, noise):
        said = self.judges(self.draws(noise))
        loss = self.loss_fn(said, flow.ones_like(said))
        loss.backward()
        return loss


def main(options) -> None:
    flow.manual_seed(0)
    data = datasets.MNISTSubset(True, transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))]))
    data = Subset(data, range(4 * BATCH)) if options.quick else data
    loader = DataLoader(data, BATCH, shuffle=True, drop_last=True)
    draws, judges = generator().apply(first_weights), judge().apply(first_weights)
    loss_fn = nn.BCEWithLogitsLoss()
    rules = [flow.optim.Adam(m.parameters(), lr=1e-3, betas=(0.5, 0.999)) for m in (judges, draws)]
    judging, drawing = Judging(draws, judges, rules[0], loss_fn), Drawing(draws, judges, rules[1], loss_fn)
    shown, epochs = flow.randn(64, NOISE, 1, 1), 1 if options.quick else options.epochs
    options.out.mkdir(parents=True, exist_ok=True)
    for epoch in range(1, epochs + 1):
        losses = []
        for real, _ in tqdm(loader, desc=f"epoch {epoch}/{epochs}", unit=" steps", leave=False, disable=None):
            losses.append((judging(real, flow.randn(BATCH, NOISE, 1, 1)).item(),
                           drawing(flow.randn(BATCH, NOISE, 1, 1)).item()))
        of_judge, of_generator = (sum(c) / len(c) for c in zip(*losses))
        print(f"epoch {epoch}: loss of the judge {of_judge:.3f}, of the generator {of_generator:.3f}")
    with flow.no_grad():
        save_image(draws(shown), options.out / "drawn.png", nrow=8, normalize=True)
    print(options.out / "drawn.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A DCGAN that draws digits.")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--out", type=Path, default=Path("build/gallery"))
    parser.add_argument("--quick", action="store_true", help="few digits, one epoch: seconds")
    main(parser.parse_args())
