"""Law: result dtypes match the tables of meaning/kinds.py for every pair of dtypes, with and without axes,
for Python numbers, for functions of one tensor, and for functions that join tensors.
"""
import itertools
import operator

import numpy as np
import pytest

import flowedu as flow

from .meaning import m
from .meaning.kinds import NAMES, NUMBERS, PAIRS, T, bfloat16, category, result

OPERATORS = [operator.add, operator.mul, operator.truediv, operator.lt, operator.eq]
SHAPES = [((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())]
PLAIN = [n for n in NAMES if n != "bfloat16"]
KEEP = "clone floor square abs neg sign max".split()
FLOATS = "exp sqrt sigmoid tanh log".split()
COUNT = "sum prod cumsum".split()
BOOL = "any all isnan logical_not".split()


def make_ones(module, name, shape):
    return module.ones(shape, dtype=getattr(module, name))


def assert_matches(ours, meant):
    assert ours.dtype.name == meant.kind and tuple(ours.shape) == meant.shape
    np.testing.assert_allclose(ours.double().numpy(), meant.a.astype(float),
                               rtol=1e-2 if "float16" in meant.kind else 1e-6)


@pytest.mark.parametrize("a, b", list(itertools.product(NAMES, NAMES)))
def test_two_tensors_have_the_dtype_of_the_table(a, b):
    for f in OPERATORS:
        for p, q in SHAPES:
            assert_matches(f(make_ones(flow, a, p), make_ones(flow, b, q)),
                           f(make_ones(m, a, p), make_ones(m, b, q)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", [True, 3, 2.5, -1])
def test_a_tensor_and_a_number(name, number):
    for f in [*OPERATORS, operator.pow, operator.floordiv, operator.mod, operator.ge]:
        if f in (operator.pow, operator.floordiv, operator.mod) and (name == "bool" or number in (True, -1)):
            continue  # not defined for bools, or for negative powers of integers
        for shape in ((2,), ()):
            for flipped in (False, True):
                g = (lambda x, y, f=f: f(y, x)) if flipped else f
                assert_matches(g(make_ones(flow, name, shape), number), g(make_ones(m, name, shape), number))


@pytest.mark.parametrize("name", NAMES)
def test_functions_of_one_tensor(name):
    x, kind = make_ones(flow, name, (3,)), category(name)

    def call(f):
        return (getattr(x, f)(0) if f == "cumsum" else getattr(x, f)()).dtype.name

    for f in KEEP:
        if not (name == "bool" and f in ("neg", "sign", "square", "floor")):
            assert call(f) == name, f
    for f in FLOATS:
        assert call(f) == (name if kind == 2 else "float32"), f
    for f in COUNT:
        assert call(f) == (name if kind == 2 else "int64"), f
    for f in BOOL:
        assert call(f) == ("uint8" if name == "uint8" and f in ("any", "all") else "bool"), f
    assert call("argmax") == "int64" and x.nonzero().dtype is flow.int64


@pytest.mark.parametrize("a, b", list(itertools.product(NAMES, NAMES)))
def test_joining_and_result_type(a, b):
    want = PAIRS[a, b]
    left, right = make_ones(flow, a, (2,)), make_ones(flow, b, (2,))
    assert flow.promote_types(left.dtype, right.dtype).name == want == PAIRS[b, a]
    assert flow.result_type(left, right).name == want and flow.cat([left, right]).dtype.name == want
    assert flow.stack([left, right]).dtype.name == want
    assert flow.where(flow.tensor([True, False]), left, right).dtype.name == want
    assert flow.maximum(left, right).dtype.name == want
    assert flow.can_cast(left.dtype, right.dtype) == (category(a) <= category(b))
    low, high = make_ones(flow, a, ()), right
    assert flow.result_type(low, high).name == result(T(np.ones(()), a), T(np.ones(2), b))


@pytest.mark.parametrize("number, name", sorted(NUMBERS))
def test_result_type_of_numbers(number, name):
    value = {"bool": True, "int": 3, "float": 2.5}[number]
    for shape in ((), (2,)):
        assert flow.result_type(make_ones(flow, name, shape), value).name == NUMBERS[number, name]
        assert flow.result_type(value, make_ones(flow, name, shape)).name == NUMBERS[number, name]


@pytest.mark.parametrize("to", NAMES)
@pytest.mark.parametrize("from_", PLAIN)
def test_conversions(from_, to):
    """Integers wrap, floats lose their fraction or are rounded once, and any nonzero value is True."""
    a = np.array([0, 1, 2, 77, 100]).astype(from_)
    a = np.concatenate([a, np.array([2.5, -1.25, 0.3], from_)]) if category(from_) == 2 else a
    a = np.concatenate([a, np.array([-1, -100], from_)]) if from_.startswith("int") else a
    got = flow.from_numpy(a).to(getattr(flow, to))
    want = bfloat16(a.astype(np.float32)) if to == "bfloat16" else m.cast(T(a), to).a
    assert got.dtype.name == to
    np.testing.assert_array_equal((got.float() if to == "bfloat16" else got).numpy(), want)


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "int64"])
def test_integers_wrap_as_in_c(name):
    top = np.iinfo(name).max
    for f in (operator.add, operator.mul, operator.sub, lambda x, y: x ** y):
        a, b = np.array([top, 3, 5], name), np.array([2, 5, 3], name)
        with np.errstate(all="ignore"):
            want = f(a, b)
        np.testing.assert_array_equal(f(flow.tensor(a), flow.tensor(b)).numpy(), want)


@pytest.mark.parametrize("to", PLAIN)
@pytest.mark.parametrize("from_", PLAIN)
def test_in_place_results_keep_their_dtype_or_are_refused(from_, to):
    """copy_ converts every dtype; arithmetic refuses results of a higher category."""
    a, b = np.array([1, 0, 1]).astype(to), np.array([2, 1, 3]).astype(from_)
    x = flow.tensor(a)
    x.copy_(flow.tensor(b))
    np.testing.assert_array_equal(x.numpy(), m.cast(T(b), to).a)
    for name in ("add", "mul"):
        x = flow.tensor(a)
        if category(from_) > category(to):
            with pytest.raises(RuntimeError, match="cast"):
                getattr(x, name + "_")(flow.tensor(b))
            np.testing.assert_array_equal(x.numpy(), a)
        else:
            assert getattr(x, name + "_")(flow.tensor(b)) is x and x.dtype.name == to
            np.testing.assert_array_equal(x.numpy(), m.cast(getattr(m, name)(T(a), T(b)), to).a)
