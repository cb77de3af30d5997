"""The table of 16-bit floats: every op with float16 and bfloat16, eagerly, recorded, and in a graph. A call
converts its inputs to float32, computes there, and rounds once, so it equals the rounded float32 call to
the last bit.
"""
import zlib

import numpy as np
import pytest

import flowedu as flow
from common import as_list
from flowedu.errors import FlowError
from laws.calls import attributes, cases, draw_arrays, label, thin

HALVES = (flow.float16, flow.bfloat16)
EPSILON = {flow.float16: 2.0 ** -10, flow.bfloat16: 2.0 ** -7}
# {why: ops that do not compute with 16-bit floats}
REFUSED = {
    "LAPACK has none (PyTorch's neither)": "inverse det solve slogdet cholesky leading_minor eigh svd qr lu "
    "pseudo_inverse matrix_exp",
    "log probabilities are float32 (PyTorch's, too)": "ctc_loss ctc_loss_grad",
}
_REFUSED = {n for names in REFUSED.values() for n in names.split()}
# sums of float16 that are rounded after each addition
IN_NUMPY = {"gather_part_grad", "dim_gather_part_grad"}
CASES = cases(lambda op: not op.random and op.inputs and not op.mutates
              and not op.name.startswith(("bit_", "shift_")))
FIRST = list({op.name: (op, e) for op, e in reversed(CASES)}.values())[::-1]


def refuses(op) -> bool:
    return op.name in _REFUSED


def one_of_two(half, name: str) -> list:
    """Return marks: `make test` tries one of the two dtypes per call, alternating; `make test-all` tries
    both.
    """
    return [pytest.mark.slow] * (zlib.crc32(name.encode()) % 2 != HALVES.index(half))


def list_calls_and_dtypes(want) -> list:
    """Return (first call of each op that `want` accepts, dtype) for supported ops."""
    return [pytest.param(c, half, id=f"{label(c)}-{half.name}", marks=one_of_two(half, label(c)))
            for c in FIRST for half in HALVES if want(c[0]) and not refuses(c[0])]


def every_pair(cases) -> list:
    """Return (layer with its inputs, dtype) for `parametrize`."""
    return [pytest.param(c, half, id=f"{c[0]} {c[1]}-{half!r}", marks=one_of_two(half, f"{c[0]} {c[1]}"))
            for c in cases for half in HALVES]


def draw_float32_arrays(op, example, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return draw_arrays(op, example, np.float32, rng)


def rounded(arrays, half):
    """Return [inputs in 16 bits], [the same values in float32]."""
    xs = [flow.tensor(a) for a in arrays]
    narrow = [x.to(half) if x.dtype is flow.float32 else x for x in xs]
    return narrow, [x.float() if x.dtype is half else x for x in narrow]


def bits(x) -> np.ndarray:
    return x.float().numpy() if x.dtype in HALVES else x.numpy()


def assert_same_bits(got, wide, half) -> None:
    """Compare got (16 bits, or float32 where the op returns it) with wide, the float32 result."""
    assert got.dtype in (half, wide.dtype)
    np.testing.assert_array_equal(bits(got), bits(wide.to(got.dtype)))


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("case", thin(CASES), ids=label)
def test_a_call_is_the_float32_call_rounded(case, half):
    op, example = case
    attrs = attributes(op, example)
    narrow, wide = rounded(draw_float32_arrays(op, example), half)
    if refuses(op):
        with pytest.raises(FlowError):
            op.call(tuple(narrow), attrs)
        return
    if op.name == "cast":
        attrs = (flow.float32,)
    for got, want in zip(as_list(op.call(tuple(narrow), attrs)), as_list(op.call(tuple(wide), attrs)),
                         strict=True):
        if op.name in IN_NUMPY and half is flow.float16:
            np.testing.assert_allclose(bits(got), want.numpy(), rtol=4 * EPSILON[half],
                                       atol=4 * EPSILON[half])
        else:
            assert_same_bits(got, want, half)


@pytest.mark.parametrize(("case", "half"), list_calls_and_dtypes(lambda op: op.name != "cast"))
def test_a_graph_gives_the_same_bits(case, half):
    op, example = case
    attrs = attributes(op, example)
    narrow, _ = rounded(draw_float32_arrays(op, example), half)

    class G(flow.nn.Graph):
        def build(self, *xs):
            return tuple(as_list(op.call(tuple(xs), attrs)))

    for got, want in zip(as_list(G()(*narrow)), as_list(op.call(tuple(narrow), attrs)), strict=True):
        assert got.dtype is want.dtype
        np.testing.assert_array_equal(bits(got), bits(want))


def gradients(op, attrs, inputs, weights):
    leaves = [x.clone().requires_grad_() if x.dtype.is_floating_point else x for x in inputs]
    ys = [y for y in as_list(op.call(tuple(leaves), attrs)) if y.requires_grad]
    flow.autograd.backward(ys, [w.to(y.dtype) for w, y in zip(weights, ys)])
    return [x.grad for x in leaves if x.dtype.is_floating_point]


@pytest.mark.parametrize(("case", "half"), list_calls_and_dtypes(lambda op: op.name != "cast" and op.rules))
def test_gradients_have_the_dtype_of_their_input_and_are_close(case, half):
    """Close: within a few roundings of the largest float32 gradient on the same inputs."""
    op, example = case
    attrs = attributes(op, example)
    narrow, wide = rounded(draw_float32_arrays(op, example), half)
    rng = np.random.default_rng(1)
    weights = [flow.tensor(rng.uniform(0.5, 1, tuple(y.shape)).astype("f4")).to(half).float()
               for y in as_list(op.call(tuple(wide), attrs)) if y.dtype.is_floating_point]
    want = gradients(op, attrs, wide, weights)
    for got, g, x in zip(gradients(op, attrs, narrow, weights), want, [x for x in narrow if x.dtype is half],
                         strict=True):
        if g is None:
            assert got is None
            continue
        assert got.dtype is x.dtype and got.shape == x.shape
        room = 32 * EPSILON[half] * max(1e-3, float(g.abs().max().item()) if g.numel() else 0.0)
        np.testing.assert_allclose(bits(got), g.numpy(), rtol=0, atol=room)


@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_nan_and_infinity_propagate(half):
    x = flow.tensor([float("nan"), float("inf"), float("-inf"), 0.0, 1e30]).to(half)
    assert x.isnan().tolist() == [True, False, False, False, False]
    y = (x * 2 + 1).float().numpy()
    assert np.isnan(y[0]) and y[1] == np.inf and y[2] == -np.inf and y[3] == 1
    assert np.isinf(y[4]) == (half is flow.float16)                     # above 65504
    assert flow.isnan((flow.ones(2, 5).to(half) @ x.reshape(5, 1)).float()).all()


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("layout", ["transposed", "every second", "broadcast", "offset", "empty", "number"])
def test_16_bit_inputs_of_any_layout_are_converted_correctly(half, layout):
    """Ops that convert through scratch memory respect strides."""
    base = flow.tensor(np.random.default_rng(0).normal(size=(6, 8)).astype("f4")).to(half)
    x = {"transposed": base.t(), "every second": base[::2, ::2], "broadcast": base[:1].expand(6, 8),
         "offset": base[1:, 3:], "empty": base[:, :0], "number": base[0, 0].reshape(1, 1)}[layout]
    w = flow.tensor(np.random.default_rng(1).normal(size=(x.shape[1], 3)).astype("f4")).to(half)
    for f in (lambda x, w: x @ w, lambda x, w: flow.softmax(x, 1) if x.numel() else x, lambda x, w: x.sum(0),
              lambda x, w: flow.nn.functional.layer_norm(x, (x.shape[1],)) if x.numel() else x,
              lambda x, w: x * x):
        assert_same_bits(f(x, w), f(x.float(), w.float()), half)


@pytest.mark.parametrize("half", HALVES, ids=repr)
def test_empty_arrays_are_not_read(half):
    """Includes empty arrays with zero strides. The sanitizer build detects out-of-bounds reads."""
    x = flow.ones(1, 1).to(half)
    for shape in ((0, 6), (6, 0), (0, 0)):
        empty = x[:0].expand(*shape) if shape[0] == 0 else x[:, :0].expand(*shape)
        assert (empty.sum().item() == 0 and empty.sum(0).shape == shape[1:] and flow.cumsum(empty, 1).shape
                == shape)
        assert (empty @ flow.ones(shape[1], 3).to(half)).shape == (shape[0], 3)
