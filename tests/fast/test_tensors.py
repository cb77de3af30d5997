"""A tensor that reuses the memory of a freed one is new: no state of the old tensor is left, and everything
that it referenced is freed.
"""
from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

import flowedu as flow
from flowedu.core.eager.dispatch import TapeNode
from flowedu.core.values.storage import bytes_in_use

CLASSES = [flow.Tensor, flow.nn.Parameter, type("Own", (flow.Tensor,), {})]


def create_tensors(n: int = 300) -> list:
    """Create tensors with every kind of state, more of them than are cached."""
    found = []
    for i in range(n):
        x = flow.full((2, 3), float(i))
        x.requires_grad = i % 2 == 0
        if i % 3 == 0:
            x.grad = flow.ones(2, 3)
        if i % 5 == 0:
            x = x[1]
        if i % 7 == 0:
            x = x * 2
        if i % 11 == 0:
            with flow.inference_mode():
                x = x + 1
        found.append(x)
    return found


def test_a_reused_tensor_is_new():
    create_tensors()
    for i, x in enumerate([flow.tensor([1.0, 2.0]) * 3 for _ in range(400)]):
        assert (not x.requires_grad and x.grad is None and x.grad_fn is None and x.is_leaf
                and x.link is None), i
        assert (x.epoch == x.out_index == 0 and x.rare is None and not x.inference
                and not weakref.getweakrefcount(x))
        np.testing.assert_array_equal(x.numpy(), [3, 6])


@pytest.mark.parametrize("kind", CLASSES)
def test_reference_counts_of_classes_match_their_instances(kind):
    def one():
        return kind.__new__(kind) if kind is not flow.nn.Parameter else kind(flow.ones(2))

    one()
    before = sys.getrefcount(kind)
    several = [one() for _ in range(1000)]
    assert sys.getrefcount(kind) == before + 1000
    del several
    assert sys.getrefcount(kind) == before


def test_a_step_frees_its_tensors_and_their_attributes():
    def step():
        create_tensors()
        x = flow.ones(3, 3, requires_grad=True)
        (x @ x).relu().sum().backward()

    def left():
        gc.collect()
        return bytes_in_use(), sum(isinstance(x, (flow.Tensor, TapeNode)) for x in gc.get_objects())

    step()
    before, of_none = left(), sys.getrefcount(None)
    for _ in range(20):
        step()
    assert left() == before and abs(sys.getrefcount(None) - of_none) < 1000  # 20 steps create 9,000 tensors


@pytest.mark.parametrize("kind", CLASSES)
def test_weak_references_are_cleared(kind):
    gone = []
    x = kind.__new__(kind)
    at = weakref.ref(x, gone.append)
    del x
    assert gone == [at] and at() is None


@pytest.mark.parametrize("kind", [flow.Tensor, CLASSES[2]])
def test_a_finalizer_that_is_assigned_later_runs_once(kind, monkeypatch):
    alive = []
    with monkeypatch.context() as patch:
        patch.setattr(kind, "__del__", lambda x: alive.append(x), raising=False)
        x = kind.__new__(kind)
        del x
        assert len(alive) == 1 and type(alive[0]) is kind
        alive.clear()
        assert not alive                           # freed without a second call


@pytest.mark.parametrize("link", ["x = x * 1.5", "y = flow.ones(1); y.grad = x; x = y",
                                  "x = x.sin() if i % 2 else x + x[:1]"])
def test_long_chains_are_freed_without_stack_overflow(link):
    """Run in a separate process, which a stack overflow would end."""
    code = f"import flowedu as flow\nx = flow.ones(1, requires_grad={'grad' not in link})\n" \
           f"for i in range(100_000): {link}\ndel x\nprint('done')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8")
    assert ran.stdout == "done\n", ran.stderr[-500:]
