"""Every layer and loss inside autocast, with inputs of either dtype: forward and backward."""
import warnings

import numpy as np
import pytest

import flowedu as flow
from amp.test_every_layer import CASES, EPSILON, collect_tensors
from amp.test_every_op import every_pair
from flowedu import nn  # noqa: F401  (the cases name it)
from nn.cases import array


def layer(text: str, specs):
    flow.manual_seed(0)
    module = eval(text)
    with flow.no_grad():
        for p in module.parameters():
            p.copy_(flow.tensor(np.random.default_rng(p.numel()).normal(0, 0.4, tuple(p.shape)).astype("f4")))
    arrays = [array(s, i) for i, s in enumerate(specs)]
    return module, [flow.tensor(a.astype("f4") if a.dtype.kind == "f" else a) for a in arrays]


def narrow(x, half):
    return x.to(half) if x.dtype is flow.float32 else x


def answers(module, xs) -> tuple[list, list]:
    """Return (results, gradients of their sum for all floating inputs and parameters)."""
    leaves = [x.clone().requires_grad_() if x.dtype.is_floating_point else x for x in xs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ys = collect_tensors(module(*leaves))
    total = [y.float().sum() for y in ys if y.requires_grad]
    if total:
        sum(total[1:], total[0]).backward()
    return ys, [x.grad for x in [*leaves, *module.parameters()] if x.dtype.is_floating_point]


def assert_near_in_16_bits(got, want, half, roundings=64) -> None:
    for g, w in zip(got, want, strict=True):
        assert (g is None) == (w is None)
        if w is None or not w.dtype.is_floating_point:                      # maxima may be at other indices
            continue
        a, b = (t.detach().float().numpy() for t in (g, w))
        assert a.shape == b.shape
        finite = np.isfinite(b)
        np.testing.assert_array_equal(np.isfinite(a), finite)
        room = roundings * EPSILON[half] * max(1.0, float(np.abs(b[finite]).max(initial=0)))
        np.testing.assert_allclose(a[finite], b[finite], rtol=0, atol=room)


@pytest.mark.parametrize(("case", "half"), every_pair(CASES))
def test_layers_in_autocast_are_near_float32(case, half):
    text, *specs = case
    module, xs = layer(text, specs)
    rounded = [narrow(x, half) for x in xs]
    want, gradients = answers(module, [x.float() if x.dtype is half else x for x in rounded])

    for inputs in (xs, rounded):  # inputs of either dtype, as a previous layer may return
        module, _ = layer(text, specs)
        with flow.amp.autocast("cpu", dtype=half):
            got, found = answers(module, inputs)
        assert all(y.dtype in (half, flow.float32) for y in got if y.dtype.is_floating_point)
        assert all(p.grad is None or p.grad.dtype is flow.float32 for p in module.parameters())
        assert_near_in_16_bits(got, want, half)
        assert_near_in_16_bits(found, gradients, half, 256)
