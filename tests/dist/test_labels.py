"""Law: classification losses accept labels of every integer dtype, for every input layout, with the result of
int64 labels.
"""
import numpy as np
import pytest

import flowedu as flow

F = flow.nn.functional
B, P, split = flow.sbp.broadcast, flow.sbp.partial_sum, flow.sbp.split
TYPES = [d for d in flow.core.values.dtype.dtypes() if d.numpy is not None and d.numpy.kind in "iu"
         and d.code >= 0]
WEIGHT = flow.tensor([0.5, 2.0, 1.0, 3.0, 1.0, 0.25])
LOSSES = {
    "cross_entropy": lambda x, y, w: F.cross_entropy(x, y),
    "weighted": lambda x, y, w: F.cross_entropy(x, y, w),
    "smoothed": lambda x, y, w: F.cross_entropy(x, y, w, label_smoothing=0.2, ignore_index=2),
    "nll": lambda x, y, w: F.nll_loss(x, y),
    "weighted nll": lambda x, y, w: F.nll_loss(x, y, w, ignore_index=5),
    "sparse": lambda x, y, w: F.sparse_softmax_cross_entropy(y, x).sum(),
    "module": lambda x, y, w: flow.nn.CrossEntropyLoss(weight=w, reduction="sum")(x, y)}
LAYOUTS = [(split(0), split(0)), (split(1), B), (B, B), (P, B), (B, split(0))]


@pytest.fixture(autouse=True)
def three(world):
    world(3)


def lost(name, kind, layout=None):
    """Return (the loss, the gradient of its input)."""
    flow.manual_seed(0)
    x, y, w = flow.randn(4, 6), flow.tensor(np.array([0, 1, 5, 2])).to(kind), WEIGHT
    if layout is not None:
        row = flow.placement("cpu", [0, 1, 2])
        x, y, w = (flow.tensor(t.numpy(), placement=row, sbp=s) for t, s in zip((x, y, w), (*layout, B)))
    x.requires_grad = True
    loss = LOSSES[name](x, y, w)
    loss.backward()
    return loss.numpy(), x.grad.numpy()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", TYPES, ids=lambda d: d.name)
def test_labels_of_any_integer_dtype(name, kind):
    want = lost(name, flow.int64)
    for layout in None, *LAYOUTS:
        for got, right in zip(lost(name, kind, layout), want):
            np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-6, err_msg=str(layout))


def test_every_integer_dtype_is_tested():
    assert {d.name for d in TYPES} >= {"int8", "uint8", "int32", "int64"}
