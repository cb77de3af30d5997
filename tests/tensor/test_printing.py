"""repr: elements print as in PyTorch, the dtype is always shown, and lazy tensors print as in OneFlow."""
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import flowedu as flow
from flowedu.tensor.printing import OPTIONS, Options, body


@pytest.fixture(autouse=True)
def default_options():
    yield
    for name, value in vars(Options()).items():
        setattr(OPTIONS, name, value)


def of_torch(a: np.ndarray) -> str:
    """Return PyTorch's text of the elements alone."""
    torch = pytest.importorskip("torch")
    return torch._tensor_str._tensor_str(torch.from_numpy(a.copy()), 7)


NUMBERS = st.one_of(st.floats(allow_nan=True, allow_infinity=True, width=32),
                    st.integers(-2000, 2000).map(float),
                    st.sampled_from([0.0, -0.0, 1e-5, 1e-4, 1e8, 1.00005, 100000.5, 0.5, -1.0, math.nan,
                                     math.inf]))


@pytest.mark.torch
@settings(max_examples=150, deadline=None)
@given(st.data())
def test_floats_print_as_in_torch(data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9))
    dtype = data.draw(st.sampled_from([np.float32, np.float64, np.float16]))
    with np.errstate(over="ignore"):
        a = data.draw(hnp.arrays(np.float32, shape, elements=NUMBERS)).astype(dtype)
    assert body(a) == of_torch(a)


@pytest.mark.torch
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_integers_and_bools_print_as_in_torch(data):
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=12))
    dtype = data.draw(st.sampled_from([np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_]))
    a = data.draw(hnp.arrays(dtype, shape))
    assert body(a) == of_torch(a)


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(1001,), (40, 40), (7, 6, 50), (11, 2, 9, 8), (3, 400)])
def test_long_tensors_show_their_edges(shape):
    a = np.random.default_rng(0).standard_normal(shape) * 100
    assert body(a) == of_torch(a)
    assert body(np.floor(a).astype(np.int64)) == of_torch(np.floor(a).astype(np.int64))


@pytest.mark.torch
@pytest.mark.parametrize("options", [dict(precision=2), dict(linewidth=40), dict(threshold=5),
                                     dict(edgeitems=1,
threshold=3),
                                     dict(sci_mode=True), dict(sci_mode=False), dict(profile="short"),
                                         dict(profile="full")])
def test_print_options_match_torch(options):
    torch = pytest.importorskip("torch")
    a = np.random.default_rng(1).standard_normal((4, 11)) * 1000
    try:
        torch.set_printoptions(**options)
        flow.set_printoptions(**options)
        assert body(a) == of_torch(a) and body(a.astype(np.int32)) == of_torch(a.astype(np.int32))
    finally:
        torch.set_printoptions(profile="default", sci_mode=None)
        torch._tensor_str.PRINT_OPTS.sci_mode = None


@pytest.mark.parametrize("t, text", [
    (lambda: flow.tensor([1.0, 2.0]), "tensor([1., 2.], dtype=flowedu.float32)"),
    (lambda: flow.tensor(3), "tensor(3, dtype=flowedu.int64)"),
    (lambda: flow.tensor([True]), "tensor([True], dtype=flowedu.bool)"),
    (lambda: flow.tensor([100000.5]), "tensor([100000.5000], dtype=flowedu.float32)"),
    (lambda: flow.tensor([100000.5, 1.0]), "tensor([1.0000e+05, 1.0000e+00], dtype=flowedu.float32)"),
    (lambda: flow.zeros(2, 0), "tensor([], size=(2, 0), dtype=flowedu.float32)"),
    (lambda: flow.zeros(0), "tensor([], dtype=flowedu.float32)"),
    (lambda: flow.ones(2, requires_grad=True), "tensor([1., 1.], dtype=flowedu.float32, requires_grad=True)"),
    (lambda: flow.ones(2).bfloat16(), "tensor([1., 1.], dtype=flowedu.bfloat16)"),
    (lambda: flow.tensor([[1.5, 2], [3, 4]]),
        "tensor([[1.5000, 2.0000],\n        [3.0000, 4.0000]], dtype=flowedu.float32)"),
])
def test_the_whole_text_of_a_tensor_is_as_listed(t, text):
    assert repr(t()) == str(t()) == text


def test_a_long_suffix_wraps_to_a_new_line():
    text = repr(flow.full((9,), 1.2345, requires_grad=True))
    assert text.split("\n") == ["tensor([1.2345, 1.2345, 1.2345, 1.2345, 1.2345, 1.2345, 1.2345, 1.2345, "
                                "1.2345],", "       dtype=flowedu.float32, requires_grad=True)"]


def test_repr_shows_grad_fn():
    assert "grad_fn=<" in repr(flow.ones(2, requires_grad=True) * 2)


def test_repr_of_a_lazy_tensor_has_no_elements():
    seen = []

    class Look(flow.nn.Graph):
        def build(self, x):
            seen.append(repr(x))
            return x * 2

    Look()(flow.ones(1, 4))
    assert seen == ["tensor(..., is_lazy='True', size=(1, 4), dtype=flowedu.float32)"]


def test_scalars_accept_a_format_and_tensors_with_axes_do_not():
    assert (f"{flow.tensor(2.5):>7f}" == "2.500000" and f"{flow.tensor(3)}" == "3"
            and f"{flow.tensor(0.1234):.2f}" == "0.12")
    assert f"{flow.tensor([1, 2])}" == repr(flow.tensor([1, 2]))
    with pytest.raises(TypeError):
        f"{flow.tensor([1.0]):.2f}"


def test_named_results_show_their_names():
    text = repr(flow.tensor([3, 1]).sort())
    assert (text.startswith("flowedu.return_types.sort(\nvalues=tensor([1, 3]")
            and "indices=tensor([1, 0]" in text)
    values, indices = flow.tensor([3.0, 1.0]).max(0)
    assert values.item() == 3 and indices.item() == 0
    assert isinstance(flow.tensor([3.0]).max(0), flow.return_types.max)


def test_an_unknown_profile_is_refused():
    with pytest.raises(ValueError, match="profile") as e:
        flow.set_printoptions(profile="long")
    assert e.value.expected and e.value.got and e.value.fix
