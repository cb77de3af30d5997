"""flow.fft: each transform equals NumPy's for any size, axis, and norm, and returns (real, imaginary) pairs.
Gradients of any order, graphs, batches, and PyTorch, where it is installed.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.autograd import gradcheck, gradgradcheck
from flowedu.errors import ArgumentError, AxisError, DTypeError, NotATensorError, ShapeError

NORMS = [None, "backward", "forward", "ortho"]
ENDS = [(4,), (5,), (1,), (2, 6), (3, 7)]              # signals of odd and even length


def to_pairs(z) -> np.ndarray:
    """Convert a complex array to flowedu's pairs."""
    return np.stack([z.real, z.imag], -1)


def assert_same_spectrum(got, want) -> None:
    assert tuple(got.shape) == want.shape and got.dtype is flow.float64
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=0, atol=1e-11)


@st.composite
def signals(draw, least=0):
    """Draw (an array, one of its axes, n or None, a norm)."""
    shape = draw(st.lists(st.integers(least, 7), min_size=1, max_size=4))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    shape[axis] = shape[axis] or 1
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    return rng.standard_normal(shape), axis, draw(st.none() | st.integers(1, 9)), draw(st.sampled_from(NORMS))


@given(signals())
def test_transforms_equal_numpys(signal):
    x, axis, n, norm = signal
    t = flow.tensor(x)
    assert_same_spectrum(flow.fft.rfft(t, n, axis, norm), to_pairs(np.fft.rfft(x, n, axis, norm)))
    assert_same_spectrum(flow.fft.fft(t, n, axis, norm), to_pairs(np.fft.fft(x, n, axis, norm)))
    if n is not None or x.shape[axis] > 1:
        z = x + 1j * np.random.default_rng(0).standard_normal(x.shape)
        assert_same_spectrum(flow.fft.irfft(flow.tensor(to_pairs(z)), n, axis, norm),
                             np.fft.irfft(z, n, axis, norm))


@given(signals())
def test_inverse_and_parseval(signal):
    """The inverse restores the signal, and the power of all frequencies is that of the signal (Parseval)."""
    x, axis, _, norm = signal
    t, n = flow.tensor(x), x.shape[axis]
    assert_same_spectrum(flow.fft.irfft(flow.fft.rfft(t, dim=axis, norm=norm), n, axis, norm), x)
    assert_same_spectrum(flow.fft.fft(t, dim=axis, norm="ortho").square().sum(), np.square(x).sum())


@given(signals(least=1), st.sampled_from(["rfft", "fft", "irfft"]))
def test_gradients_are_the_transpose(signal, name):
    """As f is linear, w . f(x) equals (gradient of it) . x for every w; the gradient is linear in w with f as
    its transpose.
    """
    x, axis, n, norm = signal
    if name == "irfft":
        n, x = n or x.shape[axis], np.stack([x, x[::-1] * 2], -1)
    t = flow.tensor(x, requires_grad=True)
    y = getattr(flow.fft, name)(t, n, axis, norm)
    w = flow.tensor(np.random.default_rng(1).standard_normal(y.shape), requires_grad=True)
    g, = flow.autograd.grad((y * w).sum(), t, create_graph=True)
    assert_same_spectrum((g * t).sum(), (w * y).sum().detach().numpy())
    again, = flow.autograd.grad((g * t.detach()).sum(), w)
    assert_same_spectrum(again, y.detach().numpy())


@pytest.mark.parametrize("shape", ENDS)
def test_second_derivatives_are_derivatives(shape):
    x = flow.tensor(np.random.default_rng(0).standard_normal(shape), requires_grad=True)
    s = flow.fft.rfft(x).detach().requires_grad_()
    for f, t in ((lambda x: flow.fft.rfft(x) ** 3, x), (lambda x: flow.fft.fft(x, n=5) ** 3, x),
                 (lambda s: flow.fft.irfft(s, n=shape[-1]) ** 3, s)):
        assert gradcheck(f, (t,)) and gradgradcheck(f, (t,))


@given(st.integers(1, 9), st.integers(0, 2**31))
def test_a_product_of_spectra_is_a_convolution(n, seed):
    x, w = np.random.default_rng(seed).standard_normal((2, n))
    a, b = (flow.fft.rfft(flow.tensor(v)) for v in (x, w))
    want = [sum(x[j] * w[i - j] for j in range(n)) for i in range(n)]
    assert_same_spectrum(flow.fft.irfft(flow.fft.mul(a, b), n), np.array(want))
    correlated = flow.fft.mul(a, b * flow.tensor([1.0, -1.0]))  # correlation uses the conjugate
    assert_same_spectrum(flow.fft.irfft(correlated, n), np.array([sum(x[(i + j) % n] * w[j] for j in range(n))
                                                                  for i in range(n)]))


def test_complex_pairs_broadcast():
    a, b = (np.random.default_rng(0).standard_normal((2, 3, 1, 2)),
            np.random.default_rng(1).standard_normal((4, 2)))
    want = (a[..., 0] + 1j * a[..., 1]) * (b[..., 0] + 1j * b[..., 1])
    assert_same_spectrum(flow.fft.mul(flow.tensor(a), flow.tensor(b)), to_pairs(want))


@given(st.integers(1, 12), st.floats(0.1, 10))
def test_frequencies_are_numpys(n, d):
    for name in ("fftfreq", "rfftfreq"):
        f = getattr(flow.fft, name)
        np.testing.assert_array_equal(f(n, d, dtype=flow.float64).numpy(), getattr(np.fft, name)(n, d))
        assert f(n).dtype is flow.float32 and f(n, requires_grad=True).requires_grad


@given(signals())
def test_shifts_are_numpys(signal):
    x, axis, *_ = signal
    t = flow.tensor(x)
    for name in ("fftshift", "ifftshift"):
        ours, theirs = getattr(flow.fft, name), getattr(np.fft, name)
        for dim in (axis, [axis], None) if x.ndim == 1 or x.shape[-1] != 2 else (axis, [axis], range(x.ndim)):
            assert_same_spectrum(ours(t, dim if not isinstance(dim, range) else tuple(dim)), theirs(x, dim))
    assert_same_spectrum(flow.fft.ifftshift(flow.fft.fftshift(t, axis), axis), x)


def test_dtypes_are_kept():
    """float32 results are close, and integers become the default float dtype."""
    x = np.random.default_rng(0).standard_normal((3, 10))
    for kind, room in ((flow.float32, 1e-6), (flow.float16, 4e-3), (flow.bfloat16, 4e-2)):
        y = flow.fft.rfft(flow.tensor(x).to(kind))
        back = flow.fft.irfft(y)
        assert y.dtype is kind and back.dtype is kind
        np.testing.assert_allclose(back.float().numpy(), x, atol=room)
    assert flow.fft.fft(flow.arange(4)).tolist() == [[6, 0], [-2, 2], [-2, 0], [-2, -2]]
    assert flow.fft.irfft(flow.tensor([[4, 0], [0, 0]]), n=2).dtype is flow.float32


class Filter(flow.nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

    def build(self, x):
        y = self.model(x)
        y.square().mean().backward()
        return y


class Spectral(flow.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = flow.nn.Parameter(flow.fft.rfft(flow.tensor([1.0, 0.5, 0.25, 0.0, 0.0, 0.0, 0.0])))

    def forward(self, x):
        return flow.fft.irfft(flow.fft.mul(flow.fft.rfft(x, dim=1), self.weight.unsqueeze(1)), n=7, dim=1)


def test_a_graph_trains_as_eager_tensors_do():
    x = flow.tensor(np.random.default_rng(0).standard_normal((5, 7, 3)).astype("f4"))
    eager, other = Spectral(), Spectral()
    optimizer, graph = flow.optim.SGD(eager.parameters(), lr=0.1), Filter(other)
    for _ in range(3):
        y = eager(x)
        y.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        np.testing.assert_allclose(graph(x).numpy(), y.detach().numpy(), atol=1e-6)
    assert not flow.equal(other.weight, Spectral().weight)
    np.testing.assert_allclose(other.weight.numpy(), eager.weight.numpy(), atol=1e-6)


@pytest.mark.parametrize("shape", ENDS)
def test_vmap_is_the_batch(shape):
    x = flow.tensor(np.random.default_rng(0).standard_normal((3, *shape)))
    for f in (flow.fft.rfft, flow.fft.fft, lambda t: flow.fft.irfft(flow.fft.rfft(t), n=shape[-1] + 1)):
        assert flow.equal(flow.vmap(f)(x), f(x))


X, P = "flow.ones(2, 4)", "flow.ones(3, 2)"
REFUSED = {
    f"rfft({X}, norm='half')": (ArgumentError, "ortho"),
    f"rfft({X}, n=0)": (ArgumentError, r"data points \(0\)"),
    f"rfft({X}, dim=2)": (AxisError, "range"), "rfft(flow.ones(()))": (AxisError, "no axis"),
    "rfft(flow.ones(2, 0))": (ArgumentError, "data points"), "rfft([1.0, 2.0])": (NotATensorError, "tensor"),
    "irfft(flow.ones(3))": (ShapeError, "pairs"), f"irfft({P}, dim=1)": (AxisError, "range"),
    "irfft(flow.ones(1, 2))": (ArgumentError, "data points"),
    "irfft(flow.ones(()), 3)": (ShapeError, "pairs"),
    f"mul({P}, flow.ones(3))": (ShapeError, "b is not made of pairs"),
    "fftfreq(0)": (ArgumentError, "data points"),
    "rfftfreq(3, dtype=flow.int64)": (DTypeError, "float"),
    f"fftshift({P})": (ArgumentError, "(?s)parts.*dim=-2"),
    "ifftshift(flow.ones(2, 2))": (ArgumentError, "dim=-2"),
    f"fft({X}, norm=2)": (ArgumentError, "normalization"), }


@pytest.mark.parametrize("line", REFUSED)
def test_invalid_calls_raise_with_a_fix(line):
    error, words = REFUSED[line]
    with pytest.raises(error, match=words) as e:
        eval(f"flow.fft.{line}", {"flow": flow})
    assert e.value.fix


def test_registry_refuses_invalid_arguments():
    with pytest.raises(ShapeError, match="do not fit the size n"):
        flow.ops.REGISTRY["irfft"](flow.ones(3, 2), n=6)
    with pytest.raises(ShapeError, match="the input is empty"):
        flow.ops.REGISTRY["rfft"](flow.ones(3, 0))
    with pytest.raises(DTypeError, match="float32 or float64"):
        flow.ops.REGISTRY["rfft"](flow.arange(3))


@pytest.mark.torch
@pytest.mark.parametrize("name", ["rfft", "fft", "irfft"])
@given(signal=signals(least=1))
def test_transforms_equal_pytorchs(name, signal):
    torch = pytest.importorskip("torch")
    x, axis, n, norm = signal
    if name == "irfft":
        n, x = n or x.shape[axis] + 1, np.stack([x, x * x], -1)
    ours, theirs = flow.tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    y = getattr(flow.fft, name)(ours, n, axis, norm)
    z = getattr(torch.fft, name)(torch.view_as_complex(theirs) if name == "irfft" else theirs, n, axis, norm)
    z = z if name == "irfft" else torch.view_as_real(z)
    assert_same_spectrum(y, z.detach().numpy())
    w = np.random.default_rng(0).standard_normal(z.shape)
    (y * flow.tensor(w)).sum().backward()
    (z * torch.tensor(w)).sum().backward()
    assert_same_spectrum(ours.grad, theirs.grad.numpy())
