"""Law: at zeros, at ties, in tensors of one or no element, a gradient is finite wherever the result and its
slope are, and wherever PyTorch's is. (std of equal elements has slope 0, not 0 / 0.)
"""
import numpy as np
import pytest

import flowedu as flow
from common import few, flatten
from flowedu.errors import ArgumentError, FlowError, LinAlgError

from .cases import EVERY
from .inputs import INPUTS, split
from .lines import evaluate_line, gradients, names_in

AS_THEY_ARE = ("n1", "n2", "n3", "e", "e4")  # unchanged: they hold NaN and infinity, or are empty


def fill_floats_with(number):
    return lambda name, a: np.full_like(a, number) if a.dtype.kind == "f" and name not in AS_THEY_ARE else a


def cut(*sizes):
    """Return a function that keeps the first elements along the first and the last axis."""
    def change(name, a):
        if not a.ndim or name in AS_THEY_ARE:
            return a
        if a.ndim == 1:
            return a[:sizes[0]]
        return a[(slice(sizes[0]), *[slice(None)] * (a.ndim - 2), slice(sizes[1]))]
    return change


FILLS = {str(n): fill_floats_with(n) for n in (0.0, 1.0, 0.5, -1.0)}
CHANGES = {**FILLS, "1e-310": fill_floats_with(1e-310), "-1e-310": fill_floats_with(-1e-310),
           "one row": cut(1, None), "one column": cut(None, 1), "one element": cut(1, 1),
           "no row": cut(0, None), "no column": cut(None, 0), "nothing": cut(0, 0)}
TEXTS = dict.fromkeys(split(case)[0] for case in EVERY)

# (inputs, text) -> why the slope of a finite result is not finite
STEEP = {
    **dict.fromkeys([("0.0", "m.sqrt(p)"), ("0.0", "p ** 0.5")], "the slope of a root at 0 is infinite"),
    **dict.fromkeys([("0.0", "(p + 1).acosh()"), *((x, f"m.{f}(u)") for x in ("1.0", "-1.0")
                                                   for f in ("asin", "acos", "arcsin"))],
                    "a circle ends upright"),
    **dict.fromkeys([("-1.0", "p ** a"), ("-1.0", "m.pow(p, b)")], "in the exponent: the logarithm of -1"),
}


def make_leaves(text, module, change):
    out = {}
    for name in names_in(text):
        a = change(name, INPUTS[name])
        out[name] = module.tensor(a)
        if a.dtype == np.float64:
            out[name].requires_grad_()
    return out


def answered(text, module, change):
    """Return (results that are tensors, gradients by name)."""
    values = make_leaves(text, module, change)
    out = [y for y in flatten(evaluate_line(text, module, values)) if isinstance(y, module.Tensor)]
    return out, gradients(out, values, module)


def finite(y) -> bool:
    return bool(np.isfinite(y.detach().numpy()).all()) if y.dtype.is_floating_point else True


@pytest.mark.parametrize("numbers", FILLS)
def test_a_finite_result_has_a_finite_gradient(numbers):
    steep = set()
    for text in TEXTS:
        try:
            out, grads = answered(text, flow, FILLS[numbers])
        except (LinAlgError, ArgumentError):         # matrices of equal elements; negative weights
            continue
        if all(map(finite, out)) and not all(finite(g) for g in grads.values() if g is not None):
            steep.add((numbers, text))
    assert steep <= set(STEEP), "not finite, and not said why"
    assert {row for row in STEEP if row[0] == numbers} <= steep, "these are finite by now"


# text -> why flowedu raises, or is not finite, where PyTorch returns a number
OTHERWISE = {
    **dict.fromkeys(["m.slogdet(dd)", "m.qr(a.T)[1].abs()", "m.logdet(dd @ dd.T)",
                     "m.triangular_solve(a.T, dd)[0]",
                     "m.triangular_solve(a.T, dd, upper=False, transpose=True, unitriangular=True)[0]",
                     "m.cholesky_inverse(m.linalg.cholesky(dd @ dd.T))",
                     "m.cholesky_solve(a.T, m.cholesky(dd @ dd.T))"],
                    "a singular matrix, or one that is not square, is refused; PyTorch divides by 0"),
    "m.linalg.norm(sq, 1)": "the largest of no sums is refused", "m.linalg.norm(sq, float('inf'))": "as that",
    "m.linalg.matrix_norm(B, 1)": "as that", "m.linalg.matrix_norm(B, float('inf'), keepdim=True)": "as that",
    "m.median(i)": "PyTorch gives the smallest int64 for the median of nothing",
    "m.take_along_dim(a, k, 1)": "an index behind the end is refused",
    "m.take_along_dim(a, k[:1], 1)": "as that",
    "B[1:, [0, 1], 1:3]": "an index behind the end is refused, also into nothing",
    "m.bincount(k[0], weights=c)": "weights of another length are refused",
    "m.bincount(k[0], weights=h[0])": "as that", "m.trapezoid(a, c)": "as many places as numbers are needed",
    "m.var(a, dim=(0, 1), correction=2)": "the result is NaN: fewer numbers than the correction",
}


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("numbers", few(CHANGES, {"0.0", "1.0", "one element", "nothing"}.__contains__))
def test_a_gradient_is_finite_where_pytorchs_is(numbers):
    torch = pytest.importorskip("torch")
    wrong = {}
    for text in TEXTS:
        try:
            want, theirs = answered(text, torch, CHANGES[numbers])
        except Exception:
            continue                                             # PyTorch raises
        try:
            got, ours = answered(text, flow, CHANGES[numbers])
        except FlowError as e:
            wrong[text] = str(e)
            continue
        pairs = [(f"result {i}", x, y) for i, (x, y) in enumerate(zip(got, want, strict=True))]
        pairs += [(name, ours[name], g) for name, g in theirs.items() if g is not None
                  and ours[name] is not None]
        for what, x, y in pairs:
            x, y = x.detach().numpy(), y.detach().numpy(force=True)
            if x.shape != y.shape or y.dtype.kind == "f" and (np.isfinite(y) & ~np.isfinite(x)).any():
                wrong[text] = what
            elif y.dtype.kind == "f" and (np.isinf(y) & (x != y) & np.isnan(x)).any():
                wrong[text] = f"{what}: NaN, not infinite"
    assert {text: why for text, why in wrong.items() if text not in OTHERWISE} == {}


@pytest.mark.parametrize("options", [{}, dict(dim=0), dict(dim=(0, 1)), dict(unbiased=False),
                                     dict(dim=1, keepdim=True), dict(dim=0, correction=0)], ids=str)
@pytest.mark.parametrize("call", [flow.std, lambda x, **o: flow.std_mean(x, **o)[0]], ids=["std", "std_mean"])
def test_std_of_equal_elements_has_slope_zero(call, options):
    for dtype in (flow.float32, flow.float64):
        for c in (0.0, 1.0, 0.1, -1 / 3, 1e-30, 3e7):
            x = flow.full((3, 7), c, dtype=dtype, requires_grad=True)
            call(x, **options).sum().backward()
            assert np.abs(x.grad.numpy()).max() <= 1e-6, c
    # a dead channel next to a live one
    mixed = flow.tensor([[2.0, 2.0, 2.0], [1.0, 2.0, 3.0]], requires_grad=True)
    mixed.std(1).sum().backward()
    np.testing.assert_allclose(mixed.grad.numpy(), [[0, 0, 0], [-0.5, 0, 0.5]], atol=1e-7)


@pytest.mark.parametrize("f, pair", [("logaddexp", 0.5), ("logaddexp2", 0.5)])
def test_smooth_where_both_are_equal(f, pair):
    a, b = (flow.tensor([0.0, 2.0, -1e30], dtype=flow.float64, requires_grad=True) for _ in range(2))
    y = getattr(flow, f)(a, b)
    first, = flow.autograd.grad(y.sum(), a, create_graph=True)
    np.testing.assert_allclose(first.tolist(), [pair] * 3, rtol=1e-12)
    second, = flow.autograd.grad(first.sum(), a)
    slope = 0.25 * (np.log(2) if f == "logaddexp2" else 1)
    np.testing.assert_allclose(second.tolist(), [slope] * 3, rtol=1e-9)


def test_sinc_near_zero():
    x = np.array([0.0, 1e-320, -1e-42, 1e-20, 1e-8, 1e-3, 0.0317, 0.0319, -0.4, 1.0, 1e300])
    leaf = flow.tensor(x, requires_grad=True)
    y = flow.sinc(leaf)
    y.sum().backward()
    np.testing.assert_allclose(y.tolist(), np.sinc(x), rtol=1e-15, atol=1e-16)
    small = np.abs(x) < 1e-3
    z = np.pi * x
    with np.errstate(all="ignore"):
        want = np.where(small, -z / 3 * np.pi, np.pi * (np.cos(z) - np.sin(z) / z) / z)
    np.testing.assert_allclose(leaf.grad.numpy()[:-1], want[:-1], rtol=1e-9)


@pytest.mark.parametrize("dtype, tol", [(flow.float32, 3e-4), (flow.float64, 1e-8)])
def test_the_slope_of_a_determinant_is_the_cofactors(dtype, tol):
    """Regular and singular matrices: rank deficiency one, two, and full."""
    a = np.random.default_rng(0).normal(size=(7, 4, 4))
    a[1, :, 0] = a[1, :, 1]
    a[2, 2] = 0
    a[3, 1:3] = 0
    a[4] = 0
    a[5] = 1
    a[6, 3] = a[6, 0] + a[6, 1]
    want = np.empty_like(a)
    for b, i, j in np.ndindex(a.shape):
        want[b, i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(a[b], i, 0), j, 1))
    x = flow.tensor(a, dtype=dtype, requires_grad=True)
    flow.linalg.det(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), want, atol=tol * np.abs(a).max() ** 3)
    for shape in ((1, 1), (0, 0), (0, 3, 3), (2, 0, 0)):
        x = flow.zeros(*shape, dtype=dtype, requires_grad=True)
        flow.linalg.det(x).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), np.ones(shape), rtol=1e-6)


@pytest.mark.parametrize("n", range(5))
@pytest.mark.parametrize("marks", [(-1,), (2, 9), (3, 1), (-9, 2), (7, 7), ()])
def test_a_split_at_marks_is_slices(n, marks):
    x, ends = np.arange(n), [None, *marks, None]
    want = [x[slice(0 if i == 0 else ends[i], ends[i + 1])].tolist() for i in range(len(ends) - 1)]
    assert [p.tolist() for p in flow.tensor_split(flow.tensor(x), marks)] == want
