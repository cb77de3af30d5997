"""States that optimizers keep for parameters: their first values, copies of saved ones, and their checks."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from flowedu.core.layers.group import State
from flowedu.core.values import dtype as dt
from flowedu.errors import StateError
from flowedu.fast.memory import zeros
from flowedu.tensor import Tensor, full, tensor
from flowedu.tensor.global_tensors.functions import from_logical

SAME = "make the optimizer as it was made when it was saved"      # the fix of an error


def new_state(p: Tensor, s: State) -> Tensor:
    """Return the first value of a state of p."""
    if s.master:
        return p.detach().to(dt.float32)
    if s.initial == 0 and p.global_layout is None and not p._device:
        return zeros(tuple(p.shape), s.spec(p.spec).dtype, Tensor)
    where = {"device": p.device} if p.global_layout is None else {"placement": p.placement, "sbp": p.sbp}
    return full(tuple(p.shape), s.initial, dtype=s.spec(p.spec).dtype, **where)


def write_into(old: Any, new: Any) -> Any:
    """Write `new` into the existing tensor if it fits, because a graph may use that one."""
    if isinstance(old, Tensor) and isinstance(new, Tensor) and old.spec == new.spec \
            and old._device == new._device and old.global_layout is new.global_layout:
        return old.copy_(new)
    return new


def copy_saved(value: Any, p: Tensor, number: int, key: str, dtype: dt.dtype | None = None) -> Any:
    """Return a copy of a saved state of p, with p's device or layout. dtype: None: p's."""
    dtype = dtype or p.dtype
    if not hasattr(value, "numpy"):
        return value
    if tuple(value.shape) != tuple(p.shape):
        raise StateError(f"loaded state dict does not fit: {key} of parameter {number} has another shape",
                         expected=str(tuple(p.shape)), got=str(tuple(value.shape)),
                         fix="make the optimizer over the same parameters, in the same order")
    if isinstance(value, Tensor) and value.is_global and p.is_global:
        return value.detach().to_global(p.placement, p.sbp, copy=True).to(dtype)
    copy = (value.detach()._on_host().clone().to(dtype) if isinstance(value, Tensor)
            else tensor(value.numpy(), dtype=dtype))
    return copy.to(p.device) if p.global_layout is None else from_logical(copy, p.global_layout)


# ---- state dicts
def read_options(name: str, groups: Sequence[Mapping], state_dict: Mapping) -> list[dict]:
    """Return a copy of the options of every saved group. Raise StateError if the groups do not fit."""
    if "param_groups" not in state_dict or "state" not in state_dict:
        raise StateError(f"optim.{name}.load_state_dict: this is no state of an optimizer",
                         expected="a dict with 'state' and 'param_groups'",
                         got=f"keys {list(state_dict)[:5]}", fix="load what optimizer.state_dict() gave")
    saved = state_dict["param_groups"]
    if len(groups) != len(saved):
        raise StateError("loaded state dict has a different number of parameter groups",
                         got=f"{len(saved)}", expected=f"{len(groups)} groups", fix=SAME)
    for number, (group, old) in enumerate(zip(groups, saved)):
        if len(group["params"]) != len(old["params"]):
            raise StateError("loaded state dict contains a parameter group that doesn't match the size "
                             "of optimizer's group",
                             expected=f"{len(group['params'])} parameters in group {number}",
                             got=f"{len(old['params'])}", fix=SAME)
    return [deepcopy(dict(old["_options"])) if "_options" in old
            else deepcopy({k: v for k, v in old.items() if k != "params"}) for old in saved]


def read_states(members: Sequence[Tensor], numbers: Sequence, rule: Sequence[State],
                saved: Mapping) -> list[dict[str, Any]]:
    """Return copies of the saved states of each member of a group. Raise StateError if they do not fit.

    Args:
        numbers: the key in `saved` of each member.
        rule: the states that the optimizer keeps for a parameter.
        saved: {key: {key of a state: value}}.
    """
    result = []
    for p, number in zip(members, numbers):
        own = saved.get(number, {})
        wanted = {s.key: s.spec(p.spec) for s in rule if s.spec(p.spec) is not None}
        if own and set(own) != set(wanted):
            raise StateError("loaded state dict is another optimizer's", got=", ".join(map(str, own)),
                             expected=", ".join(sorted(wanted)) or "no state", fix=SAME)
        result.append({k: copy_saved(v, p, number, k, wanted[k].dtype) for k, v in own.items()})
    return result
