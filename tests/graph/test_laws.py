"""Law: eager = nn.Graph = job function, for the values and gradients of every registered op."""
import numpy as np
import pytest

import flowedu as flow
from common import as_list, fresh_session, job  # noqa: F401
from flowedu.core.values.dtype import as_dtype
from flowedu.ops.front import front
from laws.calls import assert_equal_up_to_rounding, attributes, cases, draw_arrays, label, thin

from .making import make_graph

CALLS = cases(lambda op: not op.mutates and not op.random)
TRAINED = cases(lambda op: bool(op.rules) and not op.random)
IN_JOBS = {"float32", "float64", "int8", "uint8", "int32", "int64"}  # jobs have no bools and no empty tensors


def draw_call(op, example, dtype=np.float32):
    rng = np.random.default_rng(3)
    arrays = draw_arrays(op, example, dtype, rng)
    return arrays, attributes(op, example)


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
def test_a_graph_and_a_job_have_the_values_of_eager_mode(case):
    op, example = case
    arrays, attrs = draw_call(op, example)
    xs = [flow.from_numpy(a) for a in arrays]
    want = [y.numpy() for y in as_list(op.call(tuple(xs), attrs))]
    got = make_graph(lambda self, *xs: as_list(op.call(tuple(xs), attrs)))(*xs)
    for y, w in zip(got, want, strict=True):
        assert y.dtype is as_dtype(w.dtype)
        assert_equal_up_to_rounding(y.numpy(), w, np.float32)
    if {as_dtype(w.dtype).name for w in want} <= IN_JOBS and all(a.size for a in arrays):
        returns = tuple([flow.typing.Numpy] * len(want))
        # flow.math and similar modules call ops this way
        called = front(op.name.capitalize())(lambda *blobs: op.call(blobs, attrs))
        in_job = job(lambda *blobs: tuple(as_list(called(*blobs))), *arrays, returns=tuple[returns])(*arrays)
        for y, w in zip(in_job, want, strict=True):
            assert y.dtype == w.dtype
            assert_equal_up_to_rounding(y, w, np.float32)


@pytest.mark.parametrize("case", thin(TRAINED), ids=label)
def test_a_graph_and_a_job_have_the_gradients_of_eager_mode(case):
    """Gradients of a weighted sum of all floating results."""
    op, example = case
    arrays, attrs = draw_call(op, example, np.float64)
    floats = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]

    def slopes(*xs):
        outs = [y for y in as_list(op.call(tuple(xs), attrs)) if y.dtype.is_floating_point
                and y.requires_grad]
        weights = [flow.arange(y.numel(), dtype=y.dtype).reshape(y.shape) * 0.37 % 1 - 0.3 for y in outs]
        return flow.autograd.grad(sum((y * w).sum() for y, w in zip(outs, weights)), [xs[i] for i in floats],
                                  allow_unused=True)

    xs = [flow.tensor(a, requires_grad=i in floats) for i, a in enumerate(arrays)]
    want = slopes(*xs)
    got = make_graph(lambda self, *xs: slopes(*xs))(*xs)
    for g, w in zip(got, want, strict=True):
        assert g is None or w is not None
        if g is None:  # of a constant function: zeros eagerly, or none either
            assert w is None or not w.numpy().any()
        else:
            assert_equal_up_to_rounding(g.numpy(), w.numpy(), np.float64, scale=10)
