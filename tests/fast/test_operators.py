"""Operators that reach the engine without a lookup by name equal the methods of that name, even if a subclass
or a later assignment replaces the method.
"""
from __future__ import annotations

import operator

import numpy as np
import pytest

import flowedu as flow

OPERATORS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
             "matmul": operator.matmul}
SIDES = [flow.tensor(np.arange(1.0, 5).reshape(2, 2).astype(np.float32)),
         flow.nn.Parameter(flow.full((2, 2), 3.0)), flow.tensor([[1, 2], [3, 4]])]


class Foreign:
    """Object that answers every operator on either side."""


for _name in OPERATORS:
    setattr(Foreign, f"__{_name}__", lambda self, other, name=_name: ("left", name))
    setattr(Foreign, f"__r{_name}__", lambda self, other, name=_name: ("right", name))


@pytest.mark.parametrize("name, left, right", [
    (n, a, b) for n in OPERATORS for a in SIDES for b in SIDES if n != "matmul" or a.dtype is b.dtype])
def test_an_operator_calls_its_method(name, left, right):
    got, numpy = OPERATORS[name](left, right), OPERATORS[name](left.detach().numpy(), right.detach().numpy())
    np.testing.assert_allclose(got.detach().numpy(), numpy, rtol=1e-6)
    for again in (getattr(left, f"__{name}__")(right), getattr(right, f"__r{name}__")(left)):
        assert again.dtype is got.dtype and again.requires_grad == got.requires_grad
        np.testing.assert_array_equal(again.detach().numpy(), got.detach().numpy())


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("tensor", SIDES[:2], ids=["tensor", "parameter"])
def test_foreign_objects_answer(name, tensor):
    f = OPERATORS[name]
    assert f(tensor, Foreign()) == ("right", name) and f(Foreign(), tensor) == ("left", name)
    if name != "matmul":
        for number in (2, 2.5, np.float32(2)):
            np.testing.assert_allclose(f(number, tensor).detach().numpy(),
                                       f(np.float32(number), tensor.detach().numpy()))
    with pytest.raises(TypeError):
        f(object(), tensor)


@pytest.mark.parametrize("name", OPERATORS)
def test_a_subclass_can_override_an_operator(name):
    forward, reflected = (lambda self, other: "forward"), (lambda self, other: "reflected")
    kind = type("Own", (flow.Tensor,), {f"__{name}__": forward, f"__r{name}__": reflected})
    own, f = kind.__new__(kind), OPERATORS[name]
    assert f(own, SIDES[0]) == "forward" and f(SIDES[0], own) == "reflected"


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("kind", [flow.Tensor, flow.nn.Parameter])
def test_a_later_assigned_method_is_used(name, kind, monkeypatch):
    f = OPERATORS[name]
    with monkeypatch.context() as patch:
        patch.setattr(kind, f"__{name}__", lambda self, other: "assigned", raising=False)
        assert f(SIDES[1], 2) == "assigned" and (f(SIDES[0], SIDES[0]) == "assigned") == (kind is flow.Tensor)
    np.testing.assert_allclose(f(SIDES[0], SIDES[0]).numpy(), f(SIDES[0].numpy(), SIDES[0].numpy()))
