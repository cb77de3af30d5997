"""Every GPU kernel computes what its record defines, for any memory layout, dtype, and size. The simulator's
checks are on, so no kernel reads uninitialized memory, leaves its arrays, or has races.
"""
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from no_kernel import NO_KERNEL
from on_device import launched, raw

from flowedu._kernels import TABLE as CPU
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.dtype import BY_CODE, HALVES, as_dtype, float16, float64
from flowedu.cuda.table import TABLE
from laws.calls import (
    assert_equal_up_to_rounding,
    attributes,
    call_inputs,
    cases,
    label,
    reference,
    run_eagerly,
    strided,
)
from laws.draws import EXACT, KINDS, assert_equal_or_rounded, meaning, most_terms, supported_call_inputs
from laws.test_updates import GROUPS, LAYOUTS, copy_with_layout, group_of

CALLS = cases(lambda op: op.ref is not None and not op.mutates and (op.cpu or op.name, 0) in TABLE)
EXAMPLES = settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))

# Ops with a CPU kernel but no GPU kernel, with reasons. The list may only shrink.
MISSING: dict[str, str] = {REGISTRY[n].cpu: why for n, why in NO_KERNEL.items() if REGISTRY[n].cpu}


@pytest.mark.parametrize("case", CALLS, ids=label)
@EXAMPLES
@given(data=st.data(), kind=st.sampled_from(KINDS))
def test_kernel_equals_reference(case, data, kind):
    op, example = case
    arrays, attrs = data.draw(supported_call_inputs(op, example, kind))
    if op.cpu is None:  # a Python function on the CPU, which supports all NumPy dtypes
        assume((op.name, as_dtype(arrays[0].dtype).code) in TABLE)
    elif any(a.dtype == np.float16 for a in arrays):  # without a kernel: computed in float32 (test_halves.py)
        assume((op.cpu, float16.code) in TABLE)
    for got, want in zip(launched(op, arrays, attrs), meaning(op, arrays, attrs), strict=True):
        assert_equal_or_rounded(got, want, op.name in EXACT, most_terms(op, arrays))


def test_every_cpu_kernel_exists_on_the_gpu_or_is_listed():
    there = {name for name, _ in CPU}
    print({name: MISSING.get(name, [BY_CODE[c].name for n, c in sorted(TABLE) if n == name])
           for name in sorted(there)})
    by_float32 = {key for key in CPU if BY_CODE[key[1]] in HALVES and (key[0], 0) in TABLE}  # cast to float32
    assert {name for name, code in set(CPU) - by_float32 if (name, code) not in TABLE} == set(MISSING)
    of_python = {op.name for op in REGISTRY.values() if op.cpu is None and op.view is None}
    # on a GPU, its attribute is an error code
    packed = {row.name for row in TABLE.values() if row.pack} - {"within"}
    assert {name for name, code in set(TABLE) - set(CPU)} == packed <= of_python


@pytest.mark.parametrize("case", cases(lambda op: op.mutates and op.examples), ids=label)
@EXAMPLES
@given(data=st.data())
def test_writes_match_the_reference(case, data):
    op, example = case
    arrays, attrs = data.draw(call_inputs(op, example, dtypes=(np.float32, np.float64), resize=False))
    arrays = [np.asarray(a, order="C") for a in arrays]
    if op.name == "matmul_update":
        arrays[2] = arrays[2].astype(np.float32)          # the learning rate is always float32
    for got, want in zip(launched(op, arrays, attrs), reference(op, arrays, attrs), strict=True):
        assert_equal_up_to_rounding(got, want, want.dtype, scale=10.0)


@pytest.mark.parametrize("name", GROUPS)
@EXAMPLES
@given(data=st.data())
def test_optimizers(name, data):
    """Several parameters at once, large and small, of any layout, with every attribute drawn."""
    op, rng = REGISTRY[name], np.random.default_rng(data.draw(st.integers(0, 2**31)))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    shape = st.sampled_from([(), (0,), (1,), (3, 5), (64,), (2, 3, 4), (70, 31)])
    shapes = data.draw(st.lists(shape, min_size=1, max_size=4))
    arrays = [np.array([0.1], np.float32), np.array([data.draw(st.integers(-1, 50))], np.int64)]
    for shape in shapes:
        arrays += group_of(name, shape, dtype, rng)
    factors = {n: tuple(data.draw(st.sampled_from([0.0, 0.01, 0.3])) for _ in shapes)
               for n in ("weight_decay", "l1", "l2")}
    factors |= {a: data.draw(st.booleans()) for a in ("do_bias_correction", "nesterov") if a in op.attr_index}
    layouts = data.draw(st.lists(st.sampled_from(LAYOUTS), min_size=1, max_size=7))
    attrs = op.complete({"scale": data.draw(st.sampled_from([1.0, 0.125])), **factors})
    want = reference(op, [a.copy() for a in arrays], attrs)
    mine = [copy_with_layout(a, layouts[i % len(layouts)]) for i, a in enumerate(arrays)]
    for got, w in zip(launched(op, mine, attrs), want, strict=True):
        assert_equal_up_to_rounding(got, w, w.dtype, scale=10.0)


@pytest.mark.parametrize("to", BY_CODE, ids=lambda d: d.name)
@pytest.mark.parametrize("d", BY_CODE, ids=lambda d: d.name)
def test_casts_match_the_cpu(d, to):
    """Compare values that both dtypes can represent, including halves, to the last bit."""
    rng = np.random.default_rng(d.code * 10 + to.code)
    top = 1 if d.name == "bool" else 120
    x = rng.uniform(0 if "u" in d.name[:1] + to.name[:1] or top == 1 else -top, top, (20, 15))
    if d.is_floating_point and to.is_floating_point:
        x[0, :6] = np.nan, np.inf, -np.inf, -0.0, 1e-7, 65520
        x[1] *= 1e-5                                      # subnormal halves
    cast = REGISTRY["cast"]
    raws = raw(cast, np.round(x) if not d.is_floating_point else x, d)
    for layout in range(4):
        at_home = strided(raws, layout)
        got = launched(cast, [at_home], (to,), [d])[0]
        want = raw(cast, x if d.is_floating_point else np.round(x), d, to)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("d", BY_CODE, ids=lambda d: d.name)
@pytest.mark.parametrize("n", [0, 1, 63, 4097])
def test_fill(d, n):
    value = 1 if d.name == "bool" else -2.5 if d.is_floating_point else 100
    got, = launched(REGISTRY["constant"], [], ((n,), value, d))
    np.testing.assert_array_equal(got, np.full(n, raw(REGISTRY["cast"], np.array(value), float64, d),
                                               got.dtype))


SOURCES = [(op, e) for op, e in CALLS if op.random]


@pytest.mark.parametrize("case", SOURCES, ids=label)
def test_random_numbers_are_those_of_the_cpu(case):
    op, example = case
    for n in (4097, 0, 1, 2, 127, 129, 513):
        attrs = (attributes(op, {**example, "shape": (n,)}) if "shape" in op.attr_index
                 else attributes(op, example))
        arrays = [] if not op.inputs else [np.zeros(n, np.float32)]
        for got, want in zip(launched(op, arrays, attrs), run_eagerly(op, arrays, attrs), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
