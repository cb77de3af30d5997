"""Calls with 16-bit floats run slice by slice: slicing changes no value, and scratch does not grow with the
batch.
"""
from types import SimpleNamespace

import numpy as np
import pytest

import flowedu as flow
from amp.test_every_op import CASES, EPSILON, FIRST, HALVES, bits, draw_float32_arrays, refuses, rounded
from common import as_list
from flowedu.core.eager.dispatch import prepare
from flowedu.core.graph.executor import scratch_bytes
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values.spec import Spec, row_major
from flowedu.ops import slices
from laws.calls import attributes, label

# {op: (shapes, attributes)} of calls with n images, rows, or sequences
LARGE = {
    "conv2d": (lambda n: [(n, 16, 28, 28), (24, 16, 3, 3)], dict(pads=(1, 1, 1, 1))),
    "conv2d_input_grad": (lambda n: [(n, 24, 28, 28), (24, 16, 3, 3)], dict(hw=(28, 28), pads=(1, 1, 1, 1))),
    "conv2d_weight_grad": (lambda n: [(n, 24, 28, 28), (n, 16, 28, 28)],
                           dict(kernel=(3, 3), pads=(1, 1, 1, 1))),
    "conv2d_last": (lambda n: [(n, 28, 28, 32), (32, 1, 3, 3)], dict(pads=(1, 1, 1, 1), groups=32)),
    "conv2d_last_norm": (lambda n: [(n, 28, 28, 32), (16, 32, 1, 1), *[(16,)] * 4],
                         dict(epsilon=1e-3, low=0.0, high=6.0)),
    "max_pool2d": (lambda n: [(n, 16, 28, 28)], dict(ksize=(2, 2), strides=(2, 2))),
    "avg_pool2d_grad": (lambda n: [(n, 16, 14, 14)], dict(ksize=(2, 2), strides=(2, 2), hw=(28, 28))),
    "resize2d": (lambda n: [(n, 4, 32, 32)], dict(size=(64, 64), scale=(2.0, 2.0), mode="bilinear")),
    "softmax": (lambda n: [(64 * n, 200)], {}),
    "log_softmax_grad": (lambda n: [(64 * n, 200), (64 * n, 200)], {}),
    "layer_norm": (lambda n: [(64 * n, 200), (200,), (200,)], dict(begin_norm_axis=1, epsilon=1e-5)),
    "layer_norm_grad": (lambda n: [(64 * n, 200), (64 * n, 200), (200,), (64 * n,), (64 * n,)],
                        dict(begin_norm_axis=1)),
    "cumsum": (lambda n: [(64 * n, 200)], dict(axis=1)),
}


@pytest.fixture
def threads():
    """Set the number of threads, and restore it afterwards."""
    before = flow.get_num_threads()
    yield flow.set_num_threads
    flow.set_num_threads(before)


def call_of(name: str, n: int, half):
    shapes, attrs = LARGE[name]
    op = REGISTRY[name]
    return (op, [Spec(s, half) for s in shapes(n)], op.complete({k: v for k, v in attrs.items()
                                                                 if k in op.attr_index}))


def scratch(op, specs, attrs, threads: int) -> int:
    entry = prepare(op, specs, attrs)
    places = [SimpleNamespace(spec=s, strides=row_major(s.shape)) for s in (*specs, *entry.specs)]
    return scratch_bytes(entry, places, threads)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", LARGE)
def test_scratch_does_not_grow_with_the_batch(name, threads):
    """Scratch is a fraction of the float32 size of the operands."""
    one, more = (scratch(*call_of(name, n, flow.bfloat16), threads) for n in (64, 512))
    op, specs, attrs = call_of(name, 512, flow.bfloat16)
    assert more <= max(one, 2 * threads * slices.ROOM) * 1.25
    assert more < sum(4 * s.size for s in (*specs, *op.infer(specs, attrs))) / 4


@pytest.mark.parametrize("half", HALVES, ids=repr)
@pytest.mark.parametrize("name", LARGE)
def test_a_large_call_is_the_float32_call_rounded(name, half, threads):
    """Sums over slices are added in another order than in float32, and may differ by a rounding of the summed
    terms.
    """
    op, specs, attrs = call_of(name, 24, half)
    rng = np.random.default_rng(0)
    narrow = [flow.tensor(rng.uniform(0.1, 1, s.shape).astype("f4")).to(half) for s in specs]
    wanted = as_list(op.call(tuple([x.float() for x in narrow]), attrs))
    for count in (1, 3):
        threads(count)
        for got, want in zip(as_list(op.call(tuple(narrow), attrs)), wanted, strict=True):
            want = bits(want.to(got.dtype))
            np.testing.assert_allclose(bits(got), want, rtol=1.01 * EPSILON[half],
                                       atol=1e-5 * np.abs(want).max(initial=1))


def has_kernel(op) -> bool:
    """Return True if the op has a CPU kernel other than the elementwise engine and cast."""
    return op.cpu not in (None, "elementwise", "cast") and op.view is None and not refuses(op)


def run_in_slices(op, example, half, monkeypatch, run: int):
    """Return the results of a call in a plan with the smallest possible slices, and of float32."""
    monkeypatch.setattr(slices, "ROOM", 1)
    monkeypatch.setattr(slices, "RUN", run)
    attrs = attributes(op, example)
    narrow, wide = rounded(draw_float32_arrays(op, example), half)

    class G(flow.nn.Graph):
        def build(self, *xs):
            return tuple(as_list(op.call(tuple(xs), attrs)))

    return as_list(G()(*narrow)), as_list(op.call(tuple(wide), attrs))


@pytest.mark.parametrize("run", [1, 4])
@pytest.mark.parametrize("case", [(op, e) for op, e in CASES if has_kernel(op)], ids=label)
def test_every_op_can_be_sliced_along_its_axes(case, run, monkeypatch):
    op, example = case
    for got, want in zip(*run_in_slices(op, example, flow.bfloat16, monkeypatch, run), strict=True):
        want = bits(want.to(got.dtype))
        np.testing.assert_allclose(bits(got), want, rtol=1.01 * EPSILON[flow.bfloat16],
                                   atol=1e-5 * np.abs(want[np.isfinite(want)]).max(initial=1))


def test_most_ops_are_sliced(monkeypatch):
    """Along axes that are kept, and along axes that are summed."""
    monkeypatch.setattr(slices, "ROOM", 1)
    found = {}
    for op, example in FIRST:
        if has_kernel(op):
            specs, attrs = ([x.spec for x in rounded(draw_float32_arrays(op, example), flow.bfloat16)[0]],
                            attributes(op, example))
            found[op.name] = slices.slices(op, specs, op.infer(specs, attrs), attrs)
    whole = {name for name, cut in found.items() if cut is None}
    assert len(whole) < len(found) / 4, whole
    assert {"max", "sum"} <= {cut.fold for cut in found.values() if cut is not None}
