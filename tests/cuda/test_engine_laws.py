"""Calls on cuda have the values and gradients of the CPU for any memory layout, and ops without a kernel
raise an error.
"""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from no_kernel import NO_KERNEL

import flowedu as flow
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.ops.record import Meaning, read
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.cuda.table import TABLE
from flowedu.errors import DTypeError, KernelError, UnsupportedError
from flowedu.tensor.devices.conversion import made_on
from laws.calls import FLOATS, INTS, attributes, call_inputs, cases, label, types_of
from laws.draws import EXACT, assert_equal_or_rounded, most_terms
from laws.test_gradients import learnable, setup

few = settings(max_examples=5)
MODULES = {"flowedu.core.ops", "flowedu.ops"}  # records of this package; other tests define their own ops

# Ops whose CPU kernel is a Python function of NumPy arrays.
PYTHON = [op for op in REGISTRY.values() if op.cpu is None and op.view is None]


def key(op, specs, outs, attrs):
    """Return the key of the kernel table for a call."""
    names = op.bind(specs, attrs, outs=outs)
    source = op.key or (op.inputs[0] if op.inputs and not op.variadic else None)
    return op.cpu or op.name, (names[source] if source else (specs[0] if specs else outs[0])).dtype.code


def missing():
    """Return {kernel name: names of the dtypes without a kernel} for all calls that the laws draw."""
    found = {}
    for op, e in cases(lambda op: op.view is None and op.name not in NO_KERNEL):
        for t in FLOATS if op.float_only else FLOATS + INTS:
            try:
                specs = [Spec(tuple(s), as_dtype(d)) for s, d in zip(e["shapes"], types_of(op, e, t))]
                attrs = attributes(op, e)
                where = key(op, specs, op.infer(specs, attrs), attrs)
            except flow.errors.FlowError:
                continue
            if where not in TABLE:
                found.setdefault(where[0], set()).add(as_dtype(t).name)
    return found


def test_ops_without_a_kernel_are_listed():
    """Both lists may only shrink."""
    of_the_cpu = [op for op in REGISTRY.values() if op.cpu and op.name in NO_KERNEL]
    assert set(NO_KERNEL) == {op.name for op in (*PYTHON, *of_the_cpu) if (op.cpu or op.name, 0) not in TABLE}
    assert missing() == {}


CALLS = cases(lambda op: op.ref is not None and not op.mutates and op.name not in NO_KERNEL)


def uploaded(a: np.ndarray, layout: int, requires_grad: bool = False):
    """Copy these values to cuda in row-major order, in column-major order, or as every second element of a
    larger tensor.
    """
    if layout == 1:
        t = flow.tensor(np.array(a.T, order="C")).cuda().permute(*reversed(range(a.ndim)))
    elif layout == 2 and a.ndim:
        t = flow.tensor(np.repeat(a, 2, axis=-1)).cuda()[..., ::2]
    else:
        t = flow.tensor(a).cuda()
    t = t.detach()
    t.requires_grad = requires_grad
    return t


def results(out):
    return out if isinstance(out, tuple) else (out,)


@pytest.mark.parametrize("case", CALLS, ids=label)
@few
@given(data=st.data(), layout=st.integers(0, 2))
def test_cuda_is_cpu(case, data, layout):
    """Compare values, and gradients where the record has a rule."""
    op, example = case
    arrays, attrs = data.draw(call_inputs(op, example, dtypes=(np.float32,) if op.float_only
                                          else (np.float32, np.int64)))
    arrays = [np.array(a, order="C") for a in arrays]
    which = learnable(op, arrays) if op.rules else []
    here = [flow.tensor(a, requires_grad=i in which) for i, a in enumerate(arrays)]
    there = [uploaded(a, layout, i in which) for i, a in enumerate(arrays)]
    if not arrays:
        want = op.call((), attrs)
        with made_on(1):
            got = op.call((), attrs)
    else:
        want, got = op.call(tuple(here), attrs), op.call(tuple(there), attrs)
    with flow.no_grad():                                   # the second run reuses the recorded launch
        second = op.call(tuple(uploaded(a, layout) for a in arrays), attrs) if arrays else got
    for a, b in zip(results(second), results(got), strict=True):
        assert_equal_or_rounded(a.cpu().numpy(), b.detach().cpu().numpy(), False, most_terms(op, arrays))
    terms, weights = most_terms(op, arrays), np.random.default_rng(0)
    exact = op.name in EXACT and op.elementwise is False
    total_here = total_there = None
    for a, b in zip(results(got), results(want), strict=True):
        assert a.is_cuda and not b.is_cuda
        assert_equal_or_rounded(a.cpu().numpy(), b.numpy(), exact, terms)
        if which and b.requires_grad:
            assert a.requires_grad
            w = weights.standard_normal(b.shape).astype(b.dtype.numpy)
            part_here, part_there = (b * flow.tensor(w)).sum(), (a * flow.tensor(w).cuda()).sum()
            total_here = part_here if total_here is None else total_here + part_here
            total_there = part_there if total_there is None else total_there + part_there
    if total_here is not None:
        total_here.backward()
        total_there.backward()
        for i in which:
            if here[i].grad is None:
                assert there[i].grad is None
            else:
                assert there[i].grad.is_cuda
                np.testing.assert_allclose(there[i].grad.cpu().numpy(), here[i].grad.numpy(), rtol=2e-4,
                                           atol=2e-4 * max(1.0,
                                                           float(np.abs(here[i].grad.numpy()).max(
                                                               initial=0))))


RULES = cases(lambda op: bool(op.rules) and op.name not in NO_KERNEL)


@pytest.mark.parametrize("case", RULES, ids=label)
@settings(max_examples=3)
@given(data=st.data())
def test_second_gradients_are_those_of_the_cpu(case, data):
    """Compare the derivative of <gradient, direction> in float64."""
    op, example = case
    arrays, attrs, rng, weights = setup(data, op, example)
    which = learnable(op, arrays)
    directions = [rng.standard_normal(arrays[i].shape) for i in which]
    found = []
    for place in ("cpu", "cuda"):
        ts = [flow.tensor(a, requires_grad=i in which, device=place) for i, a in enumerate(arrays)]
        out = op.call(tuple(ts), attrs)
        out = [y for y in results(out) if y.dtype.is_floating_point]
        total = sum((y * flow.tensor(w, dtype=y.dtype, device=place)).sum() for y, w in zip(out, weights))
        grads = flow.grad(total, [ts[i] for i in which], create_graph=True)
        value = sum((g * flow.tensor(d, device=place)).sum() for g, d in zip(grads, directions))
        if value.requires_grad:
            value.backward()
        assert value.is_cuda == (place == "cuda")
        found.append([value, *[ts[i].grad for i in which]])
    for a, b in zip(*found):
        assert (a is None) == (b is None)
        if a is not None:
            want = a.detach().numpy()
            np.testing.assert_allclose(b.detach().cpu().numpy(), want, rtol=1e-8,
                                       atol=1e-8 * max(1.0, float(np.abs(want).max(initial=0))))


def test_an_op_without_a_kernel_reports_a_fix():
    """A custom op in Python raises, even if it has the name of one of our kernels."""
    for name in ("my_op_of_this_law", "fill"):
        op = Op(read(f"{name}(x) -> y"), Meaning("a->a", lambda x: x + 1))
        with pytest.raises(UnsupportedError, match=rf"{name}: there is no CUDA kernel(.|\n)*x\.cpu\(\)"):
            op.call((flow.ones(3).cuda(),), ())
        assert op.call((flow.ones(3),), ()).numpy().tolist() == [2, 2, 2]


@pytest.mark.parametrize("name", ["inverse", "solve"])
def test_a_singular_matrix_is_reported_at_synchronization(name):
    a = flow.tensor(np.stack([np.eye(3), np.ones((3, 3)), np.zeros((3, 3))]).astype(np.float32)).cuda()
    y = REGISTRY[name](*[a, a][:len(REGISTRY[name].inputs)])
    with pytest.raises(KernelError, match=f"{name}: the matrix is singular(.|\n)*matrix [12] of the batch"):
        y.cpu()
    assert REGISTRY["det"](a).cpu().numpy().tolist() == [1, 0, 0]
    flow.cuda.synchronize()                                          # reported only once


@pytest.mark.parametrize("shape", [(0, 3, 3), (2, 0, 0), (0, 0), (1, 1), (2, 40, 40)])
def test_matrices_of_any_size(shape):
    a = np.random.default_rng(0).standard_normal(shape)
    n = shape[-1]
    t = flow.tensor(a).cuda()
    np.testing.assert_allclose(REGISTRY["inverse"](t).cpu().numpy(), np.linalg.inv(a), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(REGISTRY["det"](t).cpu().numpy(), np.linalg.det(a), rtol=1e-8)
    for k in (0, 1, 5):
        b = np.random.default_rng(1).standard_normal((*shape[:-1], k))
        y = REGISTRY["solve"](t.permute(*range(len(shape) - 2), -1, -2), flow.tensor(b).cuda())
        np.testing.assert_allclose(y.cpu().numpy(), np.linalg.solve(np.swapaxes(a, -1, -2), b), rtol=1e-7,
                                   atol=1e-7)
    assert n == shape[-2]


def test_an_underflowing_determinant_is_not_a_singular_matrix():
    a = flow.tensor(np.eye(40) * 1e-10).cuda()
    np.testing.assert_allclose(REGISTRY["inverse"](a).cpu().numpy(), np.eye(40) * 1e10)


@pytest.mark.parametrize("n", [1, 33, 300])
def test_indices_in_long_rows(n):
    rng = np.random.default_rng(n)
    x = rng.integers(0, 9, (3, n)).astype(np.float32)
    x[1, ::5] = np.nan
    rows = np.sort(x, -1)
    for name, arrays, attrs in (("mode_place", [x], {}), ("extreme_place", [x],
                                                          {"axis": 1, "smallest": True}),
                                ("searchsorted", [rows, x], {"right": True}),
                                ("searchsorted", [rows[1], x], {})):
        want = REGISTRY[name](*map(flow.tensor, arrays), **attrs)
        got = REGISTRY[name](*[flow.tensor(a).cuda() for a in arrays], **attrs)
        np.testing.assert_array_equal(got.cpu().numpy(), want.numpy(), err_msg=name)
    with pytest.raises(DTypeError, match="one element type"):
        REGISTRY["searchsorted"](flow.tensor(rows[0]).cuda(), flow.tensor([1]).cuda())


def test_lu_uses_the_largest_pivot():
    for a in (np.eye(5)[::-1].copy(), np.array([[1e-20, 1.0], [1.0, 1.0]]),
              np.array([[0, 2.0, 1], [1, 1, 1], [4, -1, 0]]), np.roll(np.eye(70), 35, 0)):
        t = flow.tensor(a).cuda()
        np.testing.assert_allclose(REGISTRY["inverse"](t).cpu().numpy(), np.linalg.inv(a), rtol=1e-12,
                                   atol=1e-12)
        np.testing.assert_allclose(REGISTRY["det"](t).cpu().numpy(), np.linalg.det(a), rtol=1e-12)
