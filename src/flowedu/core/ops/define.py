"""Definition and registry of ops. An op is an immutable record with the parts of record.py."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flowedu._kernels import NARROW, TABLE
from flowedu.core.ops import axes as equations
from flowedu.core.ops.call import OpBase
from flowedu.core.ops.record import (
    DEFAULTS,
    KINDS,
    Effects,
    Kernel,
    Laws,
    Meaning,
    Signature,
    Split,
    View,
    derive_fields,
    derive_gradients,
    read,
)
from flowedu.core.values.dtype import BY_CODE, float32
from flowedu.core.values.dtype import dtype as dtype_class
from flowedu.core.values.spec import Spec, check_spec
from flowedu.errors import ops as errors
from flowedu.errors.element_types import no_kernel

REGISTRY: dict[str, Op] = {}


class Op(OpBase):
    """One op. A call, with attributes as keywords, runs in the current interpreter (call.pyx).

    The fields are those of the record's parts (record.py), and fields derived from them. They are
    read-only; interpreters store their own data about an op elsewhere.
    """

    def __init__(self, signature: Signature, meaning: Meaning,
                 *parts: Kernel | View | Split | Effects | Laws,
                 grad: dict[str, Callable] | Callable | None = None, doc: str = ""):
        kinds = {type(p) for p in parts}
        if len(kinds) < len(parts) or not kinds <= KINDS or {Kernel, View} <= kinds:
            raise errors.wrong_parts(signature.name, parts)
        fields = {**DEFAULTS, "doc": doc, "made": (signature, meaning, parts, grad, doc)}
        for part in (signature, meaning, *parts):
            fields.update(zip(part._fields, part))
        fields |= derive_fields(fields) | derive_gradients(grad, signature)
        super().__init__(fields)
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: Any) -> None:
        raise errors.record_is_complete(self.name, name, value)

    def __delattr__(self, name: str) -> None:
        setattr(self, name, None)

    def bad_attrs(self, attrs: dict[str, Any]) -> None:
        missing = [n for n in self.required if n not in attrs]
        unknown = [n for n in attrs if n not in self.attr_index]
        raise errors.wrong_attributes(self.name, self.signature, missing, unknown)

    # ---- for the interpreters
    def ask(self, f: Callable, names: dict[str, Any]) -> Any:
        """Call a record's function with the arguments that its parameters name."""
        return f(*[names[p] if p != "attributes" else {n: names[n] for n in self.attrs}
                   for p in self.params[f]])

    def equation(self, specs: Sequence[Spec], attrs: tuple) -> str:
        """Return the axis equation for these inputs, such as "mk,kn->mn"."""
        return self.ask(self.axes, self.bind(specs, attrs))

    def infer(self, specs: Sequence[Spec], attrs: tuple) -> tuple[Spec, ...]:
        """Return the output Specs without computing, or raise a FlowError for invalid inputs."""
        if not self.variadic and len(specs) != len(self.inputs):
            raise errors.wrong_number_of_inputs(self.name, self.signature, specs, self.inputs)
        names = self.bind(specs, attrs)
        if self.check is not None:
            self.ask(self.check, names)
        if self.shape is not None:
            shapes = self.ask(self.shape, names)
            shapes = shapes if len(self.outputs) != 1 else (shapes,)
        else:
            shapes = equations.output_shapes(self, self.ask(self.axes, names), specs)
        types = specs[0].dtype if self.dtype is None else self.ask(self.dtype, names)
        types = types if isinstance(types, tuple) else (types,) * len(self.outputs)
        if len(types) != len(self.outputs) or not all(isinstance(t, dtype_class) for t in types):
            raise errors.not_a_dtype(self.name, types)
        return tuple([check_spec(self.name, Spec(tuple(s), t)) for s, t in zip(shapes, types)])

    def kernel_for(self, specs: Sequence[Spec], outs: Sequence[Spec], names: dict) -> tuple:
        """Return (the kernel for these dtypes or None, the compiled formula or None)."""
        program, code = self.program or names.get("formula"), self.leading(specs, outs, names).code
        row = TABLE.get((self.cpu, code))
        if row is None and code in NARROW and (self.cpu, float32.code) in TABLE:
            return NARROW[code](self, TABLE[self.cpu, float32.code], specs, outs,
                                tuple([names[n] for n in self.attrs]))
        return row, None if program is None else program.compile(self.name,
                                                                 [s.dtype for s in specs],
                                                                 [s.dtype for s in outs])

    def leading(self, specs: Sequence[Spec], outs: Sequence[Spec],
                names: dict[str, Any]) -> dtype_class:
        """Return the dtype that selects the kernel."""
        source = self.key or (self.inputs[0] if self.inputs and not self.variadic else None)
        return (names[source] if source else (specs or outs)[0]).dtype

    def need_kernel(self, specs: Sequence[Spec], outs: Sequence[Spec], attrs: tuple) -> None:
        """Raise a DTypeError if no kernel can run the call. Graph.append calls this method."""
        # No kernel takes tensor buffers and records (codes below 0); JobContext handles these.
        numbers = all(s.dtype.code >= 0 for s in (*specs, *outs))
        if numbers and self.view is None and self.cpu is not None and self.kernel_for(
                specs, outs, self.bind(specs, attrs, outs=outs))[0] is None:
            raise no_kernel(self, specs, attrs, outs, BY_CODE)

    def bind(self, specs: Sequence, attrs: tuple, **more: Any) -> dict[str, Any]:
        """Return {name: value} for `ask`, where the inputs are Specs or arrays."""
        names = {**dict(zip(self.attrs, attrs)), **more}
        if self.variadic:
            names[self.inputs[0]] = tuple(specs)
        elif self.inputs:
            names.update(zip(self.inputs, specs))
        return names

    def __repr__(self) -> str:
        return f"<op {self.signature}>"

    def __reduce__(self) -> tuple:
        return (REGISTRY.__getitem__, (self.name,))


def define(signature: str, meaning: Meaning, *parts: Kernel | View | Split | Effects | Laws,
           grad: dict[str, Callable] | Callable | None = None, doc: str = "") -> Op:
    """Create an op and add it to the registry.

    Args:
        signature: a Python signature, such as `"sum(x, *, axis, keepdims=True) -> y"`.
        meaning, parts: see core/ops/record.py.
        grad: {input name: function}, or one function that returns {input name: gradient}. The
            functions call ops. An input without an entry has no gradient.
        doc: one line for help().
    """
    return enter(Op(read(signature), meaning, *parts, grad=grad, doc=doc))


def enter(op: Op) -> Op:
    """Add an op to the registry. The laws of the tests check all ops of the registry."""
    if op.name in REGISTRY:
        raise errors.repeated_op(op.name)
    REGISTRY[op.name] = op
    return op
