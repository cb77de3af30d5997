"""Law: every function and module with an inplace option has the value and the gradient of its out-of-place
form, even directly after another layer, and returns the same tensor object.
"""
import inspect

import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from graph.making import make_graph

pytestmark = pytest.mark.filterwarnings("ignore:.*not registered into a nn.Graph")
F = nn.functional
NUMBERS = {"threshold": (0.1, 0.5), "Threshold": (0.1, 0.5)}        # arguments of functions without defaults
FUNCTIONS = sorted(n for n in dir(F) if callable(getattr(F, n)) and not n.startswith("_")
                   and "inplace" in inspect.signature(getattr(F, n)).parameters)
MODULES = sorted(n for n in dir(nn) if isinstance(getattr(nn, n), type)
                 and issubclass(getattr(nn, n), nn.Module)
                 and "inplace" in inspect.signature(getattr(nn, n)).parameters)
X = np.random.default_rng(0).standard_normal((3, 4, 5)) * 2
SAVES_ITS_RESULT = ("softmax", "tanh", "relu")


def forms(name):
    """Return (out-of-place form, in-place form)."""
    what, numbers = getattr(F, name, None) or getattr(nn, name), NUMBERS.get(name, ())
    if isinstance(what, type):
        plain, written = what(*numbers), what(*numbers, inplace=True)
        assert plain.training and "inplace=True" in repr(written)
        return plain, written
    more = {"training": True} if "training" in inspect.signature(what).parameters else {}
    return lambda x: what(x, *numbers, **more), lambda x: what(x, *numbers, inplace=True, **more)


def layer(weight, x):
    return x @ weight


def value_and_gradients(f, weight, x):
    flow.manual_seed(5)
    h = layer(weight, x)
    y = f(h)
    weights = flow.arange(y.numel(), dtype=y.dtype).reshape(y.shape) * 0.37 % 1 - 0.3
    return [y, *flow.autograd.grad((y * weights).sum(), [weight, x])], h


def make_leaves(name):
    rng = np.random.default_rng(1)
    return (flow.tensor(rng.standard_normal((5, 5)), requires_grad=True),
            flow.tensor(select_input(name), requires_grad=True))


def select_input(name):
    return X[None] if "3d" in name else X


def test_the_lists_are_complete():
    assert len(FUNCTIONS) >= 16 and len(MODULES) >= 16, (FUNCTIONS, MODULES)


@pytest.mark.parametrize("in_graph", [False, True], ids=["eager", "graph"])
@pytest.mark.parametrize("name", FUNCTIONS + MODULES)
def test_inplace_equals_the_out_of_place_form(name, in_graph):
    plain, written = forms(name)
    want = value_and_gradients(plain, *make_leaves(name))[0]
    if in_graph:
        if "ropout" in name or name.lower() == "rrelu":
            return                                            # graphs draw different random numbers
        got = make_graph(lambda self, w, x: value_and_gradients(written, w, x)[0])(*make_leaves(name))
    else:
        got, h = value_and_gradients(written, *make_leaves(name))
        assert got[0] is h
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.detach().numpy(), w.detach().numpy(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_leaf_that_requires_a_gradient_is_not_overwritten(name):
    x = flow.tensor(select_input(name), requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf"):
        forms(name)[1](x)
    np.testing.assert_array_equal(x.detach().numpy(), select_input(name))


@pytest.mark.parametrize("before", SAVES_ITS_RESULT)
@pytest.mark.parametrize("name", [n for n in FUNCTIONS + MODULES if "ropout" in n])
def test_in_place_dropout_after_ops_that_saved_their_result(name, before):
    """OneFlow's BERT uses nn.Dropout(inplace=True) after softmax; the gradient equals that of the
    out-of-place form.
    """
    made = (lambda h: flow.softmax(h, -1)) if before == "softmax" else getattr(flow, before)
    plain, written = forms(name)
    (*want,), _ = value_and_gradients(lambda h: plain(made(h)), *make_leaves(name))
    (*got,), _ = value_and_gradients(lambda h: written(made(h)), *make_leaves(name))
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g.detach().numpy(), w.detach().numpy(), rtol=1e-12, atol=1e-14)


def test_the_error_names_the_op_that_saved_the_tensor():
    weight, x = make_leaves("dropout")
    h = layer(weight, x)
    product = h * h
    F.dropout(h, inplace=True)
    with pytest.raises(RuntimeError, match="inplace"):
        product.sum().backward()
