"""flow.utils.global_view: to_global and to_local for whole states: nested dicts, lists and tuples of tensors."""
from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping

from flowedu.errors import CallError
from flowedu.tensor import Tensor


def to_global(input, placement=None, sbp=None, warn_on_non_tensor_leaf: bool = True):
    """Every tensor in `input` as a global one; the containers are new ones of the same kind.

    Args:
        input: a tensor, a module (its tensors are exchanged), or a nested dict, list or tuple with tensors in it.
        placement: flow.placement, for all of them.
        sbp: for all of them; or a function of (input, tensor) that says which, to shard a checkpoint, say.
        warn_on_non_tensor_leaf: warn where there are other leaves, which are left as they are.
    """
    if callable(getattr(input, "_apply", None)):
        return input.to_global(placement, (lambda t: sbp(input, t)) if _is_function(sbp) else sbp)
    choose = (lambda t: sbp(input, t)) if _is_function(sbp) else lambda t: sbp
    others = set()
    found = mapped(input, lambda t: t.to_global(placement, choose(t)), lambda x: others.add(type(x).__name__))
    if others and warn_on_non_tensor_leaf:
        warnings.warn(f"global_view.to_global: leaves that are no tensors stay as they are: {', '.join(sorted(others))}",
                      stacklevel=2)
    return found


def to_local(input, *, copy: bool = False):
    """Every global tensor in `input` as this rank's shard."""
    if callable(getattr(input, "_apply", None)):
        return input.to_local()
    return mapped(input, lambda t: t.to_local(copy=copy) if t.is_global else t)


def mapped(x, f: Callable[[Tensor], Tensor], other: Callable | None = None):
    """`x` with f of every tensor in it. other: told of every leaf that is none."""
    if isinstance(x, Tensor):
        return f(x)
    if isinstance(x, Mapping):
        pairs = [(k, mapped(v, f, other)) for k, v in x.items()]
        return OrderedDict(pairs) if isinstance(x, OrderedDict) else dict(pairs)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*[mapped(v, f, other) for v in x])
    if isinstance(x, (list, tuple)):
        return type(x)(mapped(v, f, other) for v in x)
    if other is not None and x is not None:
        other(x)
    return x


def _is_function(sbp) -> bool:
    if sbp is not None and callable(sbp) and not hasattr(sbp, "text"):
        return True
    if isinstance(sbp, str):
        raise CallError("global_view: sbp is a text", expected="flow.sbp.broadcast, a list of those, or a function",
                        got=repr(sbp), fix="flow.sbp.split(0)")
    return False
