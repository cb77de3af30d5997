"""Stochastic gradient descent. In the formulas of all optimizers w is a parameter, g its gradient, t = 1, ... the step."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flowedu.core.layers.group import State, UpdateRule
from flowedu.core.ops.define import REGISTRY
from flowedu.optim.base import Optimizer
from flowedu.optim.master import with_master


def common(group: Mapping[str, Any], decoupled: bool = False) -> dict:
    """The attributes every update has: weight decay as part of the gradient, or (decoupled) of the step; the sign of g."""
    decay = (float(group["weight_decay"]),) if group["weight_decay"] else ()
    return {"weight_decay" if decoupled else "l2": decay, "scale": -1.0 if group.get("maximize") else 1.0}


def rule(group: Mapping[str, Any], op: str, attrs: dict, *states: State) -> UpdateRule:
    """The update of a group: the op of this name, with master weights if the group wants them."""
    found = UpdateRule(REGISTRY[op], attrs, states)
    return with_master(found) if group.get("master_weights") else found


class SGD(Optimizer):
    """g += weight_decay * w; with momentum b = momentum * b + (1 - dampening) * g, b at first 0; w -= lr * (b or g).

    Args:
        params: parameters, or dicts of them with options of their own (see Optimizer).
        lr: learning rate.
        momentum: of the running average b of gradients; 0: none.
        dampening: as in OneFlow it holds from the first step on (PyTorch: from the second).
        weight_decay: pulls parameters towards 0.
        nesterov: w -= lr * (g + momentum * b) instead of b; without momentum nothing else.
        maximize: climb instead.
        contiguous_params, fused, foreach: nothing to do, said once. differentiable: True is refused.

    State: "momentum_buf", if there is momentum.
    """

    def __init__(self, params: Iterable, lr: float = 0.001, momentum: float = 0.0, dampening: float = 0.0,
                 weight_decay: float = 0.0, nesterov: bool = False, maximize: bool = False,
                 contiguous_params: bool = False, fused: bool | None = None, *, foreach: bool | None = None,
                 differentiable: bool = False, master_weights: bool = False):
        self.hints(differentiable=differentiable, contiguous_params=contiguous_params, fused=fused, foreach=foreach)
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
                                  "nesterov": nesterov, "maximize": maximize,
                                  "master_weights": master_weights})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        self.need(group["momentum"] >= 0, "momentum", group["momentum"])
        self.need(not group["nesterov"] or group["dampening"] == 0, "nesterov", group["nesterov"],
                  "Nesterov momentum requires zero dampening")

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        if not group["momentum"]:
            return rule(group, "sgd_update", common(group))
        attrs = {**common(group), "beta": float(group["momentum"]), "dampening": float(group["dampening"]),
                 "nesterov": bool(group["nesterov"])}
        return rule(group, "momentum_step", attrs, State("momentum", "momentum_buf"))
