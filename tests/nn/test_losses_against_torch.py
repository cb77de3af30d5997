"""Losses against PyTorch: as functions and as modules, every reduction, weights, ignored classes."""
import numpy as np
import pytest

import flowedu as flow
from flowedu.nn import functional as F

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from .peers import check_function, check_module, make_input_pairs, quiet  # noqa: E402

CLASSES = ("int", 4, (6,))
MAP = ("int", 4, (2, 3, 5))
W = ("positive", (4,))
IGNORED = np.array([0, -100, 3, 2, -100, 1])
LOSSES = [
    ("F.mse_loss(x, y{})", (3, 4), (3, 4)), ("F.l1_loss(x, y{})", (3, 4), (3, 4)),
    ("F.smooth_l1_loss(x, y{})", (3, 4), (3, 4)),
    ("F.smooth_l1_loss(x, y, beta=0.3{})", (3, 4), (3, 4)), ("F.smooth_l1_loss(x, y, beta=0.0{})", (3, 4),
                                                             (3, 4)),
    ("F.huber_loss(x, y, delta=0.5{})", (3, 4), (3, 4)), ("F.mse_loss(x, y{})", (3, 4), (3, 1)),
    ("F.cross_entropy(x, y{})", (6, 4), CLASSES), ("F.cross_entropy(x, y{})", (4,), ("int", 4, ())),
    ("F.cross_entropy(x, y{})", (2, 4, 3, 5), MAP), ("F.cross_entropy(x, y, z.detach(){})", (6, 4),
                                                     CLASSES, W),
    ("F.cross_entropy(x, y{})", (6, 4), IGNORED), ("F.cross_entropy(x, y, z.detach(){})", (6, 4), IGNORED, W),
    ("F.cross_entropy(x, y, ignore_index=2{})", (6, 4), CLASSES),
    ("F.cross_entropy(x, y, label_smoothing=0.2{})", (6, 4), IGNORED),
    ("F.cross_entropy(x, y, z.detach(), label_smoothing=0.2{})", (6, 4), IGNORED, W),
    ("F.cross_entropy(x, y, z.detach(), ignore_index=1, label_smoothing=0.1{})", (2, 4, 3, 5), MAP, W),
    ("F.cross_entropy(x, y{})", (6, 4), ("simplex", (6, 4))),
    ("F.cross_entropy(x, y{})", (2, 4, 3), ("simplex", (2, 4, 3))),
    ("F.cross_entropy(x, y, z.detach(), label_smoothing=0.1{})", (6, 4), ("simplex", (6, 4)), W),
    ("F.cross_entropy(x, y.int().long(){})", (70, 100), ("int", 100, (70,))),
    ("F.nll_loss(x, y{})", (6, 4), CLASSES), ("F.nll_loss(x, y, z.detach(){})", (6, 4), IGNORED, W),
    ("F.nll_loss(x, y, ignore_index=0{})", (2, 4, 3, 5), MAP), ("F.nll_loss(x, y{})", (4,), ("int", 4, ())),
    ("F.binary_cross_entropy(x, y{})", ("unit", (3, 4)), ("unit", (3, 4))),
    ("F.binary_cross_entropy(x, y, z.detach(){})", ("unit", (3, 4)), ("unit", (3, 4)), ("positive", (4,))),
    ("F.binary_cross_entropy_with_logits(x, y{})", (3, 4), ("unit", (3, 4))),
    ("F.binary_cross_entropy_with_logits(x, y, z.detach(), pos_weight=u.detach(){})", (3, 4),
     ("unit", (3, 4)), ("positive", (3, 4)), W),
    ("F.kl_div(x, y{})", (3, 4), ("simplex", (3, 4))), ("F.kl_div(x, y, log_target=True{})", (3, 4), (3, 4)),
    ("F.poisson_nll_loss(x, y{})", (3, 4), ("positive", (3, 4))),
    ("F.poisson_nll_loss(x, y * 5, log_input=False, full=True{})", ("positive", (3, 4)),
     ("positive", (3, 4))),
    ("F.gaussian_nll_loss(x, y, z{})", (3, 4), (3, 4), ("positive", (3, 4))),
    ("F.gaussian_nll_loss(x, y, z, full=True{})", (3, 4), (3, 4), ("positive", (3, 1))),
    ("F.margin_ranking_loss(x, y, z.detach(), 0.3{})", (7,), (7,), ("sign", (7,))),
    ("F.hinge_embedding_loss(x, y.detach(), 0.7{})", (7,), ("sign", (7,))),
    ("F.soft_margin_loss(x, y.detach(){})", (3, 4), ("sign", (3, 4))),
    ("F.cosine_embedding_loss(x, y, z.detach(), 0.1{})", (5, 3), (5, 3), ("sign", (5,))),
    ("F.triplet_margin_loss(x, y, z{})", (5, 3), (5, 3), (5, 3)),
    ("F.triplet_margin_loss(x, y, z, margin=0.5, p=1.0, swap=True{})", (5, 3), (5, 3), (5, 3)),
    ("F.multilabel_soft_margin_loss(x, y.detach(), z.detach(){})", (3, 4), ("unit", (3, 4)), W),
    ("F.multi_margin_loss(x, y, weight=z.detach(){})", (6, 4), CLASSES, W),
    ("F.multi_margin_loss(x, y, 2, 0.5{})", (6, 4), CLASSES), ("F.multi_margin_loss(x, y{})", (4,),
                                                               ("int", 4, ())),
    ("F.multilabel_margin_loss(x, y{})", (3, 4), np.array([[2, 0, -1, 1], [-1, 0, 1, 2], [3, 1, 0, 2]])),
    ("F.multilabel_margin_loss(x, y{})", (3,), np.array([1, 1, -1])),
]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("case", LOSSES, ids=lambda c: f"{c[0]} {c[1]}")
def test_losses_equal_pytorchs(case, reduction):
    check_function(case[0].format(f", reduction='{reduction}'"), *case[1:])


def test_kl_div_with_batchmean_equals_pytorchs():
    check_function("F.kl_div(x, y, reduction='batchmean')", (3, 4), ("simplex", (3, 4)))


MODULES = [
    ("nn.MSELoss()", (3, 4), (3, 4)), ("nn.L1Loss(reduction='sum')", (3, 4), (3, 4)),
    ("nn.SmoothL1Loss(beta=0.5)", (3,), (3,)),
    ("nn.HuberLoss(delta=2.0)", (3,), (3,)), ("nn.CrossEntropyLoss()", (6, 4), CLASSES),
    ("nn.CrossEntropyLoss(ignore_index=1, label_smoothing=0.1, reduction='sum')", (6, 4), CLASSES),
    ("nn.NLLLoss()", (6, 4), CLASSES), ("nn.BCELoss()", ("unit", (3, 4)), ("unit", (3, 4))),
    ("nn.BCEWithLogitsLoss(reduction='none')", (3, 4), ("unit", (3, 4))),
    ("nn.KLDivLoss(reduction='batchmean')", (3, 4), ("simplex", (3, 4))),
    ("nn.PoissonNLLLoss(log_input=False)", (3,), (3,)),
    ("nn.GaussianNLLLoss()", (3, 4), (3, 4), ("positive", (3, 4))), ("nn.SoftMarginLoss()", (3,),
                                                                     ("sign", (3,))),
    ("nn.MarginRankingLoss(0.3)", (3,), (3,), ("sign", (3,))), ("nn.HingeEmbeddingLoss()", (3,),
                                                                ("sign", (3,))),
    ("nn.CosineEmbeddingLoss()", (5, 3), (5, 3), ("sign", (5,))), ("nn.TripletMarginLoss()", (5, 3), (5, 3),
                                                                   (5, 3)),
    ("nn.MultiLabelSoftMarginLoss()", (3, 4), ("unit", (3, 4))), ("nn.MSELoss(size_average=False)",
                                                                  (3,), (3,)),
    ("nn.MSELoss(reduce=False)", (3,), (3,)),
]


@pytest.mark.parametrize("case", MODULES, ids=lambda c: c[0])
def test_loss_modules_equal_pytorchs(case):
    call = "m(xs[0], xs[1].detach())" if "SoftMargin" in case[0] else "m(*xs)"
    check_module(case[0], *case[1:], call=call)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ctc_loss_equals_pytorchs(reduction):
    with quiet():
        (x,), (t,) = make_input_pairs([(7, 3, 5)])
        targets, steps, counts = (np.random.default_rng(0).integers(1, 5, (3, 4)), np.array([7, 6, 5]),
                                  np.array([4, 2, 1]))
        args = [flow.tensor(a) for a in (targets, steps, counts)]
        y = F.ctc_loss(F.log_softmax(x, 2), *args, reduction=reduction)
        z = torch.nn.functional.ctc_loss(torch.log_softmax(t, 2), *map(torch.tensor,
                                                                       (targets, steps, counts)),
                                         reduction=reduction)
        np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-7)
        y.sum().backward()
        z.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-7, atol=1e-9)
        flat = np.concatenate([row[:n] for row, n in zip(targets, counts)])
        same = F.ctc_loss(F.log_softmax(x, 2), flow.tensor(flat), steps.tolist(), counts.tolist(),
                          reduction=reduction)
        np.testing.assert_allclose(same.detach().numpy(), y.detach().numpy(), rtol=1e-12)
        module = flow.nn.CTCLoss(reduction=reduction)(F.log_softmax(x, 2), *args)
        np.testing.assert_allclose(module.detach().numpy(), y.detach().numpy(), rtol=1e-12)


def test_second_derivatives_with_ignored_classes():
    rng = np.random.default_rng(0)
    a, labels, v = rng.normal(size=(5, 3)), np.array([0, -100, 2, 1, -100]), rng.normal(size=(5, 3))
    x, t = flow.tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
    g, = flow.grad(F.cross_entropy(x, flow.tensor(labels)), x, create_graph=True)
    h, = torch.autograd.grad(torch.nn.functional.cross_entropy(t, torch.tensor(labels)), t, create_graph=True)
    (g * flow.tensor(v)).sum().backward()
    (h * torch.tensor(v)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), rtol=1e-8, atol=1e-10)
