"""Stochastic gradient descent.

In the formulas of all optimizers, w is a parameter, g its gradient, and t = 1, 2, ... the step.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flowedu.core.layers.group import State, UpdateRule
from flowedu.core.ops.define import Op
from flowedu.core.ops.update import sgd_update
from flowedu.ops.update_sgd import momentum_step
from flowedu.optim.base import Optimizer
from flowedu.optim.master import with_master


def common(group: Mapping[str, Any], decoupled: bool = False) -> dict:
    """Return the attributes of every update: the weight decay and the sign of g."""
    decay = (float(group["weight_decay"]),) if group["weight_decay"] else ()
    return {"weight_decay" if decoupled else "l2": decay, "scale": -1.0 if group.get("maximize") else 1.0}


def rule(group: Mapping[str, Any], op: Op, attrs: dict, *states: State) -> UpdateRule:
    """Return the update of a group by an op, with master weights if the group has that option."""
    update = UpdateRule(op, attrs, states)
    return with_master(update) if group.get("master_weights") else update


class SGD(Optimizer):
    """Stochastic gradient descent with momentum.

    Each step computes

        g += weight_decay * w
        b = momentum * b + (1 - dampening) * g, where b is 0 before the first step
        w -= lr * b

    Without momentum, the step is w -= lr * g. The state contains "momentum_buf" if momentum is not 0.

    Args:
        params: parameters, or dicts of parameters with their own options (see Optimizer).
        lr: learning rate.
        momentum: decay of the running average b of gradients; 0: none.
        dampening: share of g that is not added to b. It applies from the first step on, as in OneFlow (in
            PyTorch from the second step on).
        weight_decay: factor of w in the gradient.
        nesterov: use the step w -= lr * (g + momentum * b).
        maximize: maximize the objective instead of minimizing it.
        contiguous_params, fused, foreach: accepted without effect; a warning is issued once.
        differentiable: must be False.
        master_weights: keep float32 copies of 16-bit parameters (see Optimizer).
    """

    _uncalled = ("_init_group",)

    def __init__(self, params: Iterable, lr: float = 0.001, momentum: float = 0.0, dampening: float = 0.0,
                 weight_decay: float = 0.0, nesterov: bool = False, maximize: bool = False,
                 contiguous_params: bool = False, fused: bool | None = None, *, foreach: bool | None = None,
                 differentiable: bool = False, master_weights: bool = False):
        self.hints(differentiable=differentiable, contiguous_params=contiguous_params, fused=fused,
                   foreach=foreach)
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening,
                                  "weight_decay": weight_decay, "nesterov": nesterov, "maximize": maximize,
                                  "master_weights": master_weights})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        self.need(group["momentum"] >= 0, "momentum", group["momentum"])
        self.need(not group["nesterov"] or group["dampening"] == 0, "nesterov", group["nesterov"],
                  "Nesterov momentum requires zero dampening")

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        if not group["momentum"]:
            return rule(group, sgd_update, common(group))
        attrs = {**common(group), "beta": float(group["momentum"]), "dampening": float(group["dampening"]),
                 "nesterov": bool(group["nesterov"])}
        return rule(group, momentum_step, attrs, State("momentum", "momentum_buf"))
