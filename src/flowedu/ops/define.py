"""define: one op is one record.

The first argument is the op's signature, written as Python writes one: inputs, then after `*` the attributes with
their defaults, then the outputs. A bare attribute is required; `*xs` takes any number of inputs.

    define("matmul(a, b, *, transpose_a=False, transpose_b=False) -> y", ...)

**Every function in a record asks for what it needs by parameter name** and is given just that:

| field | input name | output name | attribute | other names |
|---|---|---|---|---|
| axes, shape, dtype, check, pack, localize, spread | its Spec | - | value | localize: see `define` |
| ref | its ndarray | - | value | |
| grad[input] | its value | its value | value | `dy` (`d` + output name): its gradient; `x_shape`, `x_dtype`: only those |

So the parameter names of a gradient say what backward must keep alive: nobody writes that list twice.
"""
from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from flowedu._kernels import TABLE
from flowedu.blob.dtype import dtype as dtype_class
from flowedu.blob.spec import Spec, check_spec
from flowedu.errors import ArgumentError, DTypeError
from flowedu.ops import axes as equations
from flowedu.ops.core import Entry, OpBase, Rule
from flowedu.ops.pykernel import KERNEL, PyCall

REGISTRY: dict[str, Op] = {}
REQUIRED = object()


class Op(OpBase):
    """One op. Calling it, with attributes as keywords, hands the call to the interpreter in charge (OpBase in core.pyx).

    Fields (see `define` for their meaning): name, inputs, outputs, attrs, variadic, axes, linear, shape, dtype, check,
    ref, cpu, pack, contiguous, view, inplace, grad, localize, fold, rising, spread, examples, domain, float_only, doc.
    """

    def read_signature(self, signature: str) -> None:
        """Set name, inputs, outputs and attributes."""
        self.name, self.inputs, self.variadic, attrs, self.outputs = _parse(signature)
        self.signature = signature
        self.set_attrs(attrs)

    def set_attrs(self, attrs: dict[str, Any]) -> None:
        """Set the attributes: {name: default or REQUIRED}, in the order their values are kept."""
        self.attrs = attrs
        self.attr_index = {n: i for i, n in enumerate(attrs)}
        self.defaults = tuple(attrs.values())
        self.required = tuple(n for n, v in attrs.items() if v is REQUIRED)

    def bad_attrs(self, attrs: dict[str, Any]) -> None:
        """Raise for missing or unknown attributes."""
        missing = [n for n in self.required if n not in attrs]
        unknown = [n for n in attrs if n not in self.attr_index]
        raise ArgumentError(f"{self.name}: wrong attributes", expected=self.signature,
                            got=", ".join([f"no {n}" for n in missing] + [f"unknown {n}" for n in unknown]),
                            fix=f"see help(flow.ops.{self.name}) for the record")

    # ---- what the interpreters ask of a record
    def ask(self, f: Callable, names: dict[str, Any]) -> Any:
        """Call a record's function with the names it asked for."""
        return f(*[names[p] for p in self.params[f]])

    def equation(self, specs: Sequence[Spec], attrs: tuple) -> str:
        """The axis equation for these inputs, such as "mk,kn->mn"."""
        return self.ask(self.axes, self.bind(specs, attrs))

    def infer(self, specs: Sequence[Spec], attrs: tuple) -> tuple[Spec, ...]:
        """Output Specs, before any data exists. Raises a FlowError when the inputs do not fit."""
        self._count(specs)
        names = self.bind(specs, attrs)
        if self.check is not None:
            self.ask(self.check, names)
        if self.shape is not None:
            shapes = self.ask(self.shape, names)
            shapes = shapes if len(self.outputs) != 1 else (shapes,)
        else:
            shapes = equations.output_shapes(self, self.ask(self.axes, names), specs)
        if self.dtype is not None:
            types = self.ask(self.dtype, names)
            types = types if isinstance(types, tuple) else (types,) * len(self.outputs)
        else:
            types = (specs[0].dtype,) * len(self.outputs)
        if len(types) != len(self.outputs) or not all(isinstance(t, dtype_class) for t in types):
            raise DTypeError(f"{self.name}: this is no element type", expected="flow.float32, say", got=repr(types)[:60],
                             fix="dtype=flow.float32")
        return tuple([check_spec(self.name, Spec(tuple(s), t)) for s, t in zip(shapes, types)])

    def _count(self, specs):
        if not self.variadic and len(specs) != len(self.inputs):
            raise ArgumentError(f"{self.name}: wrong number of inputs", expected=self.signature, got=str(len(specs)),
                                fix=f"pass {', '.join(self.inputs)}")

    def prepare(self, specs: Sequence[Spec], attrs: tuple, strides: Sequence | None = None) -> Entry | None:
        """The Entry of a call: output Specs, kernel and attribute block. None: a view those strides do not allow."""
        outs = self.infer(specs, attrs)
        names = self.bind(specs, attrs, outs=outs)
        view = kernel = extra = None
        ints, reals = (), ()
        if self.view is not None:
            view = self.ask(self.view, {**names, "strides": strides[0], "out": outs[0]})
            if view is None:
                return None
        elif self.cpu is None and self.ref is not None:
            kernel, extra = KERNEL, PyCall(self, attrs)
        else:
            kernel, extra = self._kernel(specs, outs, names)
            if self.pack is not None:
                ints, reals = self._bounded(*self.ask(self.pack, names))
        contiguous = [i for i in range(len(specs))
                      if self.contiguous and (self.inputs[0] if self.variadic else self.inputs[i]) in self.contiguous]
        cost = 0 if view else equations.cost(self, specs, outs, self.ask(self.axes, names))
        return Entry(self, attrs, list(specs), outs, kernel, ints, reals, contiguous, cost, extra, view)

    def _bounded(self, ints: Sequence[int], reals: Sequence[float]) -> tuple[Sequence[int], list[float]]:
        """What `pack` gave, if kernels can reckon with it: they multiply strides, pads and sizes, in int64."""
        most = 63 if self.numbers or self.random else 31
        for n in ints:
            if not -2 ** most <= n < 2 ** most:
                raise ArgumentError(f"{self.name}: an attribute is too large", got=str(n),
                                    expected=f"integers in [-2**{most}, 2**{most})", fix="check strides, padding and sizes")
        try:
            return ints, [float(x) for x in reals]
        except OverflowError:
            raise ArgumentError(f"{self.name}: a number is too large for a float64", expected="numbers below 1.8e308",
                                got=f"{max(reals, key=abs)}"[:60], fix="use a smaller number") from None

    def _kernel(self, specs, outs, names):
        """(the kernel for these dtypes or None, the compiled formula or None)"""
        source = self.key or (self.inputs[0] if self.inputs and not self.variadic else None)
        key = names[source] if source else (specs[0] if specs else outs[0])
        program = self.program or names.get("formula")
        return (TABLE.get((self.cpu, key.dtype.code)), None if program is None else
                program.compile(self.name, [s.dtype for s in specs], [s.dtype for s in outs]))

    def need_kernel(self, specs: Sequence[Spec], outs: Sequence[Spec], attrs: tuple) -> None:
        """Raise DTypeError where no kernel can run the call: in a graph, so that the user's line is known. (Of tensor
        buffers and records, which no kernel takes, JobContext says what to do.)"""
        numbers = all(s.dtype.numpy is not None for s in (*specs, *outs))
        if numbers and self.view is None and self.cpu is not None and self._kernel(
                specs, outs, self.bind(specs, attrs, outs=outs))[0] is None:
            raise DTypeError(f"{self.name}: no kernel for these element types", got=", ".join(map(str, specs)) or
                             "no inputs", expected="float32 or float64" + ("" if self.float_only else ", int32 or int64"),
                             fix="convert with flow.cast")

    def set_grad(self, grad) -> None:
        """Work out from the gradient functions' parameter names what they need (see `define`)."""
        table = grad if isinstance(grad, dict) else {"*": grad} if grad else {}
        self.rules, saved = {}, []
        for target, f in table.items():
            need = []
            for p in parameters(f):
                if p[0] == "d" and p[1:] in self.outputs:
                    need.append(("grad", self.outputs.index(p[1:])))
                elif p in self.attr_index:
                    need.append(("attr", self.attr_index[p]))
                elif p.endswith("_shape") and p[:-6] in self.inputs:
                    need.append(("shape", self.inputs.index(p[:-6])))
                elif p.endswith("_dtype") and p[:-6] in self.inputs:
                    need.append(("dtype", self.inputs.index(p[:-6])))
                elif p in self.inputs or p in self.outputs:
                    slot = self.inputs.index(p) if p in self.inputs else ~self.outputs.index(p)
                    if slot not in saved:
                        saved.append(slot)
                    need.append(("saved", saved.index(slot)))
                else:
                    raise ArgumentError(f"define {self.name}: a gradient asks for an unknown name", got=p,
                                        expected=f"names of {self.signature}, d<output>, <input>_shape or <input>_dtype")
            self.rules[target] = (f, tuple(need))
        self.saved = tuple(saved)
        self.saved_inputs = any(s >= 0 for s in saved)
        self.compiled = [Rule(*self.rules[n]) if n in self.rules else None for n in self.inputs]
        self.star = Rule(*self.rules["*"]) if "*" in self.rules else None
        self.any_rule = "*" in self.rules or all(i in self.rules for i in self.inputs)

    def set_spread(self, f: Callable | None) -> None:
        """Set the field `spread` (see `define`)."""
        self.spread = f
        if f is not None:
            self.params[f] = parameters(f)

    def bind(self, specs: Sequence[Spec], attrs: tuple, **more) -> dict[str, Any]:
        """{name: value} for the record's functions, at the level of Specs."""
        names = {**dict(zip(self.attrs, attrs)), **more}
        if self.variadic:
            names[self.inputs[0]] = tuple(specs)
        elif self.inputs:
            names.update(zip(self.inputs, specs))
        return names

    def __repr__(self) -> str:
        return f"<op {self.signature}>"

    def __reduce__(self):
        return (REGISTRY.__getitem__, (self.name,))


def define(signature: str, axes: str | Callable[..., str], *, linear: Sequence = (), ref: Callable | None = None,
           cpu: str | None = None, grad: dict[str, Callable] | Callable | None = None,
           shape: Callable | None = None, dtype: Callable | None = None, check: Callable | None = None,
           pack: Callable | None = None, contiguous: bool = True, view: Callable | None = None,
           inplace: Sequence[str] = (), localize: Callable | None = None, fold: str = "", rising: Sequence = (),
           spread: Callable | None = None, examples: Sequence = (),
           domain: dict[str, str] | None = None, float_only: bool = True, random: bool = False, numbers: bool = False,
           key: str | None = None, program: Any = None, doc: str = "") -> Op:
    """Make an op record and enter it in the registry.

    Args:
        axes: the axis equation, `"mk,kn->mn"`, or a function that returns it. A lower-case letter may be split over
            devices; upper case must stay whole; `1` is a broadcast axis. A lower-case letter absent from an output is
            contracted: splitting it makes that output a partial sum.
        linear: groups of inputs the op is linear in together: `[("a", "b")]` for add, `["a", "b"]` for matmul, which is
            linear in each alone. `"gamma,beta->y"` names the outputs that become partial; the others do not depend on
            the group.
        ref: the meaning, in NumPy; returns an array or a tuple of arrays.
        cpu: name of the kernel (`_kernels/*.pyx`, `table()`). None: `ref` is the kernel, called in Python
            (ops/pykernel.pyx).
        key: the input whose dtype picks the kernel version (default: the first; for sources, the output).
        grad: {input name: function} written in ops, or one function that returns {input name: gradient}.
            An input without entry has no gradient.
        shape: output shape (or tuple of shapes when there are several outputs), where letters alone do not give it.
        dtype: output dtype (or tuple of them); default: that of the first input.
        check: raises a FlowError when the inputs do not fit; runs before `shape`.
        pack: (ints, reals) for the kernel, in the order it reads them.
        contiguous: the kernel wants contiguous inputs (the engine packs strided ones). False: any strides. Or a set of
            input names that must be contiguous.
        view: no kernel; returns (shape, strides, offset) in elements for the output over the first input's memory.
        inplace: inputs whose buffer the first output may reuse when nobody reads them later.
        localize: attributes on one shard: gets Specs of local inputs and `out`, the local output Spec, `full` and
            `full_out`, the whole shapes of the first input and output; returns a dict of changed attributes.
        fold: "max" or "min" for ops that take the largest or smallest: an output that lacks a split letter is then a
            partial maximum ("Pmax"), not a partial sum, and parts of a maximum in all inputs make one.
        rising: inputs, or groups of them as in `linear`, in which the op is nondecreasing, element by element: of parts
            of a maximum or minimum there it makes parts of one.
        spread: signatures that no letter says, because a device must know which part it has: returns {signature: (op that
            a device calls, f)}, where f(start, stop) gives that op's attributes for the device that has the elements
            [start, stop) of the split axis.
        examples: calls the laws try: dicts with "shapes" (one per input) and any attributes.
        domain: {input name: values the laws draw}: "any" (default), "positive", "unit" (-1, 1), "nonzero",
            "above_one", "index:N" (integers in [0, N)), "mask" (int8 zeros and ones), "few" (-1, 0 and 1), "matrix"
            (far from singular), "sorted" (along the last axis).
        float_only: float32 and float64; otherwise also int32 and int64.
        random: the result depends on a seed; the laws compare it with `ref` but do not split it.
        numbers: the integers of `pack` are numbers, not sizes or steps: any int64.
        program: an elementwise formula (ops/formula.py), which lets the plan fuse this op.
        doc: one line for help().
    """
    op = Op()
    op.read_signature(signature)
    name, inputs, outputs = op.name, op.inputs, op.outputs
    op.axes = axes if callable(axes) else (lambda: axes)
    op.linear = tuple(_linear_group(g, outputs) for g in linear)
    op.ref, op.cpu, op.shape, op.dtype, op.check = ref, cpu, shape, dtype, check
    op.pack, op.view, op.localize, op.key, op.random = pack, view, localize, key, random
    op.fold, op.rising = fold, tuple(_linear_group(g, outputs)[0] for g in rising)
    python = cpu is None and view is None
    op.contiguous = (frozenset() if python else frozenset(inputs) if contiguous is True else frozenset(contiguous or ()))
    op.inplace, op.program, op.elementwise = tuple(inplace), program, program is not None
    op.examples, op.domain, op.float_only, op.doc = tuple(examples), domain or {}, float_only, doc
    op.numbers, op.range_help = numbers, None
    op.params = {f: parameters(f) for f in (op.axes, ref, shape, dtype, check, pack, view, localize) if f is not None}
    op.set_spread(spread)
    op.set_grad(grad)
    if name in REGISTRY:
        raise ArgumentError(f"define: an op named {name!r} exists already", fix="choose another name")
    REGISTRY[name] = op
    return op


def _linear_group(group: str | Sequence[str], outputs: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(inputs that may be partial together, outputs that are partial then)."""
    if not isinstance(group, str):
        return tuple(group), outputs
    left, arrow, right = group.partition("->")
    return tuple(left.split(",")), tuple(right.split(",")) if arrow else outputs


def parameters(f: Callable) -> tuple[str, ...]:
    """The parameter names of a record's function."""
    code = getattr(f, "__code__", None)
    if code is not None and not f.__dict__ and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        return code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]      # at once; there are a thousand of them
    return tuple(inspect.signature(f).parameters)


def _parse(signature: str):
    head, arrow, tail = signature.partition("->")
    name, bracket, listed = (part.strip() for part in head.partition("("))
    try:
        if not name.isidentifier():
            raise SyntaxError
        inputs, variadic, attrs = _parse_parameters(bracket + listed)
    except SyntaxError:
        raise ArgumentError("define: the signature is not Python", expected='"name(a, b, *, attr=0) -> y"',
                            got=repr(signature)) from None
    outputs = tuple(n.strip() for n in tail.strip().strip("()").split(",") if n.strip()) if arrow else ("y",)
    return name, inputs, variadic, dict(attrs), outputs


@functools.cache                                                     # a hundred ops are "(x)" or "(x, y)"
def _parse_parameters(listed: str) -> tuple[tuple[str, ...], bool, dict[str, Any]]:
    """(inputs, whether the one input stands for any number, attributes) of "(a, b, *, attr=0)"."""
    a = ast.parse(f"def f{listed}: pass").body[0].args
    attrs = {k.arg: REQUIRED if d is None else ast.literal_eval(d) for k, d in zip(a.kwonlyargs, a.kw_defaults)}
    return (a.vararg.arg,) if a.vararg else tuple(p.arg for p in a.args), a.vararg is not None, attrs
