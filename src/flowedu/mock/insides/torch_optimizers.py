"""torch.optim: the optimizers of flow.optim with PyTorch's arguments, defaults, and first steps.

flowedu/mock/differs_optim.py lists the differences. Formulas are those of flowedu/optim, except for
RMSprop's. Optimizers that OneFlow lacks are the same classes as in flow.optim
(flowedu/optim/by_formula.py).
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
from flowedu.tensor.construction.creation import zeros_like

__all__ = ["ASGD", "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer",
           "RAdam", "RMSprop", "Rprop"]


class SGD(Optimizer, optim.SGD):
    """SGD: g += weight_decay * w; b = g in step 1, then momentum * b + (1 - dampening) * g; w -= lr * b.

    Args:
        params: parameters, or dicts of parameters with options (see Optimizer).
        lr: learning rate.
        momentum: factor of the running average b of gradients; default: 0, w -= lr * g.
        dampening: reduction of the factor of g in b, from the second step on; default: 0.
        weight_decay: L2 penalty, added to the gradient; default: 0.
        nesterov: use g + momentum * b instead of b; default: False.
        maximize: maximize the objective; default: False.
        foreach, fused: no effect, with one warning. differentiable: must be False.

    State: "momentum_buffer", with momentum.
    """

    def __init__(self, params: Iterable, lr: float = 0.001, momentum: float = 0, dampening: float = 0,
                 weight_decay: float = 0, nesterov: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None):
        Optimizer.__init__(self, params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        self.need(not group["nesterov"] or group["momentum"] > 0, "nesterov", group["nesterov"],
                  "Nesterov momentum requires a momentum and zero dampening")

    def keys(self, group: Mapping[str, Any]) -> set[str]:
        return {s.key for s in self.update_of(group).states}

    def clipping_of(self, group: Mapping[str, Any]) -> ByNorm | None:
        """Return the clipping of a group for nn.Graph, which supports only one rule for all steps."""
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
    """Adam: steps by running averages of the gradient and of its square.

    m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= lr * m' / (sqrt(v') + eps), where m' = m
    / (1 - beta1^t) and v' = v / (1 - beta2^t); t: number of steps of the parameter.

    Args:
        params: parameters, or dicts of parameters with options (see Optimizer).
        lr: learning rate.
        betas: beta1, beta2. eps: added to the denominator.
        weight_decay: L2 penalty, added to the gradient; default: 0.
        amsgrad: use the maximum of v over all steps; default: False.
        maximize: maximize the objective; default: False.
        decoupled_weight_decay: apply weight decay as in AdamW; default: False.
        foreach, capturable, fused: no effect, with one warning. differentiable: must be False.

    State: "step", "exp_avg", "exp_avg_sq", with amsgrad "max_exp_avg_sq".
    """

    def __init__(self, params: Iterable, lr: float = 0.001, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8,
                 weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None,
                 maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
                 decoupled_weight_decay: bool = False):
        Optimizer.__init__(self, params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay})

    def numbers(self, group: Mapping[str, Any], decoupled: bool) -> dict:
        return super().numbers({"do_bias_correction": True, **group},
                               decoupled or group["decoupled_weight_decay"])


class AdamW(Adam):
    """Adam with decoupled weight decay: w -= lr * weight_decay * w, no L2 penalty. Arguments as in Adam."""

    def __init__(self, params: Iterable, lr: float = 0.001, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8,
                 weight_decay: float = 0.01, amsgrad: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None,
                 capturable: bool = False, differentiable: bool = False, fused: bool | None = None):
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
                         capturable=capturable, differentiable=differentiable, fused=fused,
                         decoupled_weight_decay=True)


class Adagrad(Counting, optim.Adagrad):
    """Adagrad: s += g^2; w -= lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps), in the parameter's step t.

    Args:
        params: parameters, or dicts of parameters with options (see Optimizer).
        lr: learning rate. lr_decay: decay of the learning rate per step.
        weight_decay: L2 penalty, added to the gradient; default: 0.
        initial_accumulator_value: initial value of s.
        maximize: maximize the objective; default: False.
        foreach, fused: no effect, with one warning. differentiable: must be False.

    State: "step", "sum", created with the optimizer.
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
    """L-BFGS of flow.optim with PyTorch's state."""

    def __init__(self, params: Iterable, lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
                 tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
                 line_search_fn: str | None = None):
        Optimizer.__init__(self, params, {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change,
            "history_size": history_size, "line_search_fn": line_search_fn})
        self.one_group()

    load_state_dict = optim.LBFGS.load_state_dict


class Adadelta(Counting, optim.Adadelta):
    """v = rho v + (1 - rho) g^2; d = sqrt(u + eps) / sqrt(v + eps) g; u = rho u + (1 - rho) d^2; w -= lr d.

    Args:
        params: parameters, or dicts of parameters with options (see Optimizer).
        lr: learning rate; default: 1.0, because d has the size of the previous steps.
        weight_decay: L2 penalty, added to the gradient; default: 0.
        maximize: maximize the objective; default: False.
        foreach, capturable: no effect, with one warning. differentiable: must be False.

    State: "step", "square_avg" (v), "acc_delta" (u).
    """

    def __init__(self, params: Iterable, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6,
                 weight_decay: float = 0,
                 foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False,
                 differentiable: bool = False):
        Optimizer.__init__(self, params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable})


class RMSprop(ByFormula):
    """RMSprop: v = alpha v + (1 - alpha) g^2; w -= lr * g / (sqrt(v) + eps), optionally with momentum.

    Args:
        params: parameters, or dicts of parameters with options (see Optimizer).
        lr: learning rate.
        weight_decay: L2 penalty, added to the gradient; default: 0.
        momentum: b = momentum * b + g / (sqrt(v) + eps); w -= lr * b; default: 0, none.
        centered: use the variance v - a^2 instead of v, where a is the running average of g.
        maximize: maximize the objective; default: False.
        capturable, foreach: no effect, with one warning. differentiable: must be False.

    State: "step", "square_avg", with momentum "momentum_buffer", with centered "grad_avg".
    """

    def __init__(self, params: Iterable, lr: float = 0.01, alpha: float = 0.99, eps: float = 1e-8,
                 weight_decay: float = 0,
                 momentum: float = 0, centered: bool = False, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False):
        Optimizer.__init__(self, params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        for name in ("alpha", "eps", "momentum"):
            self.need(group[name] >= 0, f"{name} value", group[name])

    def first(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        names = ["square_avg", *["momentum_buffer"] * (group["momentum"] > 0),
                 *["grad_avg"] * bool(group["centered"])]
        return {name: zeros_like(p) for name in names}

    def move(self, w, g, t, lr, state, group):
        alpha = group["alpha"]
        v = state["square_avg"].mul_(alpha).addcmul_(g, g, value=1 - alpha)
        if group["centered"]:
            v = v - state["grad_avg"].lerp_(g, 1 - alpha).square()
        root = v.sqrt().add_(group["eps"])
        if group["momentum"] > 0:
            w.sub_(state["momentum_buffer"].mul_(group["momentum"]).addcdiv_(g, root), alpha=lr)
        else:
            w.addcdiv_(g, root, value=-lr)
