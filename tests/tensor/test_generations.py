"""Names that blobs and tensors share: dispatch to the function of the right API generation."""
import inspect

import numpy as np
import pytest

import flowedu as flow
from flowedu import typing as tp
from flowedu.oneflow04.names import OLDER
from flowedu.tensor import elementwise
from flowedu.tensor.construction import creation
from flowedu.tensor.indexing import gather_scatter, nonzero_positions, sort_and_search
from flowedu.tensor.linalg import products
from flowedu.tensor.shapes import join_and_pad, reshape_and_permute

SHARED = [n for n in OLDER if "." not in n]
X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


def in_job(f, *arrays):
    """Run f on blobs."""
    flow.clear_default_session()

    @flow.global_function()
    def job(a: tp.Numpy.Placeholder(X.shape)) -> tp.Numpy:
        return f(a)

    return job(*(arrays or (X,)))


def test_the_list_is_complete():
    assert {"transpose", "squeeze", "gather", "stack", "sort", "argsort", "where", "reshape", "flatten",
            "ones", "zeros",
            "ones_like", "zeros_like", "diag", "eye", "tril", "triu", "clamp", "clip", "masked_fill",
            "nonzero", "argwhere", "concat", "matmul", "swapaxes", "pad"} <= set(SHARED)
    for name in SHARED:
        choice = getattr(flow, name).choice
        assert choice.older is OLDER[name].function and choice.newer is getattr(flow, name).function


@pytest.mark.parametrize("name", SHARED)
def test_help_and_signature_describe_both_generations(name):
    f = getattr(flow, name)
    assert "Of blobs" in f.__doc__ and "Of tensors" in f.__doc__
    assert inspect.signature(f) == inspect.signature(f.__wrapped__)


def test_tensors_get_the_tensor_function():
    t = flow.tensor(X)
    assert flow.transpose(t, 0, 1).shape == (3, 2) and flow.transpose(t, -1, -2)._base is t
    assert isinstance(flow.sort(t), tuple) and flow.argsort(t).dtype is flow.int64
    assert flow.gather(t, 1, flow.tensor([[0], [1]])).tolist() == [[0], [4]]
    assert flow.squeeze(flow.ones(1, 2), 1).shape == (1, 2) and flow.nonzero(t).shape == (5, 2)
    assert flow.concat([t, flow.ones(1, 3, dtype=flow.int64)]).dtype is flow.float32
    assert (flow.clamp(t, min=2).tolist() == [[2, 2, 2], [3, 4, 5]]
            and flow.where(t > 2, t, 0.0).dtype is flow.float32)
    assert (flow.reshape(t, (3, -1)).shape == (3, 2) and flow.zeros(2, 3).shape
            == (2, 3) == flow.zeros((2, 3)).shape)
    assert flow.pad(t, (1, 0)).shape == (2, 4) and flow.matmul(t, flow.ones(3)).shape == (2,)
    assert flow.eye(2, dtype=flow.int64).tolist() == [[1, 0], [0, 1]] and flow.ones_like(t,
        requires_grad=True).requires_grad
    assert flow.masked_fill(t, t > 3, -1).tolist() == [[0, 1, 2], [3, -1, -1]] and flow.stack((t, t),
        dim=-1).shape == (2, 3, 2)


T = flow.tensor(X)
MODULES = (reshape_and_permute, elementwise, products, nonzero_positions, gather_scatter, sort_and_search,
           join_and_pad, creation)
CALLS = {"argsort": (T, 0, True), "argwhere": (T,), "clamp": (T, 1, 3), "clip": (T, 1, 3),
         "concat": ([T, T], 1),
         "diag": (T, 1), "eye": (3, 4), "flatten": (T, 0, 1), "gather": (T, 1, flow.tensor([[2], [0]])),
         "masked_fill": (T, T > 2, -1), "matmul": (T, T.T), "nonzero": (T,), "ones": ((2, 3),),
         "ones_like": (T,),
         "pad": (T, (1, 2)), "reshape": (T, (3, 2)), "sort": (T, 0, True), "squeeze": (flow.ones(1, 2), 0),
         "stack": ([T, T], 1), "swapaxes": (T, 0, 1), "transpose": (T, 0, 1), "tril": (T, 1), "triu": (T, 1),
         "where": (T > 2, T, 0.0), "zeros": ((2, 3),), "zeros_like": (T,), "clip_by_scalar": (T, 1, 3)}
SAME = {"concat": "cat", "clip_by_scalar": "clip"}


@pytest.mark.parametrize("name", SHARED)
def test_arguments_may_be_named(name):
    """Arguments by position, by the names of the tensor function, and mixed give the same result."""
    f, args = getattr(flow, name), CALLS[name]
    module = next(m for m in MODULES if hasattr(m, SAME.get(name, name)))
    parameters = list(inspect.signature(getattr(module, SAME.get(name, name))).parameters.values())
    if parameters[0].kind is parameters[0].VAR_POSITIONAL:
        return
    names = ["input", "shape"] if name == "reshape" else [p.name for p in parameters[:len(args)]]

    def flat(y):
        return [t.tolist() for t in (y if isinstance(y, tuple) else (y,))]

    want = flat(f(*args))
    assert flat(f(**dict(zip(names, args)))) == want
    assert flat(f(args[0], **dict(zip(names[1:], args[1:])))) == want


def test_calls_that_only_the_older_api_accepts_keep_their_result():
    t = flow.tensor(X)
    assert flow.transpose(t, perm=[1, 0]).shape == flow.transpose(t, [1, 0]).shape == (3, 2)
    assert (isinstance(flow.sort(t, axis=0), flow.Tensor)
            and flow.sort(t, "DESCENDING").tolist() == [[2, 1, 0], [5, 4, 3]])
    assert flow.argsort(t, axis=1).dtype is flow.int32 and flow.gather(t, flow.tensor([1])).shape == (1, 3)
    assert (flow.clip(t, min_value=2).tolist() == [[2, 2, 2], [3, 4, 5]]
            and flow.squeeze(flow.ones(1, 2), [0]).shape == (2,))
    assert (flow.tril(t, 0, 9.0).tolist() == [[0, 9, 9], [3, 4, 9]] and flow.pad(t, [(0, 1), (0, 0)]).shape
            == (3, 3))
    assert (flow.matmul(t, t, transpose_b=True).shape == (2, 2)
            and flow.zeros((2,), flow.int32).dtype is flow.int32)
    assert flow.masked_fill(t, flow.tensor([1, 0, 1]), 5.0).tolist() == [[5, 1, 5], [5, 4, 5]]


@pytest.mark.parametrize("f, want", [
    (lambda a: flow.transpose(a, perm=[1, 0]), X.T), (lambda a: flow.reshape(a, [3, 2]), X.reshape(3, 2)),
    (lambda a: flow.sort(a, direction="DESCENDING"), X[:, ::-1]), (lambda a: flow.concat([a, a], axis=1),
                                                                   np.hstack([X,
X])),
    (lambda a: flow.math.add(a, flow.ones((2, 3))), X + 1), (lambda a: flow.matmul(a, a, transpose_b=True),
                                                             X @ X.T),
    (lambda a: flow.clamp(a, 1, 2), X.clip(1, 2)), (lambda a: flow.tril(a), np.tril(X)),
    (lambda a: flow.flatten(a),
X.ravel()),
    (lambda a: flow.where(flow.math.greater(a, flow.zeros_like(a)), a, flow.ones_like(a)),
     np.where(X > 0, X, 1))])
def test_blobs_get_the_blob_function(f, want):
    np.testing.assert_allclose(in_job(f), want)


def test_creation_functions_in_a_job_return_blobs():
    seen = []

    def body(a):
        seen.extend([flow.zeros((2, 3)), flow.eye(2)])
        return flow.math.add(a, seen[0])

    in_job(body)
    assert not any(isinstance(b, flow.Tensor) for b in seen)
    assert isinstance(flow.zeros((2, 3)), flow.Tensor)
