"""Errors for element types without kernels, with a replacement dtype that tests check."""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from flowedu.errors import DTypeError, FlowError, either

HOLDS = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}


def instead(d: object) -> str:
    """Return the advice for an unsupported element type, given as a NumPy dtype or by name."""
    name = str(getattr(d, "name", None) or getattr(d, "__name__", d))
    if name.startswith("complex"):
        return "there are no complex numbers: keep array.real and array.imag as two tensors"
    if name not in HOLDS:
        return "pass flow.float32, say, or convert the array with .astype"
    end = " up to 2**63 - 1" * (name == "uint64")
    return f"flow.{HOLDS[name]} holds the numbers of {name}{end}: array.astype(np.{HOLDS[name]})"


def mixed(fix: str, *types) -> str:
    """Return the advice for mixed dtypes: `fix`, and a note on automatic casts of 16-bit floats."""
    names = {t.name for t in types}
    meet = len(names) > 1 and names <= {"float16", "bfloat16", "float32"}
    return f'{fix}; or compute inside flow.amp.autocast("cpu"), which casts by itself' if meet else fix


def refused(what: str, there: Sequence[str], got: str, before: str = "") -> DTypeError:
    """Return the error for an unsupported dtype.

    Args:
        what: the op.
        there: names of the supported dtypes.
        got: the dtype that was passed.
        before: text before the names.
    """
    best = next((t for t in ("float32", "int64", *there) if t in there), "")
    if not there:
        return DTypeError(f"{what}: no kernel for this element type", got=got,
                          expected="an op that has a kernel",
                          fix="look for the kernel's name in flowedu._kernels.TABLE")
    # Its weights are halves.
    module = ", a module with model.float()" if "float16" in got and best == "float32" else ""
    return DTypeError(f"{what}: no kernel for this element type", expected=before + either(there), got=got,
                      fix=f"convert with flow.cast(x, flow.{best}){module}")


def no_kernel(op, specs: Sequence, attrs: tuple, outs: Sequence, types: Sequence) -> DTypeError:
    """Return the error of a call without a kernel.

    A call is a record, the Specs of its inputs and outputs, and its attributes. The message lists those of
    `types` with which the same call has a kernel. Indices and masks keep their dtypes.
    """
    came, there = op.leading(specs, outs, op.bind(specs, attrs)), []
    kept = [op.domain.get(op.inputs[0 if op.variadic else i], "").startswith(("index", "mask"))
            for i in range(len(specs))]
    for t in types:
        again = [type(s)(s.shape, t) if s.dtype is came and not k else s for s, k in zip(specs, kept)]
        given = attrs
        if not specs:
            given = tuple(t if a is came else a for a in attrs)
        with suppress(FlowError):
            made = op.infer(again, given)
            if op.kernel_for(again, made, op.bind(again, given, outs=made))[0] is not None:
                there.append(t.name)
    error = refused(op.name, there, ", ".join(map(str, specs)) or came.name)
    error.with_texts(fix=mixed(error.fix, *(s.dtype for s in specs if s.dtype.is_floating_point)))
    return error
