"""Adam and its variants: steps scaled by running averages of the gradient (m) and of its square (v)."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flowedu.core.layers.group import State, UpdateRule
from flowedu.errors import UnsupportedError
from flowedu.ops.update_adaptive import adam_step, amsgrad_step, lamb_step
from flowedu.optim.base import Optimizer
from flowedu.optim.sgd import common, rule

_M, _V, _MAX = State("m", "exp_avg"), State("v", "exp_avg_sq"), State("max_v", "max_exp_avg_sq")


class _Moments(Optimizer):
    """Checks of the options of all Adam variants."""

    _uncalled = ("_init_group",)

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        for i, beta in enumerate(group["betas"]):
            self.need(0 <= beta < 1, f"beta parameter at index {i}", beta, "0 <= beta < 1")
        self.need(group["eps"] >= 0, "epsilon value", group["eps"])

    def numbers(self, group: Mapping[str, Any], decoupled: bool) -> dict:
        beta1, beta2 = map(float, group["betas"])
        return {**common(group, decoupled), "beta1": beta1, "beta2": beta2, "epsilon": float(group["eps"]),
                "do_bias_correction": bool(group["do_bias_correction"])}


class Adam(_Moments):
    """Adam optimizer (Kingma and Ba 2015).

    Each step computes

        m = beta1 m + (1 - beta1) g
        v = beta2 v + (1 - beta2) g^2
        w -= lr * m' / (sqrt(v') + eps), where m' = m / (1 - beta1^t) and v' = v / (1 - beta2^t)

    The gradient g includes weight_decay * w. The state contains "exp_avg" (m), "exp_avg_sq" (v), and with
    amsgrad "max_exp_avg_sq". t is the number of steps of the optimizer, also for a parameter that had no
    gradient in some of them.

    Args:
        params: parameters, or dicts of parameters with their own options (see Optimizer).
        lr: learning rate.
        betas: (beta1, beta2).
        eps: number added to the denominator.
        weight_decay: factor of w in the gradient.
        amsgrad: use the largest v so far instead of v.
        do_bias_correction: False uses m and v instead of m' and v'.
        contiguous_params, fused, foreach, capturable: accepted without effect; a warning is issued once.
        maximize: maximize the objective instead of minimizing it.
        differentiable: must be False.
        master_weights: keep float32 copies of 16-bit parameters (see Optimizer).
    """

    decoupled = False

    def __init__(self, params: Iterable, lr: float = 0.001, betas: Sequence[float] = (0.9, 0.999),
                 eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, do_bias_correction: bool = True,
                 contiguous_params: bool = False, fused: bool | None = None, *, maximize: bool = False,
                 foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
                 master_weights: bool = False):
        self.hints(differentiable=differentiable, contiguous_params=contiguous_params, fused=fused,
                   foreach=foreach, capturable=capturable)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "amsgrad": amsgrad,
                                  "do_bias_correction": do_bias_correction, "maximize": maximize,
                                  "master_weights": master_weights})

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        attrs = self.numbers(group, self.decoupled)
        if group["amsgrad"]:
            return rule(group, amsgrad_step, attrs, _M, _V, _MAX)
        return rule(group, adam_step, attrs, _M, _V)


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019).

    Weight decay is an additional step w -= lr * weight_decay * w.

    Args:
        params, lr, betas, eps, amsgrad, do_bias_correction, maximize, master_weights: see Adam.
        weight_decay: factor of the additional step.
        contiguous_params, fused, foreach, capturable: accepted without effect; a warning is issued once.
        differentiable: must be False.
    """

    decoupled = True


class LAMB(_Moments):
    """LAMB optimizer (You et al. 2020): Adam with a learning rate per parameter.

    Each step is w -= lr * |w| / |s| * (s + weight_decay * w), where s = m' / (sqrt(v') + eps) as in Adam. If
    |w| or |s| is 0, the factor |w| / |s| is 1. The state contains "exp_avg" and "exp_avg_sq".

    Args:
        params, lr, betas, eps, do_bias_correction, maximize, master_weights: see Adam.
        weight_decay: factor of w in the step.
        adam_w_mode: False adds weight_decay * w to the gradient instead of to the step.
        amsgrad: not supported, as in OneFlow.
        contiguous_params, fused: accepted without effect; a warning is issued once.
    """

    def __init__(self, params: Iterable, lr: float = 0.001, betas: Sequence[float] = (0.9, 0.999),
                 eps: float = 1e-8,
                 weight_decay: float = 0, adam_w_mode: bool = True, do_bias_correction: bool = True,
                 amsgrad: bool = False,
                 contiguous_params: bool = False, fused: bool | None = None, *, maximize: bool = False,
                 master_weights: bool = False):
        self.hints(contiguous_params=contiguous_params, fused=fused)
        if amsgrad:
            raise UnsupportedError("optim.LAMB: LAMB does not support AMSGrad variant",
                                   expected="amsgrad=False", got="amsgrad=True", fix="leave it out")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "adam_w_mode": adam_w_mode, "do_bias_correction": do_bias_correction,
                                  "maximize": maximize, "master_weights": master_weights})

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        return rule(group, lamb_step, self.numbers(group, group["adam_w_mode"]), _M, _V)
