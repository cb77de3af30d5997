"""Law: a reduction of float16 or bfloat16 is computed in a wider dtype and rounded once, without overflow."""
import numpy as np
import pytest

import flowedu as flow

F, HALVES = flow.nn.functional, (flow.float16, flow.bfloat16)
# name: (function, reference on float64). Results fit the half dtype; intermediate sums and squares do not.
REDUCTIONS = {
    "mean": (lambda x: x.mean(), np.mean), "mean of rows": (lambda x: x.mean(0), lambda a: a.mean(0)),
    "mean, dtype": (lambda x: x.float().mean(dtype=x.dtype), np.mean),
    "nanmean": (lambda x: flow.nanmean(x), np.mean),
    "var": (lambda x: flow.var(x / 16), lambda a: (a / 16).var(ddof=1)),
    "var of rows": (lambda x: flow.var(x / 16, 0), lambda a: (a / 16).var(0, ddof=1)),
    "std": (lambda x: x.std(), lambda a: a.std(ddof=1)), "std, method": (lambda x: x.std(1),
                                                                         lambda a: a.std(1, ddof=1)),
    "std_mean": (lambda x: flow.std_mean(x)[1], np.mean), "var_mean": (lambda x: flow.var_mean(x)[1],
                                                                       np.mean),
    "logsumexp": (lambda x: flow.logsumexp(x, (0, 1)), lambda a: a.max() + np.log(np.exp(a - a.max()).sum())),
    "norm": (lambda x: x.norm(), lambda a: np.sqrt((a * a).sum())),
    "norm 3": (lambda x: x.norm(3), lambda a: (abs(a) ** 3).sum() ** (1 / 3)),
    "linalg.norm": (lambda x: flow.linalg.norm(x, dim=1), lambda a: np.sqrt((a * a).sum(1))),
    "matrix_norm": (lambda x: flow.linalg.norm(x), lambda a: np.sqrt((a * a).sum())),
    "softmax": (lambda x: flow.softmax(x / 300, 1),
                lambda a: np.exp(a / 300) / np.exp(a / 300).sum(1, keepdims=True)),
    "avg_pool": (lambda x: F.avg_pool1d(x.reshape(1, 1, -1), 4000),
                 lambda a: a.reshape(1, 1, -1, 4000).mean(-1)),
}


@pytest.mark.parametrize("dtype", HALVES, ids=repr)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_no_step_of_a_reduction_overflows(name, dtype):
    f, meaning = REDUCTIONS[name]
    x = flow.tensor(200 + 100 * np.random.default_rng(3).random((40, 200)), dtype=dtype)
    y = f(x)
    assert y.dtype is dtype
    want = meaning(x.double().numpy())
    np.testing.assert_allclose(y.double().numpy(), want, rtol=3e-3 if dtype is flow.float16 else 3e-2)


@pytest.mark.parametrize("dtype", HALVES, ids=repr)
def test_a_constant_has_its_mean_and_no_variance(dtype):
    x = flow.full((1000,), 100.0).to(dtype)
    # The mean is computed in float32, with a few roundings in the sums and in the factor 1 / 1000.
    error = 100 * 4 * float(np.finfo(np.float32).eps)
    assert float(x.mean()) == 100 and float(x.var()) < error ** 2 and float(x.std()) < error


@pytest.mark.parametrize("dtype", HALVES, ids=repr)
def test_gradients_come_back_in_the_half_type(dtype):
    x = flow.tensor([3.0, 4.0], dtype=dtype, requires_grad=True)
    for f, want in ((lambda t: t.mean(), [0.5, 0.5]), (lambda t: t.norm(), [0.6, 0.8]),
                    (lambda t: t.var(), [-1, 1])):
        x.grad = None
        f(x).backward()
        assert x.grad.dtype is dtype
        np.testing.assert_allclose(x.grad.float().numpy(), want, rtol=1e-2)
