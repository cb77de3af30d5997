"""RMSprop, Adagrad, and Adadelta, with a rate per element that depends on the squares of its past gradients.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flowedu.core.layers.group import State, UpdateRule
from flowedu.ops.update_adaptive import adadelta_step, adagrad_step, rmsprop_centered_update, rmsprop_update
from flowedu.optim.base import Optimizer
from flowedu.optim.sgd import common, rule


class RMSprop(Optimizer):
    """RMSprop optimizer.

    Each step computes

        v = alpha v + (1 - alpha) g^2
        w -= lr * g / sqrt(v + eps)

    The state contains "square_avg", and with centered "grad_avg".

    Args:
        params: parameters, or dicts of parameters with their own options (see Optimizer).
        lr: learning rate.
        alpha: decay of the running average v.
        eps: number added under the root, as in OneFlow.
        weight_decay: factor of w in the gradient.
        momentum: must be 0, as in OneFlow.
        centered: use the variance v - a^2 instead of v, where a is the running average of g.
        maximize: maximize the objective instead of minimizing it.
        contiguous_params, foreach, capturable: accepted without effect; a warning is issued once.
        differentiable: must be False.
        master_weights: keep float32 copies of 16-bit parameters (see Optimizer).
    """

    _uncalled = ("_init_group",)

    def __init__(self, params: Iterable, lr: float = 0.001, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0,
                 momentum: float = 0.0, centered: bool = False, contiguous_params: bool = False, *,
                 maximize: bool = False,
                 foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
                 master_weights: bool = False):
        self.hints(differentiable=differentiable, contiguous_params=contiguous_params, foreach=foreach,
                   capturable=capturable)
        self.need(momentum == 0, "momentum", momentum,
                  "0: there is no RMSprop with momentum here, nor in OneFlow")
        super().__init__(params, {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay,
                                  "centered": centered, "maximize": maximize,
                                  "master_weights": master_weights})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        self.need(group["alpha"] >= 0, "alpha value", group["alpha"])
        self.need(group["eps"] >= 0, "epsilon value", group["eps"])

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        attrs = {**common(group), "decay_rate": float(group["alpha"]), "epsilon": float(group["eps"])}
        square = State("mean_square", "square_avg")
        if group["centered"]:
            return rule(group, rmsprop_centered_update, attrs, square, State("mean_gradient", "grad_avg"))
        return rule(group, rmsprop_update, attrs, square)


class Adagrad(Optimizer):
    """Adagrad optimizer (Duchi et al. 2011).

    Each step computes

        s += g^2
        w -= lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps)

    The state contains "sum" (s).

    Args:
        params: parameters, or dicts of parameters with their own options (see Optimizer).
        lr: learning rate.
        lr_decay: decay of the learning rate.
        weight_decay: factor of w in the gradient.
        initial_accumulator_value: first value of s.
        eps: number added to the denominator.
        maximize: maximize the objective instead of minimizing it.
        contiguous_params, foreach, fused: accepted without effect; a warning is issued once.
        differentiable: must be False.
        master_weights: keep float32 copies of 16-bit parameters (see Optimizer).
    """

    _uncalled = ("_init_group",)

    def __init__(self, params: Iterable, lr: float = 0.001, lr_decay: float = 0.0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0.0, eps: float = 1e-10, contiguous_params: bool = False,
                 *, maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
                 fused: bool | None = None, master_weights: bool = False):
        self.hints(differentiable=differentiable, contiguous_params=contiguous_params, fused=fused,
                   foreach=foreach)
        super().__init__(params, {"lr": lr, "lr_decay": lr_decay, "weight_decay": weight_decay,
                                  "initial_accumulator_value": initial_accumulator_value, "eps": eps,
                                  "maximize": maximize, "master_weights": master_weights})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        self.need(group["lr_decay"] >= 0, "lr_decay value", group["lr_decay"])
        self.need(group["initial_accumulator_value"] >= 0, "initial_accumulator_value value",
                  group["initial_accumulator_value"])
        self.need(group["eps"] >= 0, "epsilon value", group["eps"])

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        attrs = {**common(group), "lr_decay": float(group["lr_decay"]), "epsilon": float(group["eps"])}
        return rule(group, adagrad_step, attrs,
                    State("sum", "sum", float(group["initial_accumulator_value"])))


class Adadelta(Optimizer):
    """Adadelta optimizer (Zeiler 2012).

    Each step computes

        v = rho v + (1 - rho) g^2
        d = sqrt(u + eps) / sqrt(v + eps) * g
        u = rho u + (1 - rho) d^2
        w -= lr * d

    The state contains "square_avgs" (v) and "acc_deltas" (u).

    Args:
        params: parameters, or dicts of parameters with their own options (see Optimizer).
        lr: learning rate, 1 by default, because d has the size of past steps.
        rho: decay of the running averages.
        eps: number added under the roots.
        weight_decay: factor of w in the gradient.
        maximize: maximize the objective instead of minimizing it.
        contiguous_params, foreach, capturable: accepted without effect; a warning is issued once.
        differentiable: must be False.
        master_weights: keep float32 copies of 16-bit parameters (see Optimizer).
    """

    _uncalled = ("_init_group",)

    def __init__(self, params: Iterable, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6,
                 weight_decay: float = 0,
                 maximize: bool = False, contiguous_params: bool = False, *, foreach: bool | None = None,
                 capturable: bool = False, differentiable: bool = False,
                 master_weights: bool = False):
        self.hints(differentiable=differentiable, contiguous_params=contiguous_params, foreach=foreach,
                   capturable=capturable)
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay,
                                  "maximize": maximize, "master_weights": master_weights})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        self.need(0 <= group["rho"] <= 1, "rho value", group["rho"], "0 <= rho <= 1")
        self.need(group["eps"] >= 0, "epsilon value", group["eps"])

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        attrs = {**common(group), "rho": float(group["rho"]), "epsilon": float(group["eps"])}
        return rule(group, adadelta_step, attrs,
                    State("square_avgs", "square_avgs"), State("acc_deltas", "acc_deltas"))
