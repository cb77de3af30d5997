"""A network that predicts the noise in an image.

Subtracting the predicted noise step by step turns random pixels into a digit (DDPM, Ho et al. 2020).

    python chapters/gallery/diffusion.py [--epochs 8] [--out FOLDER] [--quick]

The images have 14 x 14 pixels. Eight epochs take about half a minute on two cores.
"""
import argparse
import math
from pathlib import Path

from tqdm.auto import tqdm

import flowedu as flow
import flowedu.nn.functional as F
from flowedu import nn
from flowedu.utils.data import DataLoader, Subset
from flowedu.vision import datasets, transforms
from flowedu.vision.utils import save_image

BATCH, STEPS, SIDE = 64, 100, 14
BETA = flow.linspace(1e-3, 0.12, STEPS)                  # variance of the noise that step t adds
ALPHA = flow.cumprod(1 - BETA, 0)                        # fraction of the image's variance left after step t


class Denoiser(nn.Module):
    """A network from images x (B, 1, SIDE, SIDE) and steps t (B,) to the noise in x."""

    def __init__(self, width: int = 32):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, 2 * width))
        self.first = nn.Conv2d(1, width, 3, padding=1)
        self.down = nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.inside = nn.Sequential(nn.GroupNorm(8, 2 * width), nn.SiLU(),
                                    nn.Conv2d(2 * width, 2 * width, 3, padding=1))
        self.up = nn.ConvTranspose2d(2 * width, width, 4, 2, 1)
        self.last = nn.Sequential(nn.GroupNorm(8, 2 * width), nn.SiLU(),
                                  nn.Conv2d(2 * width, width, 3, padding=1),
                                  nn.SiLU(), nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, x, t):
        speed = flow.exp(-math.log(1000.0) * flow.arange(0, self.width // 2).float() / (self.width // 2))
        angle = t.float().reshape(-1, 1) * speed.reshape(1, -1)
        time = self.time(flow.cat([flow.sin(angle), flow.cos(angle)], 1))[:, :, None, None]
        fine = F.silu(self.first(x))
        coarse = self.down(fine) + time
        return self.last(flow.cat([fine, self.up(coarse + self.inside(coarse))], 1))


class Train(nn.Graph):
    """A training step: adds noise to images and predicts it."""

    def __init__(self, model, optimizer):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, x, t, noise):
        alpha = ALPHA[t].reshape(-1, 1, 1, 1)
        loss = F.mse_loss(self.model(flow.sqrt(alpha) * x + flow.sqrt(1 - alpha) * noise, t), noise)
        loss.backward()
        return loss


def draw(model: nn.Module, count: int) -> list:
    """Return a list of images (count, 1, SIDE, SIDE), one entry after each tenth of the steps."""
    x, images = flow.randn(count, 1, SIDE, SIDE), []
    with flow.no_grad():
        for step in tqdm(range(STEPS - 1, -1, -1), desc="drawing", unit=" steps", leave=False, disable=None):
            t = flow.full((count,), step, dtype=flow.int64)
            share = BETA[step] / flow.sqrt(1 - ALPHA[step])
            x = (x - share * model(x, t)) / flow.sqrt(1 - BETA[step])
            if step:
                x = x + flow.sqrt(BETA[step]) * flow.randn(count, 1, SIDE, SIDE)
            if step % (STEPS // 10) == 0:
                images.append(x)
    return images


def main(options) -> None:
    flow.manual_seed(0)
    small = transforms.Compose([transforms.Resize(SIDE), transforms.ToTensor(),
                                transforms.Normalize((0.5,), (0.5,))])
    data = datasets.MNISTSubset(True, small)
    data = Subset(data, range(4 * BATCH)) if options.quick else data
    loader = DataLoader(data, BATCH, shuffle=True, drop_last=True)
    model, epochs = Denoiser(16 if options.quick else 32), 1 if options.quick else options.epochs
    graph = Train(model, flow.optim.Adam(model.parameters(), lr=2e-3))
    for epoch in range(1, epochs + 1):
        losses = []
        for x, _ in tqdm(loader, desc=f"epoch {epoch}/{epochs}", unit=" steps", leave=False, disable=None):
            t = flow.randint(0, STEPS, (BATCH,))
            losses.append(graph(x, t, flow.randn(*x.shape)).item())
        print(f"epoch {epoch}: mean squared error of the noise {sum(losses) / len(losses):.4f} (1 if it "
              f"predicts 0)")
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "diffusion.png"
    rows = [image for step in draw(model, 8) for image in step]
    save_image(flow.stack(rows).clamp(-1, 1), file, nrow=8, normalize=True, value_range=(-1, 1))
    print(file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A diffusion model that draws digits.")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("build/gallery"))
    parser.add_argument("--quick", action="store_true", help="few images and one epoch; takes seconds")
    main(parser.parse_args())
