"""Extension slots of ops (core/eager/hooks.pxi), which later chapters fill with `connect`; and calls with
more arguments than the fast eager path supports.
"""
import ast
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import flowedu as flow
from common import HANGS
from flowedu.core.eager import dispatch
from flowedu.core.eager.dispatch import connect, slots
from flowedu.core.ops.define import REGISTRY, define
from flowedu.core.ops.record import Meaning
from flowedu.errors import ArgumentError, FlowError

TABLE = (Path(dispatch.__file__).parent / "hooks.pxi").read_text(encoding="utf-8")
NAMES = re.findall(r'^    "(\w+)": \("(flowedu[\w.]+)"', TABLE, re.M)


def test_an_unknown_slot_raises_and_fills_nothing():
    was = slots.write
    with pytest.raises(ArgumentError, match="no slot 'wirte'"):
        connect(write=print, wirte=print)
    assert slots.write is was


def test_connect_returns_the_previous_hook():
    old = connect(node_name=lambda node: "mine")
    assert list(old) == ["node_name"]
    y = flow.ones(2, requires_grad=True) * 2
    assert y.grad_fn.name() == "mine"
    assert connect(**old)["node_name"](y.grad_fn) == "mine" and y.grad_fn.name() != "mine"


def test_a_node_has_its_ops_name_by_default():
    old = connect(node_name=None)
    try:
        assert (flow.ones(2, requires_grad=True) * flow.ones(2)).grad_fn.name() == "mul_backward"
    finally:
        connect(**old)


@pytest.mark.parametrize("name, module", NAMES)
def test_every_slot_is_filled_by_the_module_in_the_table(name, module):
    __import__(module)
    if name not in ("pack", "line", "watch"):                        # filled on demand
        assert getattr(slots, name) is not None and type(getattr(slots, name)).__name__ != "EmptySlot"


def test_after_the_import_only_chapters_6_and_8_have_slots_to_fill():
    """Runs in a new process, because other tests may have imported modules that fill slots."""
    script = ("import flowedu; from flowedu.core.eager.dispatch import slots; "
              "print([n for n in dir(slots) if type(getattr(slots, n)).__name__.startswith('EmptySlot')])")
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8",
                          timeout=HANGS, check=True)
    assert ast.literal_eval(said.stdout) == [
        "bring", "carry", "device_memory", "launch", "logical", "run_global", "write_parts"]


@pytest.mark.parametrize("name, module, use", [
    ("write", "flowedu.tensor.inplace.history", lambda x: x.__iadd__(1)),
    ("mixed", "flowedu.core.eager.tensor", lambda x: x + 1),
    ("mixed_matmul", "flowedu.core.eager.tensor", lambda x: x @ x),
    ("Tensor", "flowedu.core.eager.tensor", lambda x: x + x),
    ("add", "flowedu.core.eager.tensor", lambda x: x + x), ("div", "flowedu.core.eager.tensor",
                                                            lambda x: x / x),
    ("matmul", "flowedu.core.eager.tensor", lambda x: x.reshape(1, 2) @ x.reshape(2, 1))])
def test_an_empty_slot_raises_with_the_module_that_fills_it(name, module, use):
    x = flow.ones(2)
    old = connect(**{name: None})
    try:
        with pytest.raises(FlowError) as e:
            use(x)
    finally:
        connect(**old)
    assert f"the slot '{name}' is empty" in str(e.value) and f"import {module}" in str(e.value)


@pytest.mark.parametrize("inputs, outputs", [(1, 5), (10, 4), (10, 6), (11, 1), (12, 12), (70, 3)])
def test_calls_with_many_inputs_and_outputs(inputs, outputs):
    name = f"many_{inputs}_{outputs}"
    given, made = (", ".join(f"{n}{i}" for i in range(k)) for n, k in (("x", inputs), ("y", outputs)))
    ref = eval(f"lambda {given}: tuple(i * ({given.replace(', ', ' + ')}) for i in range({outputs}))")
    define(f"{name}({given}) -> {made}", Meaning(",".join(["a"] * inputs) + "->" + ",".join(["a"] * outputs),
                                                 ref=ref))
    try:
        found = REGISTRY[name](*[flow.full((3,), float(i)) for i in range(inputs)])
    finally:
        del REGISTRY[name]
    found = found if isinstance(found, tuple) else (found,)
    assert len(found) == outputs
    for i, y in enumerate(found):
        np.testing.assert_array_equal(y.numpy(), np.full(3, i * sum(range(inputs)), np.float32))
