"""Adam and its relatives: steps scaled by running averages of the gradient (m) and of its square (v)."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flowedu.core.layers.group import State, UpdateRule
from flowedu.errors import UnsupportedError
from flowedu.optim.base import Optimizer
from flowedu.optim.sgd import common, rule

_M, _V, _MAX = State("m", "exp_avg"), State("v", "exp_avg_sq"), State("max_v", "max_exp_avg_sq")


class _Moments(Optimizer):
    """Checks of the options of all Adam variants."""

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
    """m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= lr * m' / (sqrt(v') + eps),
    where m' = m / (1 - beta1^t) and v' = v / (1 - beta2^t). g has weight_decay * w in it.

    Args:
        params: parameters, or dicts of them with options of their own (see Optimizer).
        lr: learning rate.
        betas: beta1, beta2. eps: keeps the quotient finite.
        weight_decay: pulls parameters towards 0, through the gradient.
        amsgrad: the largest v so far instead of v.
        do_bias_correction: False: m and v as they are.
        maximize: climb instead.
        contiguous_params, fused, foreach, capturable: nothing to do, said once. differentiable: True is refused.

    State: "exp_avg", "exp_avg_sq", with amsgrad "max_exp_avg_sq". t counts all steps of the optimizer.
    """

    decoupled = False

    def __init__(self, params: Iterable, lr: float = 0.001, betas: Sequence[float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, do_bias_correction: bool = True,
                 contiguous_params: bool = False, fused: bool | None = None, *, maximize: bool = False,
                 foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
                 master_weights: bool = False):
        self.hints(differentiable=differentiable, contiguous_params=contiguous_params, fused=fused,
                   foreach=foreach, capturable=capturable)
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
                                  "do_bias_correction": do_bias_correction, "maximize": maximize,
                                  "master_weights": master_weights})

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        attrs = self.numbers(group, self.decoupled)
        if group["amsgrad"]:
            return rule(group, "amsgrad_step", attrs, _M, _V, _MAX)
        return rule(group, "adam_step", attrs, _M, _V)


class AdamW(Adam):
    """Adam, but weight decay is a step of its own, w -= lr * weight_decay * w, and not part of g. Arguments as Adam."""

    decoupled = True


class LAMB(_Moments):
    """The step of Adam, s, with a rate per parameter: w -= lr * |w| / |s| * (s + weight_decay * w); norms of 0 count as 1.

    Args:
        params, lr, betas, eps, do_bias_correction, maximize: as Adam.
        adam_w_mode: False: weight decay is part of the gradient.
        amsgrad: not supported, as in OneFlow.

    State: "exp_avg", "exp_avg_sq".
    """

    def __init__(self, params: Iterable, lr: float = 0.001, betas: Sequence[float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, adam_w_mode: bool = True, do_bias_correction: bool = True, amsgrad: bool = False,
                 contiguous_params: bool = False, fused: bool | None = None, *, maximize: bool = False,
                 master_weights: bool = False):
        self.hints(contiguous_params=contiguous_params, fused=fused)
        if amsgrad:
            raise UnsupportedError("optim.LAMB: LAMB does not support AMSGrad variant", expected="amsgrad=False",
                                   got="amsgrad=True", fix="leave it out")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                                  "adam_w_mode": adam_w_mode, "do_bias_correction": do_bias_correction,
                                  "maximize": maximize, "master_weights": master_weights})

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        return rule(group, "lamb_step", self.numbers(group, group["adam_w_mode"]), _M, _V)
