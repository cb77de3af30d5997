"""Law: the mean of a loss over several devices equals that of one device, with uneven shards, ignored labels,
and class weights.
"""
import numpy as np
import pytest

import flowedu as flow
from flowedu.nn import functional as F

LOSSES = {
    "cross entropy": lambda x, t, w: F.cross_entropy(x, t),
    "ignored labels": lambda x, t, w: F.cross_entropy(x, t, ignore_index=2),
    "weights": lambda x, t, w: F.cross_entropy(x, t, weight=w),
    "weights and ignored labels": lambda x, t, w: F.cross_entropy(x, t, weight=w, ignore_index=2),
    "smoothed labels": lambda x, t, w: F.cross_entropy(x, t, label_smoothing=0.1),
    "nll": lambda x, t, w: F.nll_loss(x, t, weight=w, ignore_index=1),
    "mse": lambda x, t, w: F.mse_loss(x, x * 0 + 1), "l1": lambda x, t, w: F.l1_loss(x, x * 0 + 1),
    "smooth l1": lambda x, t, w: F.smooth_l1_loss(x, x * 0 + 1), "mean": lambda x, t, w: x.mean(),
    "mean of rows": lambda x, t, w: (x.mean(0) * w).sum(), "variance": lambda x, t, w: x.var(),
    "bce": lambda x, t, w: F.binary_cross_entropy_with_logits(x, x.sigmoid().detach(), weight=w),
    "kl": lambda x, t, w: F.kl_div(x.log_softmax(-1), x.softmax(-1).detach() * 0.5, reduction="batchmean")}
ROWS = (3, 4, 5)


def draw_batch(n):
    rng = np.random.default_rng(n)
    labels = rng.integers(0, 4, n)
    labels[0] = 2
    return rng.standard_normal((n, 4)).astype(np.float32), labels, np.array([0.1, 0.5, 2, 1], np.float32)


def one_device(name, n):
    x, t, w = map(flow.tensor, draw_batch(n))
    x.requires_grad = True
    loss = LOSSES[name](x, t, w)
    loss.backward()
    return loss.item(), x.grad.numpy()


def two_devices(name):
    placement = flow.placement("cpu", [0, 1])
    found = []
    for n in ROWS:
        x, t, w = (flow.tensor(a).to_global(placement, flow.sbp.broadcast) for a in draw_batch(n))
        x, t = (a.to_global(placement, flow.sbp.split(0)).detach() for a in (x, t))
        x.requires_grad = True
        loss = LOSSES[name](x, t, w)
        loss.backward()
        found.append([a.to_global(placement, flow.sbp.broadcast).to_local().numpy() for a in (loss, x.grad)])
    return found


@pytest.mark.parametrize("name", LOSSES)
def test_a_mean_over_devices_equals_the_mean_of_all_rows(name):
    """The sums have at most 20 float32 terms, each rounded to 6e-8 of itself; exp and log add a few units
    more.
    """
    for rank in flow.distributed.spawn(two_devices, 2, (name,)):
        for n, (loss, grad) in zip(ROWS, rank, strict=True):
            want, want_grad = one_device(name, n)
            np.testing.assert_allclose(loss, want, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(grad, want_grad, rtol=1e-5, atol=1e-6)
