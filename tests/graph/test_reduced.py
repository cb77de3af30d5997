"""k micro-batches take the step of the whole batch for any loss over the rows, or the graph raises with a
reason.
"""
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import flowedu as flow
import flowedu.nn.functional as F
from flowedu import nn
from flowedu.errors import UnsupportedError

from .making import make_graph

ROWS, CLASSES = 8, 3
RNG = np.random.default_rng(0)
X, Z = (RNG.standard_normal((ROWS, w)).astype(np.float32) for w in (4, CLASSES))
LABELS = RNG.integers(0, CLASSES, ROWS)
W = np.array([0.2, 1.0, 3.0], np.float32)


def by_hand(how):
    def loss(a, y, z, m):
        each = F.cross_entropy(a, y, reduction="none")
        return {"mean": each.mean, "sum": each.sum, "rows": lambda: each.sum() / a.shape[0],
                "weighted": lambda: (each * z[:, 0]).sum()}[how]()
    return loss


def masked(a, y, z, m):
    mask = (z > 0.5).float()
    return ((a - z) ** 2 * mask).sum() / mask.sum().clamp(min=1)


LOSSES = {f"{name}-{how}": f for how in ("mean", "sum") for name, f in {
    "cross_entropy": lambda a, y, z, m, how=how: F.cross_entropy(a, y, reduction=how),
    "weighted": lambda a, y, z, m, how=how: F.cross_entropy(a, y, weight=flow.tensor(W), reduction=how),
    "smoothed": lambda a, y, z, m, how=how: F.cross_entropy(a, y, label_smoothing=0.1, reduction=how),
    "nll": lambda a, y, z, m, how=how: F.nll_loss(F.log_softmax(a, 1), y, reduction=how),
    "mse": lambda a, y, z, m, how=how: F.mse_loss(a, z, reduction=how),
    "l1": lambda a, y, z, m, how=how: F.l1_loss(a, z, reduction=how),
    "huber": lambda a, y, z, m, how=how: F.smooth_l1_loss(a, z, reduction=how),
    "binary": lambda a, y, z, m, how=how: F.binary_cross_entropy_with_logits(a, flow.sigmoid(z),
                                                                             reduction=how),
}.items()}
LOSSES.update({f"by_hand-{how}": by_hand(how) for how in ("mean", "sum", "rows", "weighted")})
LOSSES.update({
    "times": lambda a, y, z, m: F.cross_entropy(flow.stack([a, a * 2]).reshape(-1, CLASSES),
                                                flow.stack([y, y]).flatten()),
    "other axes": lambda a, y, z, m: F.mse_loss(flow.stack([a, a * 2],
                                                           dim=1).transpose(0, 2).reshape(2 * CLASSES, -1),
                                                flow.stack([z, z],
                                                           dim=1).transpose(0, 2).reshape(2 * CLASSES, -1)),
    "kl": lambda a, y, z, m: F.kl_div(F.log_softmax(a, 1), F.softmax(z, 1), reduction="batchmean"),
    "masked": masked, "twice": lambda a, y, z, m: a.mean(1).mean(),
    "half": lambda a, y, z, m: 0.3 * (a ** 2).sum(),
    "decay": lambda a, y, z, m: F.mse_loss(a, z, reduction="sum") + 0.1 * (m.weight ** 2).sum() - 1,
    "decayed mean": lambda a, y, z, m: F.mse_loss(a, z) + 0.1 * (m.weight ** 2).sum(),
    "all": lambda a, y, z, m: 2 * F.mse_loss(a, z) + F.cross_entropy(a, y) - 0.1
    * a.abs().sum() + m.bias.sum() / 3,
    "scaled": lambda a, y, z, m: F.cross_entropy(a, y) * 128.0,
    "share": lambda a, y, z, m: F.cross_entropy(a, y) / 4,
    "number of rows": lambda a, y, z, m: a.sum() * 0.25})


def stepped(loss, labels, k):
    """Return (weights after a step, loss) of the whole batch eagerly (k=0), or of k micro-batches in a
    graph.
    """
    flow.manual_seed(0)
    model = nn.Linear(4, CLASSES)
    optimizer = flow.optim.SGD(model.parameters(), lr=0.1)
    args = flow.tensor(X), flow.tensor(labels), flow.tensor(Z)

    def build(self, x, y, z):
        value = loss(self.model(x), y, z, self.model)
        value.backward()
        return value

    if k:
        value = make_graph(build, optimizer, model=model,
                           config={"set_gradient_accumulation_steps": k})(*args)
    else:
        value = loss(model(args[0]), *args[1:], model)
        value.backward()
        optimizer.step()
    return np.concatenate([p.numpy().reshape(-1) for p in model.parameters()]), value.numpy()


def assert_micro_batches_train_equally(name, labels, k):
    want, loss = stepped(LOSSES[name], labels, 0)
    got, parts = stepped(LOSSES[name], labels, k)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)
    assert parts.shape == ((k,) if k > 1 else ())
    assert any(np.isclose(f(parts), loss, rtol=1e-4) for f in (np.mean,
                                                               np.sum)), "of the parts follows the loss"


IGNORED = st.lists(st.booleans(), min_size=ROWS, max_size=ROWS).filter(lambda some: not all(some))


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("name", LOSSES)
def test_micro_batches_take_the_step_of_the_whole_batch(name, k):
    """The second half has two labels, so that a quarter of the batch has none."""
    labels = LABELS.copy()
    labels[[1, 4, 5]] = -100
    assert_micro_batches_train_equally(name, labels, k)


@given(st.sampled_from(sorted(LOSSES)), IGNORED, st.sampled_from([1, 2, 4, 8]))
@example("cross_entropy-mean", [False] + [True] * 7, 8)
@example("kl", [False] * 8, 8)
def test_any_labels_ignored(name, ignored, k):
    assert_micro_batches_train_equally(name, np.where(ignored, -100, LABELS), k)


@pytest.mark.parametrize("loss, word", [
    (lambda a, y, z, m: flow.sqrt(F.mse_loss(a, z)), "goes through sqrt"),
    (lambda a, y, z, m: (a.mean(0) ** 2).sum(), "goes through square"),
    (lambda a, y, z, m: a.sum() / a.abs().sum(), "goes through div"),
    (lambda a, y, z, m: (a * z / z.abs().sum()).sum(), "div combines rows"),
    (lambda a, y, z, m: ((a - a.mean(0)) ** 2).mean(), "sub combines rows"),
    (lambda a, y, z, m: F.cross_entropy(a @ a.T, y.clamp(min=0)), "matmul combines rows"),
    (lambda a, y, z, m: (a[:, :1] - a[:, 0]).abs().sum(), "sub combines rows")],
    ids=["root", "of means", "ratio", "shares", "centred", "pairs", "differences"])
def test_losses_that_micro_batches_cannot_compute_are_refused(loss, word):
    with pytest.raises(UnsupportedError, match=word) as e:
        stepped(loss, LABELS, 2)
    assert "set_gradient_accumulation_steps(2)" in str(e.value) and "fix:" in str(e.value)
    stepped(loss, LABELS, 1)


@pytest.mark.parametrize("share", [1.0, 1 / 4])
def test_a_gradient_for_each_row(share):
    """backward(ones) sums over the rows; backward(ones / rows) takes their mean."""
    def after(k):
        flow.manual_seed(0)
        model = nn.Linear(4, CLASSES)
        optimizer = flow.optim.SGD(model.parameters(), lr=0.1)

        def build(self, x, y):
            each = F.cross_entropy(self.model(x), y, reduction="none")
            each.backward(flow.full(each.shape, 1.0 if share == 1.0 else 1 / each.shape[0]))
            return each

        make_graph(build, optimizer, model=model, config={"set_gradient_accumulation_steps": k})(
            flow.tensor(X), flow.tensor(LABELS))
        return model.weight.numpy()

    np.testing.assert_allclose(after(2), after(1), rtol=1e-5, atol=1e-6)
