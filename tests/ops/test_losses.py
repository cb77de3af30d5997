"""Loss functions, eagerly and in jobs, against OneFlow's own vectors, explicit NumPy, and PyTorch."""
import itertools

import numpy as np
import pytest
from array_common import gradients, run_checked_job, weighted
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from common import constant, constant_rate, f32, fresh_session, job, refused, run  # noqa: F401

nn = flow.nn
some = settings(max_examples=10)
REDUCTIONS = st.sampled_from(["none", "mean", "sum"])
NINE = np.float32([[1, 1, 1], [2, 2, 2], [7, 7, 7]])
X, T = np.float32([[1.2, 0.2, -0.3], [0.7, 0.6, -2]]), np.float32([[0, 1, 0], [1, 0, 1]])


def unit(*shape, seed=0):
    return np.random.default_rng(seed).uniform(0.05, 0.95, shape).astype(np.float32)


# --- the vectors of OneFlow's documentation
# --------------------------------------------------------------------------

@pytest.mark.parametrize("loss, arrays, want", [
    (nn.L1Loss, (NINE, NINE * 0 + 4), [2.6666667]),
    (lambda a, b: nn.L1Loss(a, b, reduction="sum"), (NINE, NINE * 0 + 4), [24.0]),
    (nn.MSELoss, (NINE, NINE * 0 + 4), [7.3333335]),
    (lambda a, b: nn.MSELoss(a, b, "sum"), (NINE, NINE * 0 + 4), [66.0]),
    (lambda a, b, c: nn.BCELoss(flow.math.sigmoid(a), b, c), (X, T, T * 0 + 2), [2.0611262]),
    (nn.BCEWithLogitsLoss, (X, T, T * 0 + 2, np.float32([1.2, 1.3, 1.4])), [2.4314096]),
    (lambda a, b, c: nn.MarginRankingLoss(a, b, c, margin=1.0),
     (np.arange(1, 10, dtype=np.float32).reshape(3, 3), NINE * 0 + 2, NINE * 0 + 3), [0.5555556]),
    (nn.TripletMarginLoss, (np.arange(1, 10, dtype=np.float32).reshape(3, 3), NINE * 0 + 2, NINE * 0 + 3),
     [1.8449262]),
    (lambda a, b: nn.KLDivLoss(a, b, log_target=False, reduction="none"),
     (np.float32([[0.1, 0.2, 0.7], [0.8, 0.9, 0.5], [0.5, 0.15, 0.35]]),
      np.float32([[0.3, 0.1, 0.6], [-0.3, 0.4, 0.4], [0.35, 0.25, 0.4]])),
     [[-0.39119187, -0.25025854, -0.7264954], [0, -0.72651625, -0.56651634],
      [-0.54243773, -0.3840736, -0.5065163]]),
    (flow.smooth_l1_loss, (np.float32([0.1, 0.4, 0.3, 0.5, 0.9]), np.float32([0.3, 0.9, 2.5, 0.4, 0.3])),
     [0.02, 0.12499999, 1.7, 0.005, 0.17999998])])
def test_losses_have_the_values_of_oneflow(loss, arrays, want):
    got = run_checked_job(loss, *arrays)
    assert got.dtype == np.float32 and got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


def test_sparse_cross_entropy():
    p, labels = np.float32([[0.2, 0.5, 0.3], [0.9, 0.1, 0.0]]), np.array([1, 0], np.int32)
    want = -np.log(np.float32([0.5, 0.9]))
    np.testing.assert_allclose(run_checked_job(nn.sparse_cross_entropy, labels, p), want, rtol=1e-6)
    np.testing.assert_allclose(run_checked_job(nn.sparse_cross_entropy, labels[:, None], p), want, rtol=1e-6)
    # -log(1e-20), not infinity
    assert 46 < run_checked_job(nn.sparse_cross_entropy, np.array([1, 2]), p)[1] < 47
    weights, (g,) = gradients(lambda x, i: nn.sparse_cross_entropy(i, x), p, labels)
    np.testing.assert_allclose(g, -np.eye(3)[labels] * (weights / [0.5, 0.9])[:, None], rtol=1e-5)
    with refused(TypeError, "order of the arguments"):
        nn.sparse_cross_entropy(flow.tensor(p), flow.tensor(labels))
    with refused(AssertionError, "(2,)"):
        nn.sparse_cross_entropy(flow.tensor(labels[:1]), flow.tensor(p))
    with refused(RuntimeError, "out of range: 3"):
        nn.sparse_cross_entropy(flow.tensor(labels + 2), flow.tensor(p))


def test_the_distributed_loss_equals_the_local_one():
    logits, labels = f32(4, 5), np.array([1, 0, 4, 2])
    np.testing.assert_array_equal(
        run_checked_job(nn.distributed_sparse_softmax_cross_entropy_with_logits, labels, logits),
        run_checked_job(nn.sparse_softmax_cross_entropy_with_logits, labels, logits))


# --- against PyTorch, gradients included
# -----------------------------------------------------------------------------

def assert_same_as_torch(f, g, *arrays, learn=None, rtol=2e-5):
    """Assert that f (flowedu) and g (PyTorch) have the same values, and the same gradients for the arrays
    numbered in `learn`.
    """
    torch = pytest.importorskip("torch")
    learn = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"] if learn is None else learn
    ts = [torch.tensor(a, requires_grad=i in learn) for i, a in enumerate(arrays)]
    y = g(*ts)
    got = run_checked_job(f, *arrays)
    np.testing.assert_allclose(got, y.detach().numpy().reshape(got.shape), rtol=rtol, atol=1e-6)
    weights, found = gradients(f, *arrays, learn=learn)
    weighted(torch.tensor(weights.reshape(y.shape)), y).backward()
    for i, mine in zip(learn, found, strict=True):
        np.testing.assert_allclose(mine, ts[i].grad.numpy(), rtol=1e-4, atol=2e-6)


A = f32(4, 3)
B = f32(4, 3, seed=1)
C = f32(4, 3, seed=2)
WEIGHT = unit(4, 3, seed=3)
ZEROS_AND_ONES = (f32(4, 3, seed=4) > 0).astype(np.float32)


@pytest.mark.peer
@pytest.mark.filterwarnings("ignore:reduction")
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_losses_agree_with_pytorch(reduction):
    F = pytest.importorskip("torch.nn.functional")
    r = dict(reduction=reduction)
    assert_same_as_torch(lambda a, b: nn.L1Loss(a, b, **r), lambda a, b: F.l1_loss(a, b, **r), A, B)
    assert_same_as_torch(lambda a, b: nn.MSELoss(a, b, **r), lambda a, b: F.mse_loss(a, b, **r), A, B)
    assert_same_as_torch(lambda p, t, w: nn.BCELoss(p, t, w, **r),
                         lambda p, t, w: F.binary_cross_entropy(p, t, w, **r), unit(4, 3), ZEROS_AND_ONES,
                         WEIGHT, learn=[0])
    assert_same_as_torch(lambda p, t: nn.BCELoss(p, t, **r), lambda p, t: F.binary_cross_entropy(p, t, **r),
                         unit(4, 3), WEIGHT, learn=[0])
    assert_same_as_torch(lambda x, t, w, v: nn.BCEWithLogitsLoss(x, t, w, v, **r),
                         lambda x, t, w, v: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=v, **r),
                         A * 40, WEIGHT, unit(4, 3), unit(3), learn=[0])
    assert_same_as_torch(lambda x, t: nn.BCEWithLogitsLoss(x, t, **r),
                         lambda x, t: F.binary_cross_entropy_with_logits(x, t, **r), A * 40, ZEROS_AND_ONES)
    for log_target in (False, True):
        assert_same_as_torch(lambda x, t, log=log_target: nn.KLDivLoss(x, t, log, **r),
                             lambda x, t, log=log_target: F.kl_div(x, t, log_target=log, **r), A, WEIGHT)
    assert_same_as_torch(lambda a, b, t: nn.MarginRankingLoss(a, b, t, 0.3, **r),
                         lambda a, b, t: F.margin_ranking_loss(a, b, t, margin=0.3, **r), A, B,
                         ZEROS_AND_ONES * 2 - 1,
                         learn=[0, 1])


@pytest.mark.peer
@pytest.mark.parametrize("p, swap", [*itertools.product([1.0, 2.0, 3.0], [False, True])])
def test_triplet_loss_agrees_with_pytorch(p, swap):
    F = pytest.importorskip("torch.nn.functional")
    r = dict(reduction="none", p=p, swap=swap, margin=0.7)
    assert_same_as_torch(lambda a, b, c: nn.TripletMarginLoss(a, b, c, **r),
                         lambda a, b, c: F.triplet_margin_loss(a, b, c, **r), A, B, C)


@pytest.mark.peer
@pytest.mark.parametrize("beta", [0, 0.5, 1.0, 3.0])
def test_smooth_l1_agrees_with_pytorch(beta):
    F = pytest.importorskip("torch.nn.functional")
    assert_same_as_torch(lambda a, b: flow.smooth_l1_loss(a, b, beta),
                         lambda a, b: F.smooth_l1_loss(a, b, reduction="none", beta=beta), A, B)


# --- losses without a PyTorch counterpart
# ----------------------------------------------------------------------------

def test_edge_cases_of_losses():
    p, t = np.float32([[0, 1, 0, 1]]), np.float32([[0, 1, 1, 0]])
    np.testing.assert_array_equal(run_checked_job(lambda a, b: nn.BCELoss(a, b, reduction="none"), p, t),
                                  [[0, 0, np.inf, np.inf]])
    x = np.float32([[1e4, -1e4, 1e4, -1e4]])
    np.testing.assert_array_equal(run_checked_job(lambda a, b: nn.BCEWithLogitsLoss(a, b, reduction="none"),
                                                  x, t), [[1e4, 1e4, 0, 0]])

    def near(p):
        return lambda a, b, c: nn.TripletMarginLoss(a, b, c, p=p, reduction="none")

    want = np.maximum(np.abs(A - B + 1e-6).max(1) - np.abs(A - C + 1e-6).max(1) + 1, 0)
    np.testing.assert_allclose(run_checked_job(near(float("inf")), A, B, C), want, rtol=1e-5)
    # OneFlow 0.4 rounds: nan for targets below -1.5
    for target in (-1.7, -0.3, 0.0):
        _, (g, _) = gradients(nn.KLDivLoss, A, A * 0 + np.float32(target))
        assert not run_checked_job(nn.KLDivLoss, A, A * 0 + np.float32(target)) and not g.any()


def margins(x, labels, m1, m2, m3):
    y = x.astype(np.float64)
    rows = np.arange(len(x))
    y[rows, labels] = np.cos(m1 * np.arccos(y[rows, labels]) + m2) - m3
    return y


@pytest.mark.parametrize("m", [(1, 0.5, 0), (1, 0, 0.35), (2, 0, 0), (0.9, 0.4, 0.15), (1, 0, 0)])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_combined_margin_loss(m, dtype):
    x, labels = (unit(5, 4) * 2 - 1).astype(np.float32), np.array([0, 3, 1, 1, 2], dtype)

    def f(a, i):
        return flow.combined_margin_loss(a, i, *m)

    np.testing.assert_allclose(run_checked_job(f, x, labels), margins(x, labels, *m), rtol=1e-5, atol=1e-6)
    weights, (g,) = gradients(f, x, labels)
    h = 1e-6
    slope = (margins(x.astype(np.float64) + h, labels, *m) - margins(x.astype(np.float64) - h, labels,
                                                                     *m)) / (2 * h)
    np.testing.assert_allclose(g, slope * weights, rtol=1e-3, atol=1e-5)
    top = run_checked_job(f, np.float32([[1, 1, -1, -1]]), np.array([1]))
    assert np.isfinite(top).all()
    with refused(RuntimeError, "out of range: 4"):
        f(flow.tensor(x), flow.tensor(labels + 1))


# --- CTC
# ------------------------------------------------------------------------------------------------------------

LOG_PROBS = np.float32([
    [[-1.1031, -0.7998, -1.5200], [-0.9808, -1.1363, -1.1908]], [[-1.2258, -1.0665, -1.0153],
                                                                 [-1.1135, -1.2331, -0.9671]],
    [[-1.3348, -0.6611, -1.5118], [-0.9823, -1.2355, -1.0941]], [[-1.3850, -1.3273, -0.7247],
                                                                 [-0.8235, -1.4783, -1.0994]],
    [[-0.9049, -0.8867, -1.6962], [-1.4938, -1.3630, -0.6547]]])
LABELS, FIVE, THREE = np.int32([[1, 2, 2], [1, 2, 2]]), np.int32([5, 5]), np.int32([3, 3])


def test_ctc_vector_of_oneflow():
    got = run_checked_job(lambda *a: flow.ctc_loss(*a, blank=0, reduction="none"), LOG_PROBS, LABELS, FIVE,
                          THREE)
    np.testing.assert_allclose(got, [3.918017, 2.907672], rtol=1e-6)
    got = run_checked_job(flow.ctc_loss, LOG_PROBS, LABELS, FIVE, THREE)
    np.testing.assert_allclose(got, [(3.918017 + 2.907672) / 6], rtol=1e-6)


def paths(log_probs, labels, blank):
    """Compute the loss by its definition: sum over all paths that become the labels after dropping repeats,
    then blanks.
    """
    total = -np.inf
    for path in itertools.product(range(log_probs.shape[1]), repeat=len(log_probs)):
        kept = [k for k, _ in itertools.groupby(path) if k != blank]
        if kept == list(labels):
            total = np.logaddexp(total, sum(log_probs[t, k] for t, k in enumerate(path)))
    return -total


@some
@given(st.data())
def test_ctc_is_the_sum_over_all_alignments(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    steps = rng.integers(1, 6)
    batch = 3
    longest = rng.integers(1, 4)
    blank = int(rng.integers(0, 3))
    x = rng.standard_normal((steps, batch, 3)).astype(np.float32)
    targets = rng.choice([k for k in range(3) if k != blank],
                         (batch, longest)).astype(data.draw(st.sampled_from([
                             np.int32, np.int64])))
    lengths, counts = rng.integers(0, steps + 1, batch), rng.integers(0, longest + 1, batch)
    want = np.array([paths(x[:n, i].astype(np.float64), targets[i, :c], blank)
                     for i, (n, c) in enumerate(zip(lengths, counts))])
    got = run_checked_job(lambda *a: flow.ctc_loss(*a, blank=blank, reduction="none"), x, targets, lengths,
                          counts)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    got = run_checked_job(lambda *a: flow.ctc_loss(*a, blank=blank, reduction="sum", zero_infinity=True), x,
                          targets, lengths, counts)
    np.testing.assert_allclose(got, [want[np.isfinite(want)].sum()], rtol=1e-5, atol=1e-5)


@pytest.mark.peer
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ctc_agrees_with_pytorch(reduction, dtype):
    F = pytest.importorskip("torch.nn.functional")
    rng = np.random.default_rng(3)
    x = rng.standard_normal((30, 4, 8)).astype(dtype)
    targets = rng.integers(1, 8, (4, 9)).astype(np.int32)
    targets[:, 1] = targets[:, 0]                                  # repeats need a blank between them
    lengths, counts = np.int32([30, 25, 12, 20]), np.int32([9, 5, 0, 7])
    assert_same_as_torch(lambda x, t, n, c: flow.ctc_loss(nn.logsoftmax(x), t, n, c, reduction=reduction),
                         lambda x, t, n, c: F.ctc_loss(x.log_softmax(2), t.long(), n.long(), c.long(),
                                                       reduction=reduction),
                         x, targets, lengths, counts)


def test_ctc_without_an_alignment():
    x = f32(2, 3, 4)
    args = np.int32([[1, 1], [1, 2], [3, 1]]), np.int32([2, 2, 0]), np.int32([2, 2, 1])

    def f(zero):
        return lambda *a: flow.ctc_loss(*a, reduction="none", zero_infinity=zero)

    assert np.isinf(run_checked_job(f(False), x, *args)).tolist() == [True, False, True]
    assert (run_checked_job(f(True), x, *args) == 0).tolist() == [True, False, True]
    for zero in (False, True):
        _, (g,) = gradients(f(zero), x, *args)
        assert np.isfinite(g).all() and not g[:, [0, 2]].any() and g[:, 1].any()


def test_ctc_of_no_labels_is_all_blanks():
    x = f32(4, 2, 3)
    args = np.zeros((2, 0), np.int32), np.int32([4, 0]), np.int32([0, 0])
    ts = [flow.tensor(a) for a in (x, *args)]
    np.testing.assert_allclose(flow.ctc_loss(*ts, reduction="none").numpy(), [-x[:, 0, 0].sum(), 0],
                               rtol=1e-6)


def test_ctc_ignores_elements_beyond_the_lengths():
    labels, fewer = LABELS.copy(), np.int32([2, 1])
    want = flow.ctc_loss(*map(flow.tensor, (LOG_PROBS, labels, FIVE, fewer))).numpy()
    labels[0, 2], labels[1, 1:] = -1, 99
    np.testing.assert_array_equal(run_checked_job(flow.ctc_loss, LOG_PROBS, labels, FIVE, fewer), want)


def test_ctc_training_converges():
    rng = np.random.default_rng(0)
    labels, steps, counts = np.int32([[1, 2, 3, 1]]), np.int32([12]), np.int32([4])

    def body(t, n, c):
        w = flow.get_variable("w", (12, 1, 5), flow.float32, constant(rng.standard_normal((12, 1, 5))))
        loss = flow.ctc_loss(nn.logsoftmax(w), t, n, c)
        flow.optimizer.SGD(constant_rate(5.0), momentum=0).minimize(loss)
        return loss

    f = job(body, labels, steps, counts, type="train")
    losses = [f(labels, steps, counts).item() for _ in range(60)]
    assert losses[-1] < np.log(2), "the labels have more than half of the probability"
    best = flow.get_all_variables()["w"].numpy()[:, 0].argmax(1)
    assert [int(k) for k, _ in itertools.groupby(best) if k] == [1, 2, 3, 1]


@pytest.mark.parametrize("change, word", [
    (dict(targets=np.int32([[1, 2, 3], [1, 2, 2]])), "3"), (dict(targets=np.int32([[1, 0, 2], [1, 2, 2]])),
                                                            "0"),
    (dict(input_lengths=np.int32([5, 6])), "6"), (dict(input_lengths=np.int32([5, -1])), "-1"),
    (dict(target_lengths=np.int32([4, 3])), "4")])
def test_ctc_refuses_invalid_values(change, word):
    args = dict(log_probs=LOG_PROBS, targets=LABELS, input_lengths=FIVE, target_lengths=THREE) | change
    with refused(RuntimeError, f"out of range: {word}", "input_length <= time"):
        flow.ctc_loss(**{k: flow.tensor(v) for k, v in args.items()})


def test_ctc_refuses_invalid_shapes_and_dtypes():
    x, t, n, c = map(flow.tensor, (LOG_PROBS, LABELS, FIVE, THREE))
    with refused(ValueError, "(time, batch, classes)"):
        flow.ctc_loss(flow.transpose(x, [1, 0, 2]), t, n, c)
    with refused(TypeError, "targets"):
        flow.ctc_loss(x, t.float(), n, c)
    with refused(ValueError, "blank"):
        flow.ctc_loss(x, t, n, c, blank=3)
    with refused(AssertionError, "reduction"):
        flow.ctc_loss(x, t, n, c, reduction="avg")


# --- refusals
# --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("loss, count", [(nn.L1Loss, 2), (nn.MSELoss, 2), (nn.BCELoss, 2),
                                         (nn.BCEWithLogitsLoss, 2),
                                         (nn.KLDivLoss, 2), (nn.MarginRankingLoss, 3),
                                         (nn.TripletMarginLoss, 3)])
def test_losses_refuse_invalid_arguments(loss, count):
    name, others = loss.__name__, [flow.tensor(A)] * (count - 1)
    with refused(AssertionError, name, "reduction"):
        loss(flow.tensor(A), *others, reduction="average")
    with refused(AssertionError, name, "(2, 3)"):
        loss(flow.tensor(A[:2]), *others)
    with refused(TypeError, name, "float64"):
        loss(flow.tensor(A.astype(np.float64)), *others)


def test_invalid_weights_and_shapes_are_refused():
    t = flow.tensor(A)
    with refused(AssertionError, "pos_weight"):
        nn.BCEWithLogitsLoss(t, t, pos_weight=t)
    with refused(AssertionError, "weight"):
        nn.BCELoss(t, t, flow.tensor(A[:2]))
    with refused(ValueError, "p > 0"):
        nn.TripletMarginLoss(t, t, t, p=0)
    with refused(ValueError, "axis 1"):
        nn.TripletMarginLoss(*[flow.tensor(A[0])] * 3)
    with refused(ValueError, "beta"):
        flow.smooth_l1_loss(t, t, beta=-1)
    with refused(ValueError, "(n, classes)"):
        flow.combined_margin_loss(flow.tensor(A[0]), flow.tensor(np.int32(0)))


# --- the gradient of lgamma
# ------------------------------------------------------------------------------------------

@pytest.mark.peer
def test_lgamma_has_derivatives_of_every_order():
    torch = pytest.importorskip("torch")
    x = np.linspace(-3.3, 40, 60)
    t, v = torch.tensor(x, requires_grad=True), flow.tensor(x, requires_grad=True)
    theirs, mine = torch.lgamma(t), flow.math.lgamma(v)
    for _ in range(3):
        np.testing.assert_allclose(mine.numpy(), theirs.detach().numpy(), rtol=1e-8, atol=1e-12)
        (mine,) = flow.grad(mine.sum(), [v], create_graph=True)
        (theirs,) = torch.autograd.grad(theirs.sum(), [t], create_graph=True)
