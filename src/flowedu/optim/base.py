"""Base class of the tensor optimizers: parameter groups with options, and a state for each parameter.

A subclass defines its update in `update_of`: an op, its attributes, and the states it needs. `step()` calls
that op with all parameters of a group at once; nn.Graph appends the same op with the same attributes to a
training graph.
"""
from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from flowedu.core.eager.dispatch import set_grad_enabled
from flowedu.core.layers.group import BaseOptimizer
from flowedu.core.values import dtype as dt
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import (
    ArgumentError,
    CallError,
    DeviceError,
    HyperparameterError,
    UnsupportedError,
)
from flowedu.errors.ignored import refuse_ignored
from flowedu.errors.once import say_once
from flowedu.optim.clipping import ByNorm
from flowedu.optim.group import ParamGroup, as_groups, check_member
from flowedu.optim.operands import by_device, on_parts
from flowedu.optim.states import copy_saved, new_state, read_options, read_states, write_into
from flowedu.tensor import Tensor, tensor

CLIP = ("clip_grad_max_norm", "clip_grad_norm_type")


class Optimizer(BaseOptimizer):
    """Base class of optimizers.

    Attributes: param_groups, a list of dict-like groups; state, {parameter: {key: tensor}}; defaults.

    Args:
        params: parameters, or dicts with "params" and their own options: `[{"params": a, "lr": 0.1},
            {"params": b}]`.
        defaults: {option: value}, used by groups that do not set the option.

    Note:
        The option master_weights=True of all optimizers keeps a float32 copy of each 16-bit parameter in the
        state, "master_weight". The step updates the copy, and the parameter is the rounded copy
        (optim/master.py).
    """

    # Methods that only PyTorch calls; optimizers with an update rule add _init_group.
    _uncalled: tuple[str, ...] = ("_optimizer_step_code", "_patch_step_function", "profile_hook_step")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.step.__module__.partition(".")[0] == "flowedu":
            refuse_ignored(cls, "override step")

    def __init__(self, params: Iterable, defaults: Mapping[str, Any]):
        self.defaults = dict(defaults)
        # user-defined optimizers read it early
        self.state: dict[Tensor, dict[str, Tensor]] = defaultdict(dict)
        self.param_groups: list = []                    # of ParamGroup
        self.count_ = tensor([0], dtype=dt.int64)
        self._steps = self.count_.numpy()
        for group in as_groups(f"optim.{type(self).__name__}", params):
            self.add_param_group(group)

    def clipping_of(self, group: Mapping[str, Any]) -> ByNorm | None:
        """Return the clipping rule of a graph for a group with these options."""
        bound, kind = (group.get(k) for k in CLIP)
        return None if bound is None or kind is None else ByNorm(bound, kind)

    def check(self, group: Mapping[str, Any]) -> None:
        """Raise HyperparameterError (a ValueError and AssertionError) for an option out of range."""
        self.need(group["lr"] >= 0, "learning rate", group["lr"])
        self.need(group.get("weight_decay", 0) >= 0, "weight_decay value", group.get("weight_decay"))
        wants = group.get("master_weights", False)
        self.need(isinstance(wants, bool), "master_weights value", wants,
                  "True (keep float32 copies of 16-bit parameters) or False")

    def hints(self, differentiable: bool = False, **hints: bool | None) -> None:
        """Accept PyTorch's and OneFlow's options about speed; reject `differentiable`."""
        name = f"optim.{type(self).__name__}"
        if differentiable:
            raise UnsupportedError(f"{name}(differentiable=True): a step is in place and not recorded",
                                   expected="differentiable=False", got="True",
                                   fix="write p - lr * flow.autograd.grad(loss, p, create_graph=True)[0]")
        for option, value in hints.items():
            if value:
                say_once(f"{name}({option})", "all parameters of a group are updated by one call in any case",
                         4)

    def need(self, holds: bool, what: str, got: Any, expected: str = "0 or more") -> None:
        if not holds:
            name = f"optim.{type(self).__name__}"
            raise HyperparameterError(f"{name}: Invalid {what}: {got}", expected=expected, got=repr(got),
                                      fix=f"change it: {name}(model.parameters(), ...)")

    # ---- groups
    def add_param_group(self, param_group: Mapping[str, Any]) -> None:
        """Add parameters: {"params": ..., option: value, ...}."""
        name = f"optim.{type(self).__name__}"
        if not isinstance(param_group, Mapping) or "params" not in param_group:
            raise CallError(f"{name}: a parameter group is a dict with the key 'params'",
                            got=repr(param_group)[:80],
                            expected='{"params": [w, b], "lr": 0.1}',
                            fix="do not mix parameters and dicts in one list")
        members = param_group["params"]
        members = [members] if isinstance(members, Tensor) else list(members)
        taken = {id(p) for g in self.param_groups for p in g["params"]}
        members = [check_member(name, i, getattr(p, "origin", p), taken) for i, p in enumerate(members)]
        group = ParamGroup({**deepcopy(self.defaults), **{k: v for k, v in param_group.items()
                                                          if k != "params"}})
        given = [k for k in CLIP if group.get(k) is not None]
        if len(given) == 1:
            raise ArgumentError(f"{name}: {given[0]} alone",
                                expected=" and ".join(CLIP) + " both, or neither",
                                got=f"{given[0]}={group[given[0]]!r}",
                                fix='add "clip_grad_norm_type": 2.0, say')
        self.check(group)
        dict.__setitem__(group, "params", members)
        self.param_groups.append(group)

    # ---- a step
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients to None, or to zeros.

        Args:
            set_to_none: False fills the gradients with zeros.
        """
        self._eager_only("zero_grad")
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                elif p.grad is not None:
                    if p.grad.requires_grad:
                        p.grad = p.grad.detach()
                    p.grad.zero_()

    def step(self, closure: Callable | None = None) -> Any:
        """Update every parameter that has a gradient.

        Args:
            closure: function that computes loss and gradients; default: None.

        Returns:
            The result of closure, or None.
        """
        loss = None
        if closure is not None:
            old = set_grad_enabled(True)
            try:
                loss = closure()
            finally:
                set_grad_enabled(old)
        if thread_state.tracer is not None:
            self._eager_only("step")
        old = set_grad_enabled(False)
        try:
            for group in self.param_groups:
                self._update(group)
        finally:
            set_grad_enabled(old)
        self._steps[0] += 1
        return loss

    def _update(self, group: ParamGroup) -> None:
        """Make one step of this group."""
        self._updated(group, group["params"])

    def _updated(self, group: ParamGroup, members: Sequence[Tensor]) -> None:
        """Update the members that have a gradient with one call."""
        update, learning_rate = group.ready or self._ready(group)
        op, attrs, keys = update
        rate, number = learning_rate
        lr = group["lr"]
        if number[0] != lr:
            number[0] = lr
        operands = [rate, self.count_]
        if not keys:
            for p in members:
                g = p._grad
                if g is not None:
                    operands += (p, g) if p.global_layout is None else on_parts(op, p, g)
        else:
            for p in members:
                g = p._grad
                if g is not None and p.global_layout is not None:
                    own = self.state.get(p)
                    operands += on_parts(op, p, g, *([own.get(k, p) for k in keys] if own
                                                     else self._new_state(p, group)))
                elif g is not None:
                    own = self.state.get(p)
                    operands += (p, g)
                    operands += [own.get(k, p) for k in keys] if own else self._new_state(p, group)
        if len(operands) == 2:                              # no member has a gradient
            return
        if not operands[2]._device:
            try:
                op.call(tuple(operands), attrs)
                return
            except DeviceError:                            # the first one is on the CPU, but others are not
                pass
        for some in by_device(operands, len(keys) + 2):
            op.call(some, attrs)

    def _ready(self, group: ParamGroup) -> tuple:
        """Compute the values that a step needs from the options.

        They are (op, attributes, keys of the states) and (tensor of the rate, its value).
        """
        refuse_ignored(type(self), "override step without super().step()")
        self.check(group)
        rule = self.update_of(group)
        for p in group["params"]:                # a changed option may require one more state
            if self.state.get(p):
                self.state_of(p, group)
        rate = tensor([0.0], dtype=dt.float64)
        update = rule.op, rule.op.complete(rule.attrs), [s.key for s in rule.states]
        group.ready = update, (rate, rate.numpy())
        return group.ready

    def _new_state(self, p: Tensor, group: ParamGroup) -> Iterator[Tensor]:
        own = self.state_of(p, group)
        # p: its own master weights
        return iter([own.get(s.key, p) for s in self.update_of(group).states])

    def state_of(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return {key: tensor}, the states of `p`, created if missing.

        The tensors are not copies. Eager steps and graphs write into them.
        """
        states = self.update_of(group).states
        own = self.state.setdefault(p, {}) if states else {}
        for s in states:
            spec = s.spec(p.spec)
            if spec is None:
                # A parameter that is now float32 needs no copy.
                own.pop(s.key, None)
            elif s.key not in own:
                own[s.key] = new_state(p, s)
            # Master weights since the last step.
            elif own[s.key].dtype is not spec.dtype:
                own[s.key] = own[s.key].to(spec.dtype)
        return own

    def _eager_only(self, what: str) -> None:
        if thread_state.tracer is not None:
            raise ArgumentError(f"optim.{type(self).__name__}.{what}: eager tensors supported only",
                                got="a call in build() of an nn.Graph", expected="loss.backward() alone",
                                fix="leave it to the graph")

    def clip_grad(self) -> None:
        """Clip gradients by the options `clip_grad_max_norm` and `clip_grad_norm_type` of each group.

        Call this method between the backward pass and `step()`. An nn.Graph clips the gradients itself.
        """
        from flowedu.optim.clip_grad import clip_grad_norm_
        for group in self.param_groups:
            if group.get(CLIP[0]) is not None:
                clip_grad_norm_(group["params"], group[CLIP[0]], group[CLIP[1]], True)
            else:
                warnings.warn("To enable clip_grad, passing the `clip_grad_max_norm` and "
                              "`clip_grad_norm_type` parameters when instantializing the Optimizer.",
                              stacklevel=2)

    # ---- state_dict
    def state_dict(self) -> dict:
        """Return the number of steps, the states, and the options of all groups.

        The form is {"state": {"step": number of steps, 0: {key: tensor}, ...}, "param_groups": [{"_options",
        "_enable_clip_grad", "params": numbers}]}. Parameters are numbered in the order of the groups. The
        tensors are not copies, so later steps change them.
        """
        numbers = {id(p): i for i, p in enumerate(self._parameters())}
        state: dict = {"step": int(self._steps[0])}
        state.update({numbers[id(p)]: self.state.get(p, {}) for p in self._parameters()})
        return {"state": state, "param_groups": [
            {"_options": {k: v for k, v in g.items() if k != "params"},
             "_enable_clip_grad": g.get(CLIP[0]) is not None,
             "params": [numbers[id(p)] for p in g["params"]]} for g in self.param_groups]}

    def load_state_dict(self, state_dict: Mapping) -> None:
        """Restore steps, states (copied), and options, including the learning rate.

        Existing states are overwritten in place, so that graphs that use them continue with the loaded
        values.

        Args:
            state_dict: result of state_dict.

        Raises:
            StateError (a ValueError): the state is that of other groups or of another optimizer. In this case
                nothing is changed.
        """
        options = read_options(type(self).__name__, self.param_groups, state_dict)
        loaded = []                                     # (parameter, its loaded states, states of its rule)
        for group, old, new in zip(self.param_groups, state_dict["param_groups"], options):
            merged = {**group, **new}
            self.check(merged)
            rule = self.update_of(merged).states
            states = read_states(group["params"], old["params"], rule, state_dict["state"])
            loaded += [(p, own, rule) for p, own in zip(group["params"], states)]
        for p, own, rule in loaded:
            before = self.state.pop(p, {})
            after = own or {s.key: new_state(p, s) for s in rule if s.key in before}
            if after:
                self.state[p] = {k: write_into(before.get(k), v) for k, v in after.items()}
        self._steps[0] = state_dict["state"].get("step", 0)
        for group, new in zip(self.param_groups, options):
            group.update(new)

    def take_(self, p: Tensor, group: Mapping[str, Any], key: str, value: Tensor) -> None:
        """Store `value` as the state of p under a key, for nn.Graph.load_state_dict."""
        own = self.state_of(p, group)
        own[key] = write_into(own[key], copy_saved(value, p, 0, key, own[key].dtype))

    def __getstate__(self) -> dict:
        """Return the state for copy and pickle without `_steps`, which shares memory with `count_`."""
        return {**{k: v for k, v in vars(self).items() if k != "_steps"}, "count_": int(self._steps[0])}

    def __setstate__(self, state: dict) -> None:
        vars(self).update(state)
        if "count_" in state:
            self.count_ = tensor([state["count_"]], dtype=dt.int64)
            self._steps = self.count_.numpy()

    def _parameters(self) -> Iterator[Tensor]:
        return (p for g in self.param_groups for p in g["params"])

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {i}", *(f"    {k}: {group[k]}" for k in sorted(group)
                                                if k != "params")]
        return "\n".join([*lines, ")"])
