"""flow.utils.global_view: to_global and to_local for whole states: nested dicts, lists and tuples of tensors; global_mode,
in which new tensors are global."""
from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping

from flowedu.core.sbp.names import as_sbp
from flowedu.core.sbp.ranks import current
from flowedu.core.values.thread_state import during, thread_state
from flowedu.errors import CallError, CheckError
from flowedu.tensor import Tensor
from flowedu.tensor.destination import Spread
from flowedu.tensor.globals import holds_global, tree_of


def to_global(input, placement=None, sbp=None, warn_on_non_tensor_leaf: bool = True):
    """Every tensor in `input` as a global one; the containers are new ones of the same kind.

    Args:
        input: a tensor, a module (its tensors are exchanged), or a nested dict, list or tuple with tensors in it.
        placement: flow.placement, for all of them.
        sbp: for all of them; or a function of (input, tensor) that says which, to shard a checkpoint, say.
        warn_on_non_tensor_leaf: warn where there are other leaves, which are left as they are.

    Where the placement leaves ranks out, those may pass anything (None, say): they get what its first rank has, so that a
    state which one rank has loaded becomes a global one everywhere. All ranks call.
    """
    if callable(getattr(input, "_apply", None)):
        return input.to_global(placement, (lambda t: sbp(input, t)) if _is_function(sbp) else sbp)
    engine = current()
    if placement is not None and len(engine.owned) < engine.size and len(placement.devices) < engine.size \
            and not holds_global(input):
        input = tree_of(input, placement.devices[0], engine.rank in placement.devices)
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


class global_mode(during):
    """Context manager: what makes tensors makes global ones, where placement and sbp are not said; `x.device` of a global
    tensor is its placement's kind of device. A program for one device then runs on several.

        with global_mode(True, placement=P, sbp=flow.sbp.broadcast):
            noise = flow.randn(2, 3, device=model.weight.device)      # on P's ranks

    Args:
        enabled: False: tensors are local ones again, inside a mode that is on.
        placement, sbp: of what is made. A device= that is given says the kind of device, on the same ranks.
    """

    def __init__(self, enabled: bool, placement=None, sbp=None):
        if enabled and (placement is None or sbp is None):
            raise CheckError("global_mode: a mode that is on needs placement and sbp", expected="both",
                             got=f"placement={placement!r}, sbp={sbp!r}",
                             fix='global_mode(True, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.broadcast)')
        super().__init__(global_mode=Spread(placement, as_sbp(sbp, len(placement.hierarchy), "global_mode"))
                         if enabled else None)


class current_global_mode:
    """The global mode that is on here.

    Attributes: is_enabled; placement; sbp, a tuple with one for each axis of the placement's hierarchy. None: none is on.
    """

    def __init__(self):
        mode = thread_state.global_mode
        self.is_enabled = mode is not None
        self.placement, self.sbp = mode or (None, None)


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
