"""Optimizers written with tensor functions instead of one kernel.

The module contains the optimizers of torch.optim that are missing in OneFlow: Adamax, NAdam, RAdam, Rprop,
and ASGD. They have PyTorch's arguments, step count, and state_dict form. The module also contains Ftrl, which
OneFlow has in one_embedding. All of them work eagerly; an nn.Graph rejects them.

In the formulas w is a parameter, g its gradient (including weight decay), and t = 1, ... the parameter's own
step.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flowedu.core.layers.group import UpdateRule
from flowedu.errors.ignored import refuse_ignored
from flowedu.optim import adam
from flowedu.optim.group import ParamGroup
from flowedu.optim.torch_form import Counting, Optimizer, no_rule, single
from flowedu.tensor import Tensor, full
from flowedu.tensor.construction.creation import full_like, zeros_like
from flowedu.tensor.elementwise import maximum, where


class ByFormula(Counting):
    """Base class of optimizers that are defined by a formula.

    A subclass defines the initial states in `first(p, group)`, and a step in `move(w, g, ...)`.
    """

    _uncalled = ("_init_group",)

    def first(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        raise NotImplementedError

    def move(self, w: Tensor, g: Tensor, t: int, lr: float, own: dict, group: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        raise no_rule(type(self).__name__)

    def keys(self, group: Mapping[str, Any]) -> set[str]:
        some = next(iter(group["params"]), None)
        return {"step", *self.first(full((1,), 0.0) if some is None else some, group)}

    def _update(self, group: ParamGroup) -> None:
        if not group.ready:
            refuse_ignored(type(self), "override step without super().step()")
            self.check(group)
            group.ready = True
        lr, decay = float(group["lr"]), float(group.get("weight_decay", 0))
        for p in group["params"]:
            g = p._grad
            if g is None:
                continue
            own = self.state.get(p) or self._remembered(p, group)
            steps = own["step"].numpy()
            steps += 1
            if group["maximize"]:
                g = -g
            if decay and group.get("decoupled_weight_decay"):
                p.mul_(1 - lr * decay)
            elif decay:
                g = g + decay * p
            self.move(p, g, int(steps), lr, own, group)

    def _remembered(self, p: Tensor, group: ParamGroup) -> dict:
        self.state[p] = {"step": single(0.0), **self.first(p, group)}
        return self.state[p]


class _Moments(ByFormula, adam._Moments):
    """Base class of optimizers with running averages of g (m) and of its size."""

    sizes = "exp_avg_sq"

    def first(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        return {"exp_avg": zeros_like(p), self.sizes: zeros_like(p)}

    def averages(self, g: Tensor, own: dict, group: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        """Update and return m and v."""
        beta1, beta2 = group["betas"]
        return (own["exp_avg"].lerp_(g, 1 - beta1),
                own["exp_avg_sq"].mul_(beta2).addcmul_(g, g, value=1 - beta2))


class Adamax(_Moments):
    """Adamax optimizer (Kingma and Ba 2015), with the infinity norm u.

    Each step computes

        m = beta1 m + (1 - beta1) g
        u = max(beta2 u, |g| + eps)
        w -= lr / (1 - beta1^t) * m / u

    The state contains "step", "exp_avg" (m), and "exp_inf" (u).

    Args:
        params, lr, betas, eps, weight_decay, maximize: see Adam.
        foreach, capturable: accepted without effect; a warning is issued once.
        differentiable: must be False.
    """

    sizes = "exp_inf"

    def __init__(self, params: Iterable, lr: float = 0.002, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8,
                 weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False):
        Optimizer.__init__(self, params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable})

    def move(self, w: Tensor, g: Tensor, t: int, lr: float, own: dict, group: Mapping[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        m, u = own["exp_avg"].lerp_(g, 1 - beta1), own["exp_inf"]
        u.copy_(maximum(u * beta2, g.abs() + group["eps"]))
        w.addcdiv_(m, u, value=-lr / (1 - beta1 ** t))


class NAdam(_Moments):
    """Adam with Nesterov momentum (Dozat 2016).

    m and v are the running averages of Adam. Each step computes

        mu(t) = beta1 (1 - 0.96^(t momentum_decay) / 2)
        a = (1 - mu(t)) / (1 - mu(1) ... mu(t))
        b = mu(t + 1) / (1 - mu(1) ... mu(t + 1))
        w -= lr * (a g + b m) / (sqrt(v / (1 - beta2^t)) + eps)

    The state contains "step", "mu_product" (mu(1) ... mu(t)), "exp_avg" (m), and "exp_avg_sq" (v).

    Args:
        params, lr, betas, eps, weight_decay, maximize: see Adam.
        momentum_decay: see the formula of mu.
        decoupled_weight_decay: apply weight decay as in AdamW.
        foreach, capturable: accepted without effect; a warning is issued once.
        differentiable: must be False.
    """

    def __init__(self, params: Iterable, lr: float = 0.002, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8,
                 weight_decay: float = 0, momentum_decay: float = 0.004, decoupled_weight_decay: bool = False,
                 *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False):
        Optimizer.__init__(self, params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        self.need(group["momentum_decay"] >= 0, "momentum_decay value", group["momentum_decay"])

    def first(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        return {"mu_product": single(1.0), **super().first(p, group)}

    def move(self, w: Tensor, g: Tensor, t: int, lr: float, own: dict, group: Mapping[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        mu, after = (beta1 * (1 - 0.5 * 0.96 ** (n * group["momentum_decay"])) for n in (t, t + 1))
        product = own["mu_product"].mul_(mu).item()
        m, v = self.averages(g, own, group)
        root = (v / (1 - beta2 ** t)).sqrt().add_(group["eps"])
        w.addcdiv_(g, root, value=-lr * (1 - mu) / (1 - product))
        w.addcdiv_(m, root, value=-lr * after / (1 - product * after))


class RAdam(_Moments):
    """Adam with a rectified adaptive rate (Liu et al. 2020).

    v is unreliable in the first steps, as long as n <= 5. These steps are w -= lr * m / (1 - beta1^t). Later
    steps are those of Adam, multiplied by r, but eps is added to sqrt(v) instead of sqrt(v'):

        N = 2 / (1 - beta2) - 1
        n = N - 2 t beta2^t / (1 - beta2^t)
        r = sqrt((n - 4)(n - 2) N / ((N - 4)(N - 2) n))

    The state contains "step", "exp_avg" (m), and "exp_avg_sq" (v).

    Args:
        params, lr, betas, eps, weight_decay, maximize: see Adam.
        decoupled_weight_decay: apply weight decay as in AdamW.
        foreach, capturable: accepted without effect; a warning is issued once.
        differentiable: must be False.
    """

    def __init__(self, params: Iterable, lr: float = 0.001, betas: tuple[float, float] = (0.9, 0.999),
                 eps: float = 1e-8,
                 weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
                 foreach: bool | None = None,
                 maximize: bool = False, capturable: bool = False, differentiable: bool = False):
        Optimizer.__init__(self, params, {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable})

    def move(self, w: Tensor, g: Tensor, t: int, lr: float, own: dict, group: Mapping[str, Any]) -> None:
        beta1, beta2 = group["betas"]
        m, v = self.averages(g, own, group)
        rest, most = 1 - beta2 ** t, 2 / (1 - beta2) - 1
        n = most - 2 * t * beta2 ** t / rest
        if n <= 5:
            w.sub_(m, alpha=lr / (1 - beta1 ** t))
        else:
            r = ((n - 4) * (n - 2) * most / ((most - 4) * (most - 2) * n)) ** 0.5
            w.addcdiv_(m, v.sqrt().add_(group["eps"]), value=-lr * r * rest ** 0.5 / (1 - beta1 ** t))


class Rprop(ByFormula):
    """Resilient backpropagation (Riedmiller and Braun 1993): w -= s * sign(g), with a step s per element.

    If the sign of g is the same as in the previous step, s is multiplied by etas[1]. If the sign has changed,
    s is multiplied by etas[0], and the element is not updated in this step. The state contains "step", "prev"
    (the last g, or 0 for an element that was not updated), and "step_size" (s).

    Args:
        params: parameters, or dicts of parameters with their own options (see Optimizer).
        lr: initial s.
        etas: (decrease, increase) factors.
        step_sizes: (smallest, largest) s.
        maximize: maximize the objective instead of minimizing it.
        capturable, foreach: accepted without effect; a warning is issued once.
        differentiable: must be False.
    """

    def __init__(self, params: Iterable, lr: float = 0.01, etas: tuple[float, float] = (0.5, 1.2),
                 step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False):
        Optimizer.__init__(self, params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        self.need(0 < group["etas"][0] < 1 < group["etas"][1], "eta values", group["etas"],
                  "below 1, above 1")

    def first(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        return {"prev": zeros_like(p), "step_size": zeros_like(p) + float(group["lr"])}

    def move(self, w: Tensor, g: Tensor, t: int, lr: float, own: dict, group: Mapping[str, Any]) -> None:
        shorter, longer = group["etas"]
        sign, s = (g * own["prev"]).sign(), own["step_size"]
        kept, changed = (sign > 0).to(s.dtype), (sign < 0).to(s.dtype)
        s.mul_(1 + (longer - 1) * kept + (shorter - 1) * changed).clamp_(*group["step_sizes"])
        g = g.masked_fill(sign < 0, 0.0)
        w.sub_(g.sign() * s)
        own["prev"].copy_(g)


class ASGD(ByFormula):
    """Averaged stochastic gradient descent (Polyak and Juditsky 1992).

    Each step computes w = (1 - lambd * e) w - e g, where e = lr / (1 + lambd lr (t - 1))^alpha. The state
    contains "step", "eta" (the e of the next step), "mu" (the weight of the next w in the average), and "ax"
    (the average of w from step t0 on).

    Args:
        params: parameters, or dicts of parameters with their own options (see Optimizer).
        lr: initial learning rate.
        lambd: decay of w and of the rate.
        alpha: exponent of the decay of the rate.
        t0: step at which averaging starts.
        weight_decay: factor of w in the gradient.
        maximize: maximize the objective instead of minimizing it.
        foreach, capturable: accepted without effect; a warning is issued once.
        differentiable: must be False.
    """

    def __init__(self, params: Iterable, lr: float = 0.01, lambd: float = 1e-4, alpha: float = 0.75,
                 t0: float = 1e6,
                 weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False,
                 differentiable: bool = False, capturable: bool = False):
        Optimizer.__init__(self, params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable})

    def first(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        return {"eta": single(group["lr"]), "mu": single(1.0), "ax": zeros_like(p)}

    def move(self, w: Tensor, g: Tensor, t: int, lr: float, own: dict, group: Mapping[str, Any]) -> None:
        e, mu, lambd = own["eta"].item(), own["mu"].item(), group["lambd"]
        w.mul_(1 - lambd * e).sub_(g, alpha=e)
        if mu == 1:
            own["ax"].copy_(w)
        else:
            own["ax"].add_((w - own["ax"]) * mu)
        own["eta"].fill_(lr / (1 + lambd * lr * t) ** group["alpha"])
        own["mu"].fill_(1 / max(1, t - group["t0"]))


class Ftrl(ByFormula):
    """Follow the regularized leader (McMahan et al. 2013).

    With p = -lr_power, and n0 for the previous n, each step computes

        n += g^2
        z += g - (n^p - n0^p) / lr * w
        w = 0 if |z| <= lambda1, else (sign(z) lambda1 - z) / ((beta + n^p) / lr + lambda2)

    The state contains "step", "accumulator_value" (n), and "z".

    Args:
        params: parameters, or dicts of parameters with their own options (see Optimizer).
        lr: learning rate. With 0, a step does not change w, n, and z.
        weight_decay: factor of w in the gradient.
        lr_power: exponent, 0 or less. With -0.5, the rate is inversely proportional to sqrt(n).
        initial_accumulator_value: first value of n.
        lambda1: L1 regularization, which makes weights exactly 0.
        lambda2: L2 regularization.
        beta: number added to n^p, which decreases the rate.
        maximize: maximize the objective instead of minimizing it.
    """

    def __init__(self, params: Iterable, lr: float = 0.001, weight_decay: float = 0.0, lr_power: float = -0.5,
                 initial_accumulator_value: float = 0.1, lambda1: float = 0.0, lambda2: float = 0.0,
                 beta: float = 0.0, *, maximize: bool = False):
        Optimizer.__init__(self, params, {
            "lr": lr, "weight_decay": weight_decay, "lr_power": lr_power,
            "initial_accumulator_value": initial_accumulator_value, "lambda1": lambda1, "lambda2": lambda2,
            "beta": beta, "maximize": maximize})

    def check(self, group: Mapping[str, Any]) -> None:
        super().check(group)
        self.need(group["lr_power"] <= 0, "lr_power value", group["lr_power"], "0 or less: -0.5, say")
        for name in ("initial_accumulator_value", "lambda1", "lambda2", "beta"):
            self.need(group[name] >= 0, f"{name} value", group[name])

    def first(self, p: Tensor, group: Mapping[str, Any]) -> dict[str, Tensor]:
        return {"accumulator_value": full_like(p, float(group["initial_accumulator_value"])),
                "z": zeros_like(p)}

    def move(self, w: Tensor, g: Tensor, t: int, lr: float, own: dict, group: Mapping[str, Any]) -> None:
        if lr == 0:
            return
        n, z, p = own["accumulator_value"], own["z"], -group["lr_power"]
        before = n.pow(p)
        after = n.addcmul_(g, g).pow(p)
        z.add_(g - (after - before) / lr * w)
        moved = (z.sign() * group["lambda1"] - z) / ((after + group["beta"]) / lr + group["lambda2"])
        w.copy_(where(z.abs() <= group["lambda1"], zeros_like(w), moved))
