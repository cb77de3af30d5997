"""RMSprop, Adagrad and Adadelta: every element has a rate of its own, from the squares of its gradients so far."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flowedu.core.layers.group import State, UpdateRule
from flowedu.optim.base import Optimizer
from flowedu.optim.sgd import common, rule


class RMSprop(Optimizer):
    """v = alpha v + (1 - alpha) g^2; w -= lr * g / sqrt(v + eps): eps is under the root, as in OneFlow.

    Args:
        params: parameters, or dicts of them with options of their own (see Optimizer).
        lr: learning rate.
        weight_decay: pulls parameters towards 0, through the gradient.
        momentum: 0; OneFlow has no other.
        centered: v - a^2, the variance, instead of v, where a is the running average of g.
        maximize: climb instead.

    State: "square_avg", centered also "grad_avg".
    """

    def __init__(self, params: Iterable, lr: float = 0.001, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
                 momentum: float = 0.0, centered: bool = False, contiguous_params: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
                 master_weights: bool = False):
        self.hints(differentiable=differentiable, contiguous_params=contiguous_params, foreach=foreach,
                   capturable=capturable)
        self.need(momentum == 0, "momentum", momentum, "0: there is no RMSprop with momentum here, nor in OneFlow")
        super().__init__(params, {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "centered": centered,
                                  "maximize": maximize,
                                  "master_weights": master_weights})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        self.need(group["alpha"] >= 0, "alpha value", group["alpha"])
        self.need(group["eps"] >= 0, "epsilon value", group["eps"])

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        attrs = {**common(group), "decay_rate": float(group["alpha"]), "epsilon": float(group["eps"])}
        square = State("mean_square", "square_avg")
        if group["centered"]:
            return rule(group, "rmsprop_centered_update", attrs, square, State("mean_gradient", "grad_avg"))
        return rule(group, "rmsprop_update", attrs, square)


class Adagrad(Optimizer):
    """s += g^2; w -= lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps).

    Args:
        params: parameters, or dicts of them with options of their own (see Optimizer).
        lr: learning rate. lr_decay: how fast it falls.
        weight_decay: pulls parameters towards 0, through the gradient.
        initial_accumulator_value: first value of s.
        maximize: climb instead.

    State: "sum".
    """

    def __init__(self, params: Iterable, lr: float = 0.001, lr_decay: float = 0.0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0.0, eps: float = 1e-10, contiguous_params: bool = False, *,
                 maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
                 fused: bool | None = None, master_weights: bool = False):
        self.hints(differentiable=differentiable, contiguous_params=contiguous_params, fused=fused, foreach=foreach)
        super().__init__(params, {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay,
                                  "initial_accumulator_value": initial_accumulator_value, "eps": eps, "maximize": maximize,
                                  "master_weights": master_weights})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        self.need(group["lr_decay"] >= 0, "lr_decay value", group["lr_decay"])
        self.need(group["initial_accumulator_value"] >= 0, "initial_accumulator_value value",
                  group["initial_accumulator_value"])
        self.need(group["eps"] >= 0, "epsilon value", group["eps"])

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        attrs = {**common(group), "lr_decay": float(group["lr_decay"]), "epsilon": float(group["eps"])}
        return rule(group, "adagrad_step", attrs, State("sum", "sum", float(group["initial_accumulator_value"])))


class Adadelta(Optimizer):
    """v = rho v + (1 - rho) g^2; d = sqrt(u + eps) / sqrt(v + eps) * g; u = rho u + (1 - rho) d^2; w -= lr * d.

    Args:
        params: parameters, or dicts of them with options of their own (see Optimizer).
        lr: learning rate; 1 by default, for d has the size of the steps so far.
        weight_decay: pulls parameters towards 0, through the gradient.
        maximize: climb instead.

    State: "square_avgs" (v), "acc_deltas" (u).
    """

    def __init__(self, params: Iterable, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
                 maximize: bool = False, contiguous_params: bool = False, *, foreach: bool | None = None,
                 capturable: bool = False, differentiable: bool = False,
                 master_weights: bool = False):
        self.hints(differentiable=differentiable, contiguous_params=contiguous_params, foreach=foreach,
                   capturable=capturable)
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
                                  "master_weights": master_weights})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        self.need(0 <= group["rho"] <= 1, "rho value", group["rho"], "0 <= rho <= 1")
        self.need(group["eps"] >= 0, "epsilon value", group["eps"])

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        attrs = {**common(group), "rho": float(group["rho"]), "epsilon": float(group["eps"])}
        return rule(group, "adadelta_step", attrs, State("square_avgs", "square_avgs"), State("acc_deltas", "acc_deltas"))
