"""flow.ops.signatures: the SBP signatures of an op, before it is called."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.sbp import signature
from flowedu.core.values.dtype import float32
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError
from flowedu.errors.nearest import nearest


def signatures(op: Op | str, *specs: Any, **attrs: Any) -> list[signature.Signature]:
    """Return the SBP signatures among which a call of global tensors on a row of devices chooses.

    Args:
        op: an op record, or its name in `flow.ops.REGISTRY`, such as "matmul".
        *specs: for each input a tensor, a Spec, or a shape, which has the dtype float32.
        **attrs: attributes of the op.

    Returns:
        Tuples with a text for each input, then for each output: "S0" (split along axis 0), "B", "P", "Pmax",
        or "Pmin". The last signature has only "B", and is always legal.

    Raises:
        ArgumentError: there is no such op, or an input is none of these.

    Example:
        >>> flow.ops.signatures("matmul", (4, 3), (3, 2))[:2]
        [('S0', 'B', 'S0'), ('B', 'S1', 'S1')]
    """
    if isinstance(op, str):
        if op not in REGISTRY:
            raise ArgumentError(f"signatures: there is no op {op!r}", expected="a name in flow.ops.REGISTRY",
                                got=repr(op), fix=nearest(op, REGISTRY) or "print(*flow.ops.REGISTRY)")
        op = REGISTRY[op]
    inputs = [_as_spec(x) for x in specs]
    return [*signature.signatures(op, inputs, op.complete(attrs))]


def _as_spec(x: Any) -> Spec:
    if isinstance(x, Spec):
        return x
    own = getattr(x, "spec", None)
    if isinstance(own, Spec):
        return own
    if isinstance(x, Sequence) and all(isinstance(n, int) for n in x):
        return Spec(tuple(x), float32)
    raise ArgumentError("signatures: not an input", expected="a tensor, a Spec, or a shape", got=repr(x),
                        fix='flow.ops.signatures("matmul", (4, 3), (3, 2))')
