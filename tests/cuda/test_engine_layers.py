"""Every layer of nn has the same outputs, gradients, and running statistics on cuda and on the CPU."""
import copy

import numpy as np
import pytest

import flowedu as flow
from common import flatten
from flowedu import nn  # noqa: F401  (used by the cases)
from flowedu.core.values.dtype import FLOATS
from nn.cases import LAYERS, RECURRENT, array


def make_inputs(specs, place):
    found = []
    for k, s in enumerate(specs):
        a = array(s, k)
        t = flow.tensor(a.astype(np.float32) if a.dtype == np.float64 else a, device=place)
        found.append(t.requires_grad_() if t.is_floating_point() else t)
    return found


def assert_close_tensors(a, b, what):
    np.testing.assert_allclose(a.detach().cpu().numpy(), b.detach().numpy(), rtol=5e-4, atol=5e-4,
                               err_msg=what)


@pytest.mark.parametrize("case", LAYERS + RECURRENT, ids=lambda c: f"{c[0]} {c[1]}")
def test_a_layer_on_cuda_matches_the_cpu(case):
    text, *specs = case
    flow.manual_seed(1)
    here = eval(text, {"nn": flow.nn, "flow": flow, "np": np})
    there = copy.deepcopy(here).cuda()
    outs = []
    for layer, place in ((here, "cpu"), (there, "cuda")):
        flow.manual_seed(2)
        xs = make_inputs(specs, place)
        ys = flatten(layer(*xs))
        total = flow.tensor(0.0, device=place)
        total = sum([(y * y).sum() for y in ys if y.requires_grad], start=total)
        if total.requires_grad:
            total.backward()
        outs.append((xs, ys))
    (xs, ys), (us, vs) = outs
    for y, v in zip(ys, vs, strict=True):
        assert v.is_cuda == isinstance(y, flow.Tensor)
        assert_close_tensors(v, y, "output")
    for x, u in zip(xs, us, strict=True):
        assert (x.grad is None) == (u.grad is None)
        if x.grad is not None:
            assert u.grad.is_cuda
            assert_close_tensors(u.grad, x.grad, "gradient of an input")
    for (name, p), q in zip(here.named_parameters(), there.parameters()):
        assert q.is_cuda and (p.grad is None) == (q.grad is None)
        if p.grad is not None:
            assert_close_tensors(q.grad, p.grad, f"gradient of {name}")
    for (name, a), b in zip(here.named_buffers(), there.buffers()):
        assert b.is_cuda and (a.dtype not in FLOATS or assert_close_tensors(b, a, name) is None)
