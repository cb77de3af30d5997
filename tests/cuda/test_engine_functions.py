"""User-level calls on cuda: every line of tests/tensor/cases.py has the values and gradients of the CPU, and
so does every step of random programs of views and in-place writes.
"""
import functools

import numpy as np
import pytest
from hypothesis import given, settings

import flowedu as flow
from common import flatten
from flowedu.errors import FlowError
from tensor import programs
from tensor.cases import CASTS, CREATION, EVERY, OURS
from tensor.inputs import INPUTS, split


def make_leaves(place):
    """Return the inputs of the lines on a device, floats as float32, the dtype that most kernels support."""
    found = {}
    for name, a in INPUTS.items():
        t = flow.tensor(a.astype(np.float32) if a.dtype == np.float64 else a).to(place)
        found[name] = t.requires_grad_() if t.is_floating_point() and name[0] not in "n" else t
    return found


class Module:
    """The flow module with creation functions that create tensors on a device."""

    def __init__(self, place):
        self.place = place

    def __getattr__(self, name):
        f = getattr(flow, name)
        makes = (name in ("tensor", "zeros", "arange", "full", "eye", "linspace", "logspace")
                 or name.endswith("Tensor"))
        return functools.partial(f, device=self.place) if makes else f


def outcome(text, place):
    names = make_leaves(place)
    out = flatten(eval(text, {"m": Module(place), "np": np, "pad": flow.nn.functional.pad, **names}))
    total = None
    for k, y in enumerate(out):
        if isinstance(y, flow.Tensor) and y.requires_grad and y.node is not None:
            term = (y.float() * (0.3 + 0.1 * k)).sum()
            total = term if total is None else total + term
    if total is not None:
        total.backward()
    return out, {n: t.grad for n, t in names.items() if t.grad is not None}


def assert_close_on_devices(got, want):
    if not isinstance(want, flow.Tensor):
        assert got == want
        return
    assert got.dtype is want.dtype and got.shape == want.shape
    a, b = (x.detach().float().cpu().numpy().astype(np.float64) for x in (got, want))
    np.testing.assert_allclose(a, b, rtol=2e-3 if want.dtype is flow.float16 else 2e-4, atol=2e-4)


FFT = ["m.fft.fft(a, norm='ortho')", "m.fft.irfft(m.fft.rfft(B, dim=1), 3, 1)",
       "m.fft.mul(m.fft.rfft(a), m.fft.rfft(b))"]
LINES = list(dict.fromkeys(EVERY + CASTS + OURS + FFT))


@pytest.mark.parametrize("line", LINES)
def test_a_line_has_the_same_results_on_cuda_and_cpu(line):
    text, _ = split(line.replace("dtype=m.float64", "dtype=m.float32"))
    try:
        want, grads = outcome(text, "cpu")
    except FlowError as e:
        with pytest.raises(type(e)):
            outcome(text, "cuda")
        return
    got, theirs = outcome(text, "cuda")
    assert len(got) == len(want)
    for x, y in zip(got, want):
        assert_close_on_devices(x, y)
        assert not isinstance(x, flow.Tensor) or x.is_cuda or "_indices(" in text, "it came back on the CPU"
    assert theirs.keys() == grads.keys()
    for name in grads:
        assert theirs[name].is_cuda
        assert_close_on_devices(theirs[name], grads[name])


@pytest.mark.parametrize("line", [c for c in CREATION if c.startswith("m.") and c.endswith(")")
                                  and "_like" not in c])
def test_creation_on_cuda_matches_the_cpu(line):
    text, _ = split(line)
    there = eval(text[:-1] + ", device='cuda')", {"m": flow, "np": np})
    here = eval(text, {"m": flow, "np": np})
    assert there.is_cuda and there.device == flow.device("cuda", 0)
    assert_close_on_devices(there, here)


@given(programs.programs)
@settings(max_examples=10)
def test_random_programs_of_views_and_writes(program):
    steps, seed = program
    here = programs.start(flow, seed, flow.tensor)
    there = programs.start(flow, seed, lambda a: flow.tensor(a, device="cuda"))
    for one in steps:
        errors = []
        for values in (here, there):
            try:
                programs.act(flow, values, one)
                errors.append(None)
            except FlowError as e:
                errors.append(type(e))
        assert errors[0] is errors[1], errors
        if errors[0] is not None:
            continue
        for a, b in zip(there, here, strict=True):
            assert a.is_cuda and a.requires_grad == b.requires_grad and a.is_leaf == b.is_leaf
            assert a._version == b._version
            np.testing.assert_allclose(a.detach().cpu().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-9)
    found = []
    for values in (here, there):
        try:
            programs.finish(flow, values)
            found.append([None if t.grad is None else t.grad.cpu().numpy() for t in values[:2]])
        except FlowError as e:
            found.append(type(e))
    if isinstance(found[0], list) and isinstance(found[1], list):
        for a, b in zip(*found):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    else:
        assert found[0] is found[1], found
