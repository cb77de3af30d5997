"""Law: the dtype of a result is PyTorch's, for every pair of dtypes, 0-dim tensors and Python numbers."""
import itertools
import operator

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

import flowedu as flow  # noqa: E402

NAMES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
OPERATORS = [operator.add, operator.mul, operator.truediv, operator.lt, operator.eq]


def make_ones(module, name, shape):
    return module.ones(shape, dtype=getattr(module, name))


def same_dtype(a, b):
    assert a.dtype.name == str(b.dtype).removeprefix("torch.") and tuple(a.shape) == tuple(b.shape)


@pytest.mark.parametrize("a, b", list(itertools.product(NAMES, NAMES)))
def test_dtypes_of_two_tensors_are_promoted_as_in_pytorch(a, b):
    for f in OPERATORS:
        for p, q in (((2,), (2,)), ((2,), ()), ((), (2,)), ((), ())):
            ours, theirs = (f(make_ones(flow, a, p), make_ones(flow, b, q)),
                            f(make_ones(torch, a, p), make_ones(torch, b, q)))
            same_dtype(ours, theirs)
            np.testing.assert_array_equal(ours.double().numpy(), theirs.double().numpy())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", [True, 3, 2.5, -1])
def test_a_tensor_and_a_number(name, number):
    for f in [*OPERATORS, operator.pow, operator.floordiv, operator.mod, operator.ge]:
        for shape in ((2,), ()):
            for flipped in (False, True):
                g = (lambda x, y, f=f: f(y, x)) if flipped else f
                try:
                    theirs = g(make_ones(torch, name, shape), number)
                except (RuntimeError, TypeError, NotImplementedError):
                    continue                          # PyTorch has no kernel for it
                if (name, number) == ("uint8", -1) and f in (operator.floordiv, operator.mod):
                    continue                          # PyTorch wraps to 255: test_numbers.py
                ours = g(make_ones(flow, name, shape), number)
                same_dtype(ours, theirs)


@pytest.mark.parametrize("name", NAMES)
def test_functions_of_one_tensor(name):
    for f in ("exp", "sum", "abs", "sqrt", "cumsum", "prod", "max", "floor", "square", "any", "argmax",
              "logical_not"):
        args = (0,) if f == "cumsum" else ()
        try:
            theirs = getattr(make_ones(torch, name, (3,)), f)(*args)
        except (RuntimeError, NotImplementedError):
            continue
        same_dtype(getattr(make_ones(flow, name, (3,)), f)(*args), theirs)


@pytest.mark.parametrize("a, b", list(itertools.product(NAMES, NAMES)))
def test_result_type_and_joining(a, b):
    assert flow.promote_types(getattr(flow, a), getattr(flow, b)).name == str(
        torch.promote_types(getattr(torch, a), getattr(torch, b))).removeprefix("torch.")
    same_dtype(flow.cat([make_ones(flow, a, (2,)), make_ones(flow, b, (1,))]),
               torch.cat([make_ones(torch, a, (2,)), make_ones(torch, b, (1,))]))
    same_dtype(flow.where(flow.tensor([True, False]), make_ones(flow, a, (2,)), make_ones(flow, b, (2,))),
               torch.where(torch.tensor([True, False]), make_ones(torch, a, (2,)), make_ones(torch, b, (2,))))
    assert flow.can_cast(getattr(flow, a), getattr(flow, b)) == torch.can_cast(getattr(torch, a),
                                                                               getattr(torch, b))


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32"])
def test_integers_wrap_as_in_c(name):
    top = {"int8": 127, "uint8": 255, "int16": 2 ** 15 - 1, "int32": 2 ** 31 - 1}[name]
    for f in (operator.add, operator.mul, operator.sub, lambda x, y: x ** y):
        ours = f(flow.tensor([top, 3], dtype=getattr(flow, name)),
                 flow.tensor([2, 5], dtype=getattr(flow, name)))
        theirs = f(torch.tensor([top, 3], dtype=getattr(torch, name)),
                   torch.tensor([2, 5], dtype=getattr(torch, name)))
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_numpy_numbers_and_arrays_mix_with_tensors():
    t = flow.tensor([1.0, 2.0])
    assert (t * np.float64(2)).tolist() == [2, 4] and (np.float32(2) * t).tolist() == [2, 4]
    assert (t * np.int64(3)).dtype is flow.float32 and (t + np.array([1.0, 1.0])).dtype is flow.float64
    assert (np.array([1.0, 1.0]) + t).tolist() == [2, 3]


@pytest.mark.parametrize("other", ["x", None, [1, 2], object()])
def test_foreign_operands_are_refused(other):
    t = flow.tensor([1.0, 2.0])
    for f in (operator.add, operator.mul, operator.lt, operator.pow, operator.matmul, operator.and_):
        with pytest.raises(TypeError):
            f(t, other)
    assert (t == None) is False and (t != None) is True  # noqa: E711
