"""flow.utils.global_view: to_global and to_local for nested states, and global_mode."""
from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping

from flowedu.core.sbp.names import as_sbp
from flowedu.core.sbp.ranks import current
from flowedu.core.values.thread_state import during, thread_state
from flowedu.errors import CallError, CheckError
from flowedu.tensor import Tensor
from flowedu.tensor.construction.destination import Spread
from flowedu.tensor.global_tensors.functions import holds_global, tree_of


def to_global(input, placement=None, sbp=None, warn_on_non_tensor_leaf: bool = True):
    """Convert every tensor in a nested structure to a global tensor.

    All ranks must call this function. Ranks outside the placement may pass any value, such as None; they get
    the structure from the placement's first rank. If only one rank has loaded a state, the state thus
    becomes global on all ranks.

    Args:
        input: a tensor, a module (its tensors are replaced), or a nested dict, list, or tuple with tensors.
        placement: flow.placement of all tensors.
        sbp: sbp of all tensors, or a function from (input, tensor) to an sbp, for example to shard a
            checkpoint.
        warn_on_non_tensor_leaf: warn about leaves that are not tensors. They are returned unchanged.
    """
    if callable(getattr(input, "_apply", None)):
        return input.to_global(placement, (lambda t: sbp(input, t)) if _is_function(sbp) else sbp)
    engine = current()
    if placement is not None and len(engine.owned) < engine.size and len(placement.devices) < engine.size \
            and not holds_global(input):
        input = tree_of(input, placement.devices[0], engine.rank in placement.devices)
    choose = (lambda t: sbp(input, t)) if _is_function(sbp) else lambda t: sbp
    others = set()
    result = mapped(input, lambda t: t.to_global(placement, choose(t)),
                    lambda x: others.add(type(x).__name__))
    if others and warn_on_non_tensor_leaf:
        warnings.warn(f"global_view.to_global: leaves that are no tensors stay as they are: "
                      f"{', '.join(sorted(others))}", stacklevel=2)
    return result


def to_local(input, *, copy: bool = False):
    """Convert every global tensor in a nested structure to this rank's shard.

    Args:
        input: a tensor, a module, or a nested dict, list, or tuple with tensors.
        copy: return copies instead of views of the shards.
    """
    if callable(getattr(input, "_apply", None)):
        return input.to_local()
    return mapped(input, lambda t: t.to_local(copy=copy) if t.is_global else t)


class global_mode(during):
    """Context manager in which creation functions without placement and sbp create global tensors.

    In this mode, `x.device` of a global tensor is the type of its placement's devices, so that a program for
    one device runs on several.

        with global_mode(True, placement=P, sbp=flow.sbp.broadcast):
            noise = flow.randn(2, 3, device=model.weight.device)      # on P's ranks

    Args:
        enabled: create global tensors; False creates local tensors inside an enabled mode.
        placement: devices of new tensors; default: None. An argument device= selects another type of device
            on the same ranks.
        sbp: layout of new tensors; default: None.
    """

    def __init__(self, enabled: bool, placement=None, sbp=None):
        if enabled and (placement is None or sbp is None):
            raise CheckError("global_mode: a mode that is on needs placement and sbp", expected="both",
                             got=f"placement={placement!r}, sbp={sbp!r}",
                             fix='global_mode(True, placement=flow.placement("cpu", [0, 1]), '
                             'sbp=flow.sbp.broadcast)')
        super().__init__(global_mode=Spread(placement, as_sbp(sbp, len(placement.hierarchy), "global_mode"))
                         if enabled else None)


class current_global_mode:
    """Active global mode.

    Attributes: is_enabled; placement; sbp, a tuple with one entry per axis of the placement's hierarchy.
    placement and sbp are None outside a global mode.
    """

    def __init__(self):
        mode = thread_state.global_mode
        self.is_enabled = mode is not None
        self.placement, self.sbp = mode or (None, None)


def mapped(x, f: Callable[[Tensor], Tensor], other: Callable | None = None):
    """Apply a function to every tensor of a nested structure and return the new structure.

    Args:
        x: tensor, or nested mappings, lists, tuples, and named tuples.
        f: function of a tensor that returns its replacement.
        other: function called with each leaf that is neither a tensor nor None; default: None, no call.
    """
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
        raise CallError("global_view: sbp is a text",
                        expected="flow.sbp.broadcast, a list of those, or a function",
                        got=repr(sbp), fix="flow.sbp.split(0)")
    return False
