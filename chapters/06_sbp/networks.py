"""Networks of chapter 6's demo.

Each is a Sequential of four parts, a to d, which are the stages of the pipeline.
"""
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

import flowedu as flow
from flowedu import nn
from flowedu.models.gpt import Block
from flowedu.vision import datasets, models, transforms

UNITS, INPUTS = "units", "inputs"       # split a weight (out, in) and its bias along out; or along in


@dataclass
class Network:
    """A network of the demo, with its data and its optimizer.

    Attributes:
        title: its name in the output.
        make: make() returns the model, with the same weights each time.
        batches: batches(steps) yields (inputs, labels) as arrays.
        rule: rule(parameters) returns the optimizer.
        cut: {module: UNITS or INPUTS}, the split weights of the tensor parallel plan.
        micro: the number of micro-batches in one step of the pipeline.
        dtype: the dtype of the parameters.
    """

    title: str
    make: Callable[[], nn.Module]
    batches: Callable[[int], Iterator[tuple[np.ndarray, np.ndarray]]]
    rule: Callable
    cut: dict[str, str] = field(default_factory=dict)
    micro: int = 4
    dtype: str = "float32"


def parts(**named: nn.Module) -> nn.Sequential:
    return nn.Sequential(OrderedDict(named))


# ---- LeNet on digits
def lenet() -> nn.Module:
    def block(i: int, o: int) -> list:
        return [nn.Conv2d(i, o, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2, 2)]

    return parts(a=nn.Sequential(*block(1, 16)), b=nn.Sequential(*block(16, 32), nn.Flatten()),
                 c=nn.Sequential(nn.Linear(32 * 49, 256), nn.ReLU()), d=nn.Sequential(nn.Linear(256, 10)))


def digits(steps: int, batch: int = 60):
    images, labels = flow.data.load_mnist(batch, 50)[0]
    for i in range(steps):
        yield images[i % len(images)], labels[i % len(images)].astype(np.int64)


# ---- MobileNetV2 on generated images
# It uses float64, because its 52 batch norms amplify rounding errors at every step, and each plan rounds
# differently. Its pipeline has no micro-batches, because a batch norm would use the mean of each micro-batch.
def mobilenet() -> nn.Module:
    whole = models.mobilenet_v2(num_classes=10, width_mult=0.25, dropout=0.0)
    f = whole.features
    return parts(a=f[:4], b=f[4:8], c=f[8:14], d=nn.Sequential(f[14:], nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                                               whole.classifier[1])).double()


def pictures(steps: int, batch: int = 16, count: int = 4):
    drawn = datasets.SyntheticCIFAR10(True, transforms.ToTensor(), size=count * batch)
    for i in range(steps):
        some = [drawn[j] for j in range(i % count * batch, (i % count + 1) * batch)]
        yield np.stack([x.numpy() for x, _ in some]).astype(np.float64), np.array([y for _, y in some])


# ---- a GPT on integer sequences with a constant step
class Embed(nn.Module):
    def __init__(self, vocab: int, d: int, length: int):
        super().__init__()
        self.word, self.place = nn.Embedding(vocab, d), nn.Embedding(length, d)

    def forward(self, x):
        return self.word(x) + self.place.weight


class Head(nn.Module):
    def __init__(self, d: int, vocab: int):
        super().__init__()
        self.norm, self.vocab, self.word = nn.LayerNorm(d), vocab, nn.Linear(d, vocab, bias=False)

    def forward(self, x):
        return self.word(self.norm(x)).reshape(-1, self.vocab)


def gpt(vocab: int = 64, d: int = 64, length: int = 32) -> nn.Module:
    return parts(a=Embed(vocab, d, length), b=Block(d, 4, 0.0, True), c=Block(d, 4, 0.0, True),
                 d=Head(d, vocab))


def counting(steps: int, batch: int = 16, length: int = 32, vocab: int = 64):
    rng = np.random.default_rng(0)
    for _ in range(steps):
        start, by = rng.integers(0, vocab, (batch, 1)), rng.integers(1, 4, (batch, 1))
        text = (start + by * np.arange(length + 1)) % vocab
        yield text[:, :-1], text[:, 1:].reshape(-1)


def adam(lr: float) -> Callable:
    return lambda parameters: flow.optim.Adam(parameters, lr=lr)


def seeded(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    def made():
        flow.manual_seed(0)
        return make()
    return made


def convolutions() -> dict[str, str]:
    return {name: UNITS for name, m in mobilenet().named_modules() if isinstance(m, nn.Conv2d)
            and m.groups == 1}


def networks() -> dict[str, Network]:
    mlps = {f"{block}.mlp.{i}": how for block in "bc" for i, how in ((0, UNITS), (2, INPUTS))}
    return {
        "lenet": Network("LeNet on digits", seeded(lenet), digits, adam(1e-3), {"c.0": UNITS, "d.0": INPUTS}),
        "mobilenet": Network("MobileNetV2 (a quarter as wide) on drawn pictures", seeded(mobilenet), pictures,
                             adam(1e-3), convolutions(), 1, "float64"),
        "gpt": Network("GPT (two blocks) on sequences that count", seeded(gpt), counting, adam(1e-3),
                       {**mlps, "d.word": UNITS}),
    }
