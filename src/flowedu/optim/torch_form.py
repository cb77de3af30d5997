"""flowedu's optimizers in PyTorch's form: PyTorch's state_dict, and a step count per parameter.

These are the optimizers of torch.optim, and those of flow.optim that are missing in OneFlow (by_formula.py).
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any

import numpy as np

from flowedu.core.layers.group import UpdateRule
from flowedu.core.values import dtype as dt
from flowedu.errors import StateError, UnsupportedError
from flowedu.optim import base
from flowedu.optim.group import ParamGroup
from flowedu.optim.states import SAME, copy_saved
from flowedu.tensor import Tensor, tensor

# states with OneFlow's names in flowedu
KEYS = {"momentum_buf": "momentum_buffer", "square_avgs": "square_avg", "acc_deltas": "acc_delta"}
HINTS = ("foreach", "fused", "capturable", "differentiable")


class _Any(type):
    """Metaclass that makes isinstance(x, Optimizer) also True for flowedu's own optimizers."""

    def __instancecheck__(cls, x: object) -> bool:
        return isinstance(x, base.Optimizer) if cls is Optimizer else super().__instancecheck__(x)


class Optimizer(base.Optimizer, metaclass=_Any):
    """Base class of PyTorch's optimizers and of user-defined ones with their own `step()`.

    Attributes: param_groups; state, {parameter: {key: value}}, empty for a new parameter; defaults.

    Args:
        params: parameters, (name, parameter) pairs, or dicts with "params" and their own options.
        defaults: {option: value}, used by groups that do not set the option.
    """

    def __init__(self, params: Iterable, defaults: Mapping[str, Any]):
        self.hints(**{name: defaults[name] for name in HINTS if name in defaults})
        base.Optimizer.__init__(self, params, defaults)

    def check(self, group: Mapping[str, Any]) -> None:
        if "lr" in group:                                 # user-defined optimizers may have none
            super().check(group)

    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add parameters: {"params": ..., option: value, ...}."""
        if isinstance(param_group, Mapping) and "params" in param_group:
            members = param_group["params"]
            members = [members] if isinstance(members, Tensor) else list(members)
            named = bool(members) and all(isinstance(m, tuple) and len(m) == 2 for m in members)
            param_group = {**param_group, "params": [m[1] for m in members] if named else members}
            if named:
                param_group["param_names"] = [m[0] for m in members]
        super().add_param_group(param_group)
        lr = param_group.get("lr", self.defaults.get("lr"))
        if isinstance(lr, Tensor):                        # not a copy, because the program may change it
            self.param_groups[-1]["lr"] = lr

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        rule = super().update_of(group)
        return rule._replace(states=tuple(s._replace(key=KEYS.get(s.key, s.key)) for s in rule.states))

    # ---- state_dict
    def keys(self, group: Mapping[str, Any]) -> set[str] | None:
        """Return the state keys of a parameter in a group with these options.

        None means that the program defines the keys.
        """
        return None

    def state_dict(self) -> dict:
        """Return {"state": {0: {key: tensor}, ...}, "param_groups": [{option: value, "params": numbers}]}.

        Parameters are numbered in the order of the groups. Those without a state are left out. The tensors
        are not copies, so later steps change them.
        """
        numbers = {id(p): i for i, p in enumerate(self._parameters())}
        return {"state": {numbers[id(p)]: own for p, own in self.state.items() if own and id(p) in numbers},
                "param_groups": [{**{k: v for k, v in g.items() if k != "params"},
                                  "params": [numbers[id(p)] for p in g["params"]]}
                                 for g in self.param_groups]}

    def load_state_dict(self, state_dict: Mapping) -> None:
        """Restore states (copied) and options from a state_dict of PyTorch or flowedu.

        Raises:
            StateError (a ValueError): the state is that of other groups or of another optimizer. In this case
                nothing is changed.
        """
        what = f"optim.{type(self).__name__}.load_state_dict"
        if "param_groups" not in state_dict or "state" not in state_dict:
            raise StateError(f"{what}: this is no state of an optimizer",
                             expected="a dict with 'state' and 'param_groups'",
                             got=f"keys {list(state_dict)[:5]}", fix="load what optimizer.state_dict() gave")
        groups, saved, found = self.param_groups, state_dict["param_groups"], state_dict["state"]
        sizes, theirs = ([len(g["params"]) for g in some] for some in (groups, saved))
        if len(groups) != len(saved):
            raise StateError("loaded state dict has a different number of parameter groups",
                             got=f"{len(saved)}", expected=f"{len(groups)} groups", fix=SAME)
        if sizes != theirs:
            raise StateError("loaded state dict contains a parameter group that doesn't match the size of "
                             "optimizer's group", expected=f"{sizes} parameters", got=f"{theirs}", fix=SAME)
        states, options = defaultdict[Any, dict](dict), []
        for group, old in zip(groups, saved):
            new = deepcopy(dict(old.get("_options", {k: v for k, v in old.items() if k != "params"})))
            options.append(new)
            self.check({**group, **new})
            keys = self.keys({**group, **new})
            for p, number in zip(group["params"], old["params"]):
                own = {KEYS.get(k, k): v for k, v in found.get(number, {}).items() if v is not None}
                # Flowedu's form: one number for all.
                if own and "step" in found and keys and "step" in keys:
                    own = {"step": float(found["step"]), **own}
                if own and keys is not None and {*own} != keys:
                    raise StateError("loaded state dict is another optimizer's", got=", ".join(map(str, own)),
                                     expected=", ".join(sorted(keys)) or "no state", fix=SAME)
                if own:
                    states[p] = {k: self._copy_saved_value(v, p, number, k) for k, v in own.items()}
        for group, new in zip(groups, options):
            group.update(new)
        self.__setstate__({"state": states, "param_groups": groups})    # subclasses override it

    def _copy_saved_value(self, value: Any, p: Tensor, number: int, key: str) -> Any:
        """Return a copy of a saved value.

        A number stays a number; a tensor gets its parameter's device or layout.
        """
        if not hasattr(value, "numpy"):
            return deepcopy(value)
        shape = tuple(value.shape)
        if key == "step" or shape == () != tuple(p.shape):
            return tensor(np.array((value._on_host() if isinstance(value, Tensor) else value).numpy()))
        return copy_saved(value, p, number, key)


class Counting(Optimizer):
    """Base class of optimizers whose state "step" counts the steps in which a parameter had a gradient."""

    def keys(self, group: Mapping[str, Any]) -> set[str]:
        return {"step", *(s.key for s in self.update_of(group).states)}

    def _new_state(self, p: Tensor, group: ParamGroup) -> Iterator[Tensor]:
        values = list(super()._new_state(p, group))
        self.state[p] = {"step": single(0.0), **self.state[p]}
        return iter(values)

    def load_state_dict(self, state_dict: Mapping) -> None:
        super().load_state_dict(state_dict)
        for own in self.state.values():
            if not isinstance(own["step"], Tensor):       # PyTorch before 1.12
                own["step"] = single(own["step"])

    def _update(self, group: ParamGroup) -> None:
        """Make one call for all parameters with the same number of steps."""
        alike: dict[int, list[tuple[Tensor, np.ndarray]]] = {}
        for p in group["params"]:
            if p._grad is not None:
                if not self.state.get(p):
                    self._new_state(p, group)
                steps = self.state[p]["step"].numpy()
                alike.setdefault(int(steps), []).append((p, steps))
        for before, some in alike.items():
            self._steps[0] = before
            self._updated(group, [p for p, _ in some])
            for _, steps in some:
                steps += 1


def single(value: float) -> Tensor:
    """Return a number in PyTorch's form: float32, 0-dim, on the CPU."""
    return tensor(float(value), dtype=dt.float32)


def no_rule(what: str) -> UnsupportedError:
    """Return the error for an optimizer that nn.Graph does not support."""
    known = "SGD, Adam, AdamW, LAMB, RMSprop, Adagrad or Adadelta"
    return UnsupportedError(f"optim.{what}: not in an nn.Graph", got=what,
                            expected=f"a rule that graphs know: {known}",
                            fix="optimizer.step() after loss.backward(), outside a graph")
