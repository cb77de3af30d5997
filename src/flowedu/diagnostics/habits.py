"""Translation of calls in the form of OneFlow or NumPy, such as `keepdims=` for keepdim.

Other examples are `size=` instead of separate sizes, `out=` for functions that have it in OneFlow, and
`flow.add` of several tensors. Only calls that would raise an error reach this module, so valid calls have no
overhead. mock/translate.py handles PyTorch's names.
"""
from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from flowedu.core.eager.dispatch import TensorBase, is_grad_enabled
from flowedu.diagnostics import explain
from flowedu.errors import CallError, UnsupportedError, format_value
from flowedu.tensor.dtypes.promotion import can_cast
from flowedu.tensor.gradients.grad_mode import no_grad

SIZED = frozenset("zeros ones empty rand randn new_zeros new_ones new_empty".split())
OUT = frozenset("normal quantile tensordot".split())


def habitual(function, args: tuple, kwargs: dict) -> tuple[object] | None:
    """Return (result of the translated call,), or None for an unknown form of a call.

    `function` is the PublicFunction whose call raised a TypeError.
    """
    name, keywords = function.name, dict(kwargs)
    if name == "add" and function.owner is None and not kwargs:
        tensors = args[0] if len(args) == 1 else args
        if isinstance(tensors, (tuple, list)) and tensors and all(isinstance(x, TensorBase) for x in tensors):
            return (functools.reduce(operator.add, tensors),)
    try:
        signature = inspect.signature(function.function)
    except (TypeError, ValueError):
        return None
    if explain.binds(signature, args, kwargs):           # the signature fits; the error was raised inside
        return None
    parameters = signature.parameters
    if name in SIZED and "size" in keywords and len(args) == (function.owner is not None):
        args = *args, keywords.pop("size")
    if "keepdims" in keywords and "keepdim" in parameters and "keepdim" not in keywords:
        keywords["keepdim"] = keywords.pop("keepdims")
    if "out" in keywords and name in OUT and function.owner is None:
        out = keywords.pop("out")
        if out is None:
            return (again(function, args, keywords),)
        return (into(out, function, args, keywords, parameters),)
    return None if keywords.keys() == kwargs.keys() else (again(function, args, keywords),)


def again(function: Any, args, kwargs: dict):
    """Call the function with translated arguments, with the usual error reports."""
    try:
        return function(*args, **kwargs)
    except (TypeError, AttributeError) as e:
        step: Any = e.__traceback__                      # never None, because e was caught
        better = explain.reworded(function, list(args), kwargs, e.with_traceback(step.tb_next))
        if better is None:
            raise
    raise better


def into(out, function: Any, args: Sequence, kwargs: dict, parameters: Mapping):
    """Write the result of a call to `out`, a tensor or a list of tensors, and return `out`."""
    values = [*args, *kwargs.values()]
    values += [y for x in values if isinstance(x, (tuple, list)) for y in x]
    tensors = [x for x in values if isinstance(x, TensorBase)]
    outs = list(out) if isinstance(out, (tuple, list)) else [out]
    for x in outs:
        if not isinstance(x, TensorBase):
            raise CallError(f"{function.name}: out is not a tensor", expected="a tensor", got=format_value(x),
                            fix="out=flow.empty_like(...)")
    if is_grad_enabled() and any(x.requires_grad for x in (*tensors, *outs)):
        raise UnsupportedError(f"{function.name}: with out= there is no gradient, and an argument "
                               f"requires one",
                               expected="tensors that require none", got="requires_grad=True",
                               fix="leave out= out, or call it under flow.no_grad()")
    if not tensors and "dtype" in parameters:
        kwargs.setdefault("dtype", outs[0].dtype)
    result = again(function, args, kwargs)
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    if len(results) != len(outs):
        raise CallError(f"{function.name}: out must have as many tensors as the result",
                        expected=str(len(results)),
                        got=str(len(outs)), fix="out=(values, indices)" if len(results) == 2
                        else "out=tensor")
    for x, y in zip(outs, results):
        _put(function.name, x, y)
    return out if len(outs) == 1 or not hasattr(result, "_fields") else type(result)(*outs)


def _put(name: str, out, y) -> None:
    if not can_cast(y.dtype, out.dtype):
        raise CallError(f"{name}: the result does not fit the type of out", expected=f"out of {y.dtype}",
                        got=str(out.dtype), fix=f"out.to({y.dtype}) before")
    if out.shape != y.shape:
        if out.numel() or getattr(out, "is_lazy", False):       # memory of a graph's value cannot be replaced
            raise CallError(f"{name}: the result does not fit the shape of out",
                            expected=f"out of shape {tuple(y.shape)}",
                            got=str(tuple(out.shape)), fix=f"out=flow.empty{tuple(y.shape)}")
        out.data = y.to(out.dtype)
        return
    with no_grad():
        out.copy_(y)
