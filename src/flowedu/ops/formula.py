"""Elementwise ops defined by a formula of other ops.

`elementwise("softsign(x) -> y", formula=lambda x: x / (1 + abs_(x)))` defines a complete op. The formula is
called once, by an interpreter that computes nothing but records the tiles of the ops. The result is one fused
kernel, which needs no compiler at run time. Unless `grad` is given, the gradient is derived from the
gradients of the ops in the formula.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flowedu.core.ops.call import interpreter
from flowedu.core.ops.define import Op
from flowedu.core.ops.program import MAX_SLOTS, Formula
from flowedu.core.ops.record import Laws, Split
from flowedu.core.ops.reverse import vjp
from flowedu.core.ops.tiled import elementwise as tiled
from flowedu.core.ops.tiled import function, inputs_of
from flowedu.core.ops.value import Value
from flowedu.core.ops.view import constant
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, DTypeError


def elementwise(signature: str, *parts: Split | Laws, tile: str | None = None,
                formula: Callable | None = None,
                ref: Callable | None = None, grad: dict | Callable | None = None,
                dtype: Callable | None = None, doc: str = "") -> Op:
    """Define a broadcasting elementwise op.

    Args:
        signature: `"softsign(x) -> y"`.
        formula: function of the inputs, written with operators and other elementwise ops.
        tile: alternative to `formula`; see core/ops/tiled.py.
        parts: see core/ops/record.py. ref, grad: as in `define`; both are optional if `formula` is given.
        dtype: rule for the output dtype; default: that of the inputs.
    """
    if formula is None:
        if tile is None or ref is None:
            raise ArgumentError(f"define_elementwise {signature}: no formula",
                                expected="formula, or tile and ref", got=f"tile={tile!r}, ref={ref!r}",
                                fix="formula=lambda x: x / (1 + abs_(x))")
        return tiled(signature, *parts, tile=tile, ref=ref, grad=grad, dtype=dtype, doc=doc)
    names = inputs_of(signature)
    if grad is None:
        grad = formula_gradient(formula, names, signature.rpartition("->")[2].strip())
    if ref is None:
        ref = function(f"lambda {', '.join(names)}: run({', '.join(names)})", {"run": reference(formula)})
    return tiled(signature, *parts, tile=trace(formula, names), ref=ref, grad=grad, dtype=dtype, doc=doc)


class Symbol(Value):
    """Slot of the formula that is traced."""

    __slots__ = ("slot", "spec")

    def __init__(self, slot: int, spec: Spec) -> None:
        self.slot, self.spec = slot, spec


class Tracer:
    """The interpreter that turns op calls into instructions."""

    def __init__(self, nin: int) -> None:
        self.count = nin
        self.instrs: list[tuple] = []
        self.consts: dict[int, Any] = {}
        self.numbers: dict[tuple, Symbol] = {}                 # {(value, dtype): its slot}

    def new(self, spec: Spec) -> Symbol:
        self.count += 1
        return Symbol(self.count - 1, spec)

    def number(self, value: float, dtype: dt.dtype) -> Symbol:
        """Return the symbol of a constant; equal constants share one."""
        key = repr(value), dtype                               # -0.0 is another than 0.0, and nan is itself
        if key not in self.numbers:
            self.numbers[key] = self.new(Spec((), dtype))
            self.consts[self.numbers[key].slot] = value
        return self.numbers[key]

    def run(self, op: Op, inputs: tuple, attrs: tuple) -> Symbol:
        if op is constant:
            return self.number(attrs[op.attr_index["value"]], attrs[op.attr_index["dtype"]])
        if op.program is None:
            raise ArgumentError(f"formula: {op.name} is not elementwise",
                                expected="elementwise ops and operators",
                                got=op.signature, fix="write it as an op made of other ops instead")
        slots = {i: x.slot for i, x in enumerate(inputs)}
        return self.append(op.program, slots, op.infer([x.spec for x in inputs], attrs)[0])

    def append(self, program: Formula, slots: dict[int, int], spec: Spec) -> Symbol:
        """Append the instructions of `program`, with its inputs bound to `slots`."""
        self.count = inline(program, slots, self.instrs, self.consts, self.count)
        return Symbol(slots[program.outs[0]], spec)


def trace(formula: Callable, names: list[str]) -> Formula:
    """Return the Formula of a Python function that calls elementwise ops."""
    tracer = Tracer(len(names))
    inputs = [Symbol(i, Spec((), dt.float32)) for i in range(len(names))]
    with interpreter(tracer):
        out = formula(*inputs)
    if not isinstance(out, Symbol):
        raise DTypeError("formula: the result is not made of ops", expected="an expression of the inputs",
                         got=repr(out))
    if tracer.count > MAX_SLOTS:
        raise ArgumentError("formula: too long for one kernel", expected=f"at most {MAX_SLOTS} slots",
                            got=str(tracer.count), fix="split it into two ops")
    return Formula(len(names), tracer.instrs, [out.slot], tracer.consts)


def inline(formula: Formula, slots: dict[int, int], instrs: list, consts: dict, count: int) -> int:
    """Append a formula to the `instrs` and `consts` of another formula, which has `count` slots.

    slots: {slot of `formula`: slot of the other formula} for the inputs; the function adds the remaining
    slots. Values that the other formula already computes are reused. Return the new number of slots.
    """
    known = {(name, operands): slot for name, slot, operands in instrs}
    for slot, value in formula.consts.items():
        slots[slot] = count
        consts[count] = value
        count += 1
    for name, out, operands in formula.instrs:
        call = name, tuple([slots[o] for o in operands])
        if call not in known:
            known[call] = count
            instrs.append((name, count, call[1]))
            count += 1
        slots[out] = known[call]
    return count


def formula_gradient(formula: Callable, names: list[str], output: str) -> Callable:
    """Return the gradient rule of an op with a formula; it differentiates the ops of the formula."""
    scope = {"vjp": vjp, "formula": formula, "names": names}
    listed = ", ".join(names)
    return function(f"lambda d{output}, {listed}: dict(zip(names, vjp(formula, ({listed},), (d{output},))))",
                    scope)


class _Reference:
    """The interpreter that answers with each op's NumPy meaning."""

    def run(self, op: Op, inputs: tuple, attrs: tuple) -> NumpyValue:
        names = {**dict(zip(op.attrs, attrs)), **dict(zip(op.inputs, [x.array for x in inputs]))}
        return NumpyValue(np.asarray(op.ask(op.ref, names)))


class NumpyValue(Value):
    """An ndarray with the operators of a Value."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    @property
    def spec(self) -> Spec:
        return Spec(self.array.shape, dt.as_dtype(self.array.dtype))


def reference(formula: Callable) -> Callable:
    """Return a function of NumPy arrays that evaluates a formula with the `ref` of each op."""
    def run(*arrays: np.ndarray) -> np.ndarray:
        with interpreter(_Reference()):
            return formula(*[NumpyValue(np.asarray(a)) for a in arrays]).array
    return run
