"""Law: a call on cuda is the call on the CPU, its gradient the CPU's gradient, whatever the memory layout; what has no
kernel says so."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from no_kernel import NO_KERNEL

import flowedu as flow
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.cuda.composed import COMPOSED
from flowedu.cuda.table import TABLE
from flowedu.errors import UnsupportedError
from flowedu.tensor.devices import made_on
from laws.calls import FLOATS, INTS, attributes, call, cases, label, types_of
from laws.draws import EXACT, agree, most_terms
from laws.test_gradients import learnable

few = settings(max_examples=5)
MODULES = {"flowedu.core.ops", "flowedu.ops"}           # records of this package: other tests define ops of their own

# Ops without a kernel: their meaning is a Python function of NumPy arrays.
PYTHON = {op.name for op in REGISTRY.values() if op.cpu is None and op.view is None and op not in COMPOSED}


def key(op, specs, outs, attrs):
    """The row of the table of a call."""
    names = op.bind(specs, attrs, outs=outs)
    source = op.key or (op.inputs[0] if op.inputs and not op.variadic else None)
    return op.cpu, (names[source] if source else (specs[0] if specs else outs[0])).dtype.code


def missing():
    """{kernel name: names of the dtypes it is missing for} among all calls that the laws draw."""
    found = {}
    for op, e in cases(lambda op: op.cpu is not None):
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


def test_what_has_no_kernel():
    """Both lists may only shrink."""
    assert set(NO_KERNEL) == PYTHON
    assert missing() == {}


CALLS = cases(lambda op: op.ref is not None and not op.mutates and op.name not in PYTHON)


def uploaded(a: np.ndarray, layout: int, requires_grad: bool = False):
    """A tensor on cuda with these numbers: row by row, column by column, or every second of others."""
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
    """Values, and gradients where the record has a rule."""
    op, example = case
    arrays, attrs = data.draw(call(op, example, dtypes=(np.float32,) if op.float_only else (np.float32, np.int64)))
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
    terms, weights = most_terms(op, arrays), np.random.default_rng(0)
    exact = op.name in EXACT and op.elementwise is False
    total_here = total_there = None
    for a, b in zip(results(got), results(want), strict=True):
        assert a.is_cuda and not b.is_cuda
        agree(a.cpu().numpy(), b.numpy(), exact, terms)
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
                                           atol=2e-4 * max(1.0, float(np.abs(here[i].grad.numpy()).max(initial=0))))


@pytest.mark.parametrize("name", sorted(PYTHON))
def test_an_op_without_a_kernel_says_what_to_do(name):
    op = REGISTRY[name]
    example = next(e for o, e in cases(lambda o: o is op))
    arrays = [np.ones(s, t) for s, t in zip(example["shapes"], types_of(op, example, np.float32))]
    with pytest.raises(UnsupportedError, match=rf"{name}: there is no CUDA kernel(.|\n)*x\.cpu\(\)"):
        op.call(tuple(flow.tensor(a).cuda() for a in arrays), attributes(op, example))
