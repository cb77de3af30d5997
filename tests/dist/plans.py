"""Models and parallel plans: data, model, hybrid. A plan defines the layout of every parameter and of the
inputs.
"""
import numpy as np

import flowedu as flow
import flowedu.nn.functional as F
from flowedu.models import GPT
from flowedu.vision import models

B, P, split = flow.sbp.broadcast, flow.sbp.partial_sum, flow.sbp.split
ROW, GRID = [0, 1], [[0, 1], [2, 3]]


def classify(model, x, y):
    return F.cross_entropy(model(x), y)


def predict(model, x, y):
    return model(x, y)[1]


def make_lenet():
    return models.lenet5(num_classes=4).double()


def mobilenet():
    return models.mobilenet_v2(num_classes=4, width_mult=0.25, dropout=0.0).double()


def gpt():
    return GPT(16, n_layer=2, n_head=2, d=16, block_size=8).double()


RNG = np.random.default_rng(3)
MODELS = {
    "lenet": (make_lenet, classify, RNG.standard_normal((4, 1, 28, 28)), RNG.integers(0, 4, 4)),
    "mobilenet": (mobilenet, classify, RNG.standard_normal((8, 3, 64, 64)), RNG.integers(0, 4, 8)),
    "gpt": (gpt, predict, RNG.integers(0, 16, (4, 8)), RNG.integers(0, 16, (4, 8))),
}


def rows(name, p):
    """Model parallel: split matrices and embeddings along their first axis if it is long enough; broadcast
    all others.
    """
    return split(0) if p.ndim >= 2 and p.shape[0] >= 4 else B


PLANS = {
    "data": (ROW, lambda name, p: B, split(0)),
    "model": (ROW, rows, B),
    "hybrid": (GRID, lambda name, p: (B, rows(name, p)), (split(0), B)),
}


def spread(model, ranks, sbp):
    """Convert the model's parameters and buffers to a plan, each with the same logical value."""
    placement = flow.placement("cpu", ranks)
    whole = [B] * len(placement.hierarchy)
    for name, p in [*model.named_parameters(), *model.named_buffers()]:
        p.data = flow.tensor(p.detach().numpy(), placement=placement, sbp=whole).to_global(sbp=sbp(name, p))
    return placement
