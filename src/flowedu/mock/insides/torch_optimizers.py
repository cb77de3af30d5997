"""torch.optim: the optimizers of flow.optim with PyTorch's arguments, defaults, and first steps.

flowedu/mock/differs_optim.py lists the differences. Formulas are those of flowedu/optim, except RMSprop's.
Optimizers that OneFlow does not have are the same classes in both (flowedu/optim/by_formula.py).
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flowedu import optim
from flowedu.optim.by_formula import ASGD, Adamax, ByFormula, NAdam, RAdam, Rprop
from flowedu.optim.clipping import ByNorm
from flowedu.optim.group import ParamGroup
from flowedu.optim.torch_form import Counting, Optimizer, no_rule
from flowedu.tensor import Tensor
from flowedu.tensor.creation import zeros_like

__all__ = ["ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "RAdam",
           "RMSprop", "Rprop"]


class SGD(Optimizer, optim.SGD):
    """g += weight_decay * w; b = g in a parameter's first step, then momentum * b + (1 - dampening) * g; w -= lr * b.

    Args:
        params: parameters, or dicts of them with options of their own (see Optimizer).
        lr: learning rate.
        momentum: of the running average b of gradients; 0: none, and w -= lr * g.
        dampening: how much less of g goes into b, from the second step on.
        weight_decay: pulls parameters towards 0.
        nesterov: w -= lr * (g + momentum * b) instead of b.
        maximize: climb instead.
        foreach, fused: nothing to do, said once. differentiable: True is refused.

    State: "momentum_buffer", if there is momentum.
    """

    def __init__(self, params: Iterable, lr: float = 0.001, momentum: float = 0, dampening: float = 0,
                 weight_decay: float = 0, nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None,
                 differentiable: bool = False, fused: bool | None = None):
        Optimizer.__init__(self, params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        self.need(not group["nesterov"] or group["momentum"] > 0, "nesterov", group["nesterov"],
                  "Nesterov momentum requires a momentum and zero dampening")

    def keys(self, group: Mapping[str, Any]) -> set[str]:
        return {s.key for s in self.update_of(group).states}

    def clipping_of(self, group: Mapping[str, Any]) -> ByNorm | None:
        """A graph asks, whose steps are all of one rule."""
        if group["momentum"] and group["dampening"]:
            raise no_rule("SGD(dampening), which is not of a parameter's first step,")
        return super().clipping_of(group)

    def _update(self, group: ParamGroup) -> None:
        first: list[Tensor] = []
        if group["momentum"] and group["dampening"]:
            first = [p for p in group["params"] if p._grad is not None and not self.state.get(p)]
        new = {id(p) for p in first}
        self._updated(group, [p for p in group["params"] if id(p) not in new] if new else group["params"])
        if first:
            self._updated(ParamGroup({**group, "dampening": 0.0}), first)


class Adam(Counting, optim.Adam):
    """m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= lr * m' / (sqrt(v') + eps),
    where m' = m / (1 - beta1^t) and v' = v / (1 - beta2^t); t: the number of this parameter's steps.

    Args:
        params: parameters, or dicts of them with options of their own (see Optimizer).
        lr: learning rate.
        betas: beta1, beta2. eps: keeps the quotient finite.
        weight_decay: pulls parameters towards 0, through the gradient.
        amsgrad: the largest v so far instead of v.
        maximize: climb instead.
        decoupled_weight_decay: weight decay as AdamW has it.
        foreach, capturable, fused: nothing to do, said once. differentiable: True is refused.

    State: "step", "exp_avg", "exp_avg_sq", with amsgrad "max_exp_avg_sq".
    """

    def __init__(self, params: Iterable, lr: float = 0.001, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
                 decoupled_weight_decay: bool = False):
        Optimizer.__init__(self, params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay})

    def numbers(self, group: Mapping[str, Any], decoupled: bool) -> dict:
        return super().numbers({"do_bias_correction": True, **group}, decoupled or group["decoupled_weight_decay"])


class AdamW(Adam):
    """Adam, but weight decay is a step of its own, w -= lr * weight_decay * w, and not part of g. Arguments as Adam."""

    def __init__(self, params: Iterable, lr: float = 0.001, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
                 weight_decay: float = 0.01, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
                 capturable: bool = False, differentiable: bool = False, fused: bool | None = None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused, decoupled_weight_decay=True)


class Adagrad(Counting, optim.Adagrad):
    """s += g^2; w -= lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps); t: the number of this parameter's steps.

    Args:
        params: parameters, or dicts of them with options of their own (see Optimizer).
        lr: learning rate. lr_decay: how fast it falls.
        weight_decay: pulls parameters towards 0, through the gradient.
        initial_accumulator_value: first value of s.
        maximize: climb instead.
        foreach, fused: nothing to do, said once. differentiable: True is refused.

    State: "step", "sum", there from the beginning.
    """

    def __init__(self, params: Iterable, lr: float = 0.01, lr_decay: float = 0, weight_decay: float = 0,
                 initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
                 maximize: bool = False, differentiable: bool = False, fused: bool | None = None):
        Optimizer.__init__(self, params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused})
        for group in self.param_groups:
            for p in group["params"]:
                self._new_state(p, group)


class LBFGS(Optimizer, optim.LBFGS):
    """L-BFGS, as flow.optim has it; the state is PyTorch's."""

    def __init__(self, params: Iterable, lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None):
        Optimizer.__init__(self, params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn})
        self.one_group()

    load_state_dict = optim.LBFGS.load_state_dict


class Adadelta(Counting, optim.Adadelta):
    """v = rho v + (1 - rho) g^2; d = sqrt(u + eps) / sqrt(v + eps) * g; u = rho u + (1 - rho) d^2; w -= lr * d.

    Args:
        params: parameters, or dicts of them with options of their own (see Optimizer).
        lr: learning rate; 1 by default, for d has the size of the steps so far.
        weight_decay: pulls parameters towards 0, through the gradient.
        maximize: climb instead.
        foreach, capturable: nothing to do, said once. differentiable: True is refused.

    State: "step", "square_avg" (v), "acc_delta" (u).
    """

    def __init__(self, params: Iterable, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
                 foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False,
                 differentiable: bool = False):
        Optimizer.__init__(self, params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize, "capturable": capturable,
            "foreach": foreach, "differentiable": differentiable})


class RMSprop(ByFormula):
    """v = alpha v + (1 - alpha) g^2; w -= lr * g / (sqrt(v) + eps), or with momentum of a running sum of these.

    Args:
        params: parameters, or dicts of them with options of their own (see Optimizer).
        lr: learning rate.
        weight_decay: pulls parameters towards 0, through the gradient.
        momentum: b = momentum * b + g / (sqrt(v) + eps); w -= lr * b. 0: none.
        centered: v - a^2, the variance, instead of v, where a is the running average of g.
        maximize: climb instead.
        capturable, foreach: nothing to do, said once. differentiable: True is refused.

    State: "step", "square_avg", with momentum "momentum_buffer", centered "grad_avg".
    """

    def __init__(self, params: Iterable, lr: float = 0.01, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
                 momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
                 maximize: bool = False, differentiable: bool = False):
        Optimizer.__init__(self, params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered, "weight_decay": weight_decay,
            "capturable": capturable, "foreach": foreach, "maximize": maximize, "differentiable": differentiable})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        for name in ("alpha", "eps", "momentum"):
            self.need(group[name] >= 0, f"{name} value", group[name])

    def first(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        names = ["square_avg", *["momentum_buffer"] * (group["momentum"] > 0), *["grad_avg"] * bool(group["centered"])]
        return {name: zeros_like(p) for name in names}

    def move(self, w, g, t, lr, own, group):
        alpha = group["alpha"]
        v = own["square_avg"].mul_(alpha).addcmul_(g, g, value=1 - alpha)
        if group["centered"]:
            v = v - own["grad_avg"].lerp_(g, 1 - alpha).square()
        root = v.sqrt().add_(group["eps"])
        if group["momentum"] > 0:
            w.sub_(own["momentum_buffer"].mul_(group["momentum"]).addcdiv_(g, root), alpha=lr)
        else:
            w.addcdiv_(g, root, value=-lr)
