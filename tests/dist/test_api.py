"""Law: every function and method of the tensor API that supports local tensors supports global ones, values
and gradients.

The cases are those of tests/tensor/cases.py, which tests/tensor compares with PyTorch.
"""
import zlib

import numpy as np
import pytest

import flowedu as flow
from common import few, flatten
from flowedu.tensor import Tensor
from tensor.cases import ADVANCED, EVERY, INDEX
from tensor.inputs import INPUTS, split

GRID = [[0, 1], [2, 3]]


@pytest.fixture(autouse=True)
def four(world):
    world(4)


def lies(shape, which: int):
    """Return (placement, sbp) for a tensor of this shape: a row split on the first axis that is long enough,
    a grid, or whole.
    """
    axis = next((i for i, n in enumerate(shape) if n >= 2), None)
    whole, cut = flow.sbp.broadcast, flow.sbp.broadcast if axis is None else flow.sbp.split(axis)
    if which == 0:
        return flow.placement("cpu", [0, 1]), [cut]
    if which == 1:
        return flow.placement("cpu", GRID), [whole, cut]
    return flow.placement("cpu", [1, 2]), [flow.sbp.partial_sum if axis is not None else whole]


def make_inputs(text, which):
    """Return {name: tensor} for the variables in the text; which: None for local ones."""
    made = {}
    for name, a in INPUTS.items():
        if name not in names_in(text):
            continue
        t = flow.tensor(np.asarray(a)) if not isinstance(a, Tensor) else a
        if which is not None:
            if t.dtype.is_floating_point or which < 2:
                placement, sbp = lies(tuple(t.shape), which)
            else:
                placement, sbp = flow.placement("cpu", [1, 2]), [flow.sbp.broadcast]
            t = flow.tensor(t.numpy(), placement=placement, sbp=sbp)
        t.requires_grad = t.dtype.is_floating_point
        made[name] = t
    return made


def evaluate_line(text, values):
    return eval(text, {"m": flow, "pad": flow.pad, **values})


def names_in(text):
    import ast
    return {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}


def weighted(outs):
    total = None
    for i, y in enumerate(y for y in outs if isinstance(y, Tensor) and y.requires_grad):
        n = np.random.default_rng(i).uniform(-1, 1, tuple(y.shape))
        where = {"placement": y.placement, "sbp": [flow.sbp.broadcast] * len(y.sbp)} if y.is_global else {}
        part = (y * flow.tensor(n, dtype=y.dtype, **where)).sum()
        total = part if total is None else total + part
    return total


CASES = [(case, which) for case in EVERY + INDEX + ADVANCED for which in range(3)]


@pytest.mark.parametrize("case, which", few(CASES, lambda row: row[1] == zlib.crc32(row[0].encode()) % 3))
def test_global_equals_local(case, which):
    text, flags = split(case)
    if "m.tensor(" in text or which == 2 and text == "m.signbit(n1)":
        return                                            # one of them is local; -0.0 plus 0.0 is 0.0
    local, spread = make_inputs(text, None), make_inputs(text, which)
    want, got = flatten(evaluate_line(text, local)), flatten(evaluate_line(text, spread))
    assert len(got) == len(want)
    for a, b in zip(got, want):
        if isinstance(b, Tensor):
            assert isinstance(a, Tensor) and tuple(a.shape) == tuple(b.shape) and a.dtype is b.dtype
            tol = 2e-3 if "h" in local else 1e-5
            np.testing.assert_allclose(a.float().numpy(), b.float().numpy(), rtol=tol, atol=tol)
            assert a.is_global or not spread                           # no global input
        else:
            assert a == b or a != a
    if "values" in flags or "h" in local or weighted(want) is None:
        return
    weighted(want).backward()
    weighted(got).backward()
    for name, x in local.items():
        g, h = x.grad, spread[name].grad
        assert (g is None) == (h is None), name
        if g is not None:
            assert h.sbp == spread[name].sbp
            np.testing.assert_allclose(h.float().numpy(), g.float().numpy(), rtol=1e-5, atol=1e-6,
                                       err_msg=name)
