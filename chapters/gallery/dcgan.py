"""A generator that draws digits, and a discriminator that detects drawn digits (DCGAN, Radford et al. 2016).

    python chapters/gallery/dcgan.py [--epochs 6] [--out FOLDER] [--quick]

Six epochs over the 7,000 images that are part of flowedu take about half a minute on two cores.
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


def upsample(i: int, o: int, *kernel: int) -> list[nn.Module]:
    return [nn.ConvTranspose2d(i, o, *kernel, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]


def make_generator() -> nn.Module:
    """Return a network from noise (B, NOISE, 1, 1) to images (B, 1, 28, 28) in [-1, 1]."""
    return nn.Sequential(*upsample(NOISE, 64, 7, 1, 0), *upsample(64, 32, 4, 2, 1),
                         nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Tanh())


def make_discriminator() -> nn.Module:
    """Return a network from images to logits (B, 1), which are positive for real images."""
    return nn.Sequential(nn.Conv2d(1, 32, 4, 2, 1), nn.LeakyReLU(0.2, True),
                         nn.Conv2d(32, 64, 4, 2, 1, bias=False), nn.BatchNorm2d(64), nn.LeakyReLU(0.2, True),
                         nn.Flatten(), nn.Linear(64 * 49, 1))


def initialize(m: nn.Module) -> None:
    if isinstance(m, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(m.weight, 0.0, 0.02)


class TrainDiscriminator(nn.Graph):
    """A step of the discriminator: raises the logits of real images, and lowers those of drawn images."""

    def __init__(self, generator, discriminator, optimizer, loss_fn):
        super().__init__()
        self.generator, self.discriminator, self.loss_fn = generator, discriminator, loss_fn
        self.add_optimizer(optimizer)

    def build(self, real, noise):
        of_real, of_drawn = self.discriminator(real), self.discriminator(self.generator(noise).detach())
        loss = self.loss_fn(of_real, flow.ones_like(of_real) * 0.9) + self.loss_fn(of_drawn,
                                                                                   flow.zeros_like(of_drawn))
        loss.backward()
        return loss


class TrainGenerator(nn.Graph):
    """A step of the generator: raises the logits of drawn images."""

    def __init__(self, generator, discriminator, optimizer, loss_fn):
        super().__init__()
        self.generator, self.discriminator, self.loss_fn = generator, discriminator, loss_fn
        self.add_optimizer(optimizer)

    def build(self, noise):
        logits = self.discriminator(self.generator(noise))
        loss = self.loss_fn(logits, flow.ones_like(logits))
        loss.backward()
        return loss


def main(options) -> None:
    flow.manual_seed(0)
    data = datasets.MNISTSubset(True, transforms.Compose([transforms.ToTensor(),
                                                          transforms.Normalize((0.5,), (0.5,))]))
    data = Subset(data, range(4 * BATCH)) if options.quick else data
    loader = DataLoader(data, BATCH, shuffle=True, drop_last=True)
    generator, discriminator = make_generator().apply(initialize), make_discriminator().apply(initialize)
    loss_fn = nn.BCEWithLogitsLoss()
    optimizers = [flow.optim.Adam(m.parameters(), lr=1e-3, betas=(0.5, 0.999))
                  for m in (discriminator, generator)]
    train_discriminator = TrainDiscriminator(generator, discriminator, optimizers[0], loss_fn)
    train_generator = TrainGenerator(generator, discriminator, optimizers[1], loss_fn)
    noise, epochs = flow.randn(64, NOISE, 1, 1), 1 if options.quick else options.epochs
    options.out.mkdir(parents=True, exist_ok=True)
    for epoch in range(1, epochs + 1):
        losses = []
        for real, _ in tqdm(loader, desc=f"epoch {epoch}/{epochs}", unit=" steps", leave=False, disable=None):
            losses.append((train_discriminator(real, flow.randn(BATCH, NOISE, 1, 1)).item(),
                           train_generator(flow.randn(BATCH, NOISE, 1, 1)).item()))
        means = [sum(column) / len(column) for column in zip(*losses)]
        print(f"epoch {epoch}: loss of the discriminator {means[0]:.3f}, of the generator {means[1]:.3f}")
    with flow.no_grad():
        save_image(generator(noise), options.out / "drawn.png", nrow=8, normalize=True)
    print(options.out / "drawn.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A DCGAN that draws digits.")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--out", type=Path, default=Path("build/gallery"))
    parser.add_argument("--quick", action="store_true", help="few images and one epoch; takes seconds")
    main(parser.parse_args())
