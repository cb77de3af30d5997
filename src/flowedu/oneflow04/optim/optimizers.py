"""Optimizers of flow.optimizer with the formulas of OneFlow 0.4 (see the classes).

The formulas use these symbols. w: the weight. g: the gradient of the mean loss plus that of the regularizer,
after clipping. lr: the learning rate. wd: the weight decay, 0 for classes without it. t: the step, starting
at 1. One kernel call updates all parameters.
"""
from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from flowedu.core.layers.context import current
from flowedu.core.layers.group import State, UpdateRule
from flowedu.core.ops.update import sgd_update
from flowedu.errors import ArgumentError, CheckError, UnsupportedError
from flowedu.errors.once import say_once
from flowedu.oneflow04.job.training_updates import Training
from flowedu.oneflow04.optim.loss_scale import LossScalePolicy, StaticLossScalePolicy
from flowedu.oneflow04.optim.schedule import LrScheduler, as_scheduler
from flowedu.oneflow04.optim.weight_decay import WeightDecay
from flowedu.ops.update_adaptive import (
    adam_update,
    lamb_update,
    lars_update,
    rmsprop_centered_update,
    rmsprop_update,
)
from flowedu.ops.update_sgd import momentum_update
from flowedu.optim.checks import number
from flowedu.optim.master import with_master

_MOMENTS = State("m"), State("v")


class Minimizer:
    """Base class of single and combined optimizers.

    Args:
        loss_scale_factor: a constant factor that the loss is multiplied by and the gradients are divided by.
        train_step_lbn: the logical name of an int64 variable of shape (1,) that counts the steps instead of
            the job's own counter. Schedules and bias correction use its value before the run. The program
            must increase it.
        loss_scale_policy: a policy of flow.optimizer.loss_scale, instead of loss_scale_factor.
    """

    parts: tuple[Optimizer, ...]

    def __init__(self, loss_scale_factor: float | None, train_step_lbn: str | None, loss_scale_policy):
        self.what = f"optimizer.{type(self).__name__}"
        if loss_scale_factor is not None:
            if loss_scale_policy is not None:
                raise CheckError(f"{self.what}: loss_scale_factor and loss_scale_policy exclude each other",
                                 expected="one of them, or none",
                                 got=f"{loss_scale_factor!r} and {loss_scale_policy!r}",
                                 fix="leave loss_scale_factor out")
            loss_scale_policy = StaticLossScalePolicy(loss_scale_factor)
        if loss_scale_policy is not None and not isinstance(loss_scale_policy, LossScalePolicy):
            raise ArgumentError(f"{self.what}: loss_scale_policy is not a policy",
                                got=repr(loss_scale_policy),
                                expected="flow.optimizer.loss_scale.static_loss_scale(f) or "
                                "dynamic_loss_scale()", fix="leave it out: float32 rarely needs one")
        if train_step_lbn is not None and not isinstance(train_step_lbn, str):
            raise ArgumentError(f"{self.what}: train_step_lbn is not a name",
                                expected='a logical blob name, "step/out"',
                                got=repr(train_step_lbn), fix="pass blob.logical_blob_name")
        self.loss_scale_policy, self.train_step_lbn = loss_scale_policy, train_step_lbn

    def minimize(self, loss) -> None:
        """Train on `loss`: minimize the mean of its elements.

        Call it inside a train job. A second call in the same job replaces the first.

        Args:
            loss: a blob, or a list of blobs of one shape.
        """
        context = current()
        if not hasattr(context, "minimize"):
            raise UnsupportedError("minimize: not inside a job",
                                   expected="a call in the body of a job function", got="a call outside",
                                   fix='put it into a function decorated with @flow.global_function("train")')
        context.minimize(self, list(loss) if isinstance(loss, (list, tuple)) else [loss])

    def training(self, context) -> Training:
        """Return the work of the optimizer in a job. The job calls it when minimize is called."""
        return Training(self, context)


class Optimizer(Minimizer):
    """Base class of the update rules.

    Args:
        lr_scheduler: a scheduler, such as PiecewiseConstantScheduler([], [0.1]).
        loss_scale_factor: a constant loss scale, or None.
        grad_clipping: flow.optimizer.grad_clipping.by_global_norm(clip_norm), or None.
        train_step_lbn: the logical name of a variable that counts the steps, or None.
        loss_scale_policy: a policy of flow.optimizer.loss_scale, or None.
        variables: the names of the variables to train, or a function that returns them. None is all trainable
            variables that exist when `minimize` is called.
        weight_decay: the factor wd, or None.
        weight_decay_includes: regular expressions of the names that decay, or None.
        weight_decay_excludes: regular expressions of the names that do not decay, or None.
        master_weights: store a float32 copy of each 16-bit variable in "<name>-master" and update the copy;
            the variable is the rounded copy (flowedu/optim/master.py). Only flowedu has this argument.

    Attributes:
        rule: the update without weight decay.
        decay: the weight decay of each name.
        secondary: the schedule of variables whose model_name is "bias", if it differs
            (oneflow04/optim/optimizer_conf.py).
    """

    rule: UpdateRule
    secondary: LrScheduler | None = None

    def __init__(self, lr_scheduler, loss_scale_factor=None, grad_clipping=None, train_step_lbn=None,
                 loss_scale_policy=None, variables: Sequence[str] | Callable | None = None, *,
                 weight_decay=None,
                 weight_decay_includes=None, weight_decay_excludes=None, master_weights: bool = False):
        super().__init__(loss_scale_factor, train_step_lbn, loss_scale_policy)
        self.lr_scheduler = as_scheduler(lr_scheduler, f"{self.what}: lr_scheduler")
        if grad_clipping is not None and not hasattr(grad_clipping, "clip_norm"):
            raise ArgumentError(f"{self.what}: grad_clipping is not a clipping rule",
                                expected="flow.optimizer.grad_clipping.by_global_norm(clip_norm)",
                                got=repr(grad_clipping),
                                fix="grad_clipping=flow.optimizer.grad_clipping.by_global_norm(1.0)")
        if isinstance(variables, str):
            raise ArgumentError(f"{self.what}: variables is one string",
                                expected="a list of names, or a function that returns one",
                                got=repr(variables), fix=f"variables=[{variables!r}]")
        self.grad_clipping, self.variables = grad_clipping, variables
        self.decay = WeightDecay(self.what, weight_decay, weight_decay_includes, weight_decay_excludes)
        if not isinstance(master_weights, bool):
            raise ArgumentError(f"{self.what}: master_weights is not a yes or no",
                                expected="True: a float32 copy of each 16-bit variable is kept, and updated",
                                got=repr(master_weights), fix="master_weights=True")
        self.master_weights = master_weights

    parts: Any = property(lambda self: (self,))     # an attribute in the other classes

    def update_of(self, names: Sequence[str]) -> UpdateRule:
        """Return the update of these variables. A state of suffix "m" is the variable "<name>-m"."""
        decay = tuple(map(self.decay, names)) if self.decay.factor else ()
        rule = self.rule._replace(attrs={**self.rule.attrs, "weight_decay": decay})
        return with_master(rule) if self.master_weights else rule

    def number(self, name: str, value, **bounds) -> float:
        return number(self.what, name, value, **bounds)


class SGDW(Optimizer):
    """Stochastic gradient descent with weight decay.

    Without momentum, w -= lr*(g + wd*w). With momentum, m = momentum*m - lr*g; w += m - lr*wd*w. So m already
    contains the learning rate. The default momentum is 0.9, as in OneFlow 0.4. State: "momentum".

    Args:
        lr_scheduler: a scheduler of flow.optimizer.
        loss_scale_factor: a constant loss scale, or None.
        momentum: the momentum, in [0, 1).
        weight_decay: the factor wd, or None.
        weight_decay_includes: regular expressions of the names that decay, or None.
        weight_decay_excludes: regular expressions of the names that do not decay, or None.
        grad_clipping: flow.optimizer.grad_clipping.by_global_norm(clip_norm), or None.
        train_step_lbn: the logical name of a variable that counts the steps, or None.
        loss_scale_policy: a policy of flow.optimizer.loss_scale, or None.
        variables: the names of the variables to train; None is all trainable ones.
        master_weights: update float32 copies of 16-bit variables.
    """

    def __init__(self, lr_scheduler, loss_scale_factor: float | None = None, momentum: float = 0.9,
                 weight_decay: float | None = None, weight_decay_includes: str | Sequence[str] | None = None,
                 weight_decay_excludes: str | Sequence[str] | None = None, grad_clipping=None,
                 train_step_lbn: str | None = None, loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        super().__init__(lr_scheduler, loss_scale_factor, grad_clipping, train_step_lbn, loss_scale_policy,
                         variables, weight_decay=weight_decay, weight_decay_includes=weight_decay_includes,
                         weight_decay_excludes=weight_decay_excludes, master_weights=master_weights)
        self.momentum = self.number("momentum", momentum, least=0, below=1)
        self.rule = UpdateRule(momentum_update, {"beta": self.momentum}, (State("momentum"),)) \
            if self.momentum else UpdateRule(sgd_update, {})


class SGD(SGDW):
    """Stochastic gradient descent.

    Without momentum, w -= lr*g. With momentum, m = momentum*m - lr*g; w += m. So m already contains the
    learning rate. The default momentum is 0.9, as in OneFlow 0.4. State: "momentum".

    Args:
        lr_scheduler: a scheduler of flow.optimizer.
        loss_scale_factor: a constant loss scale, or None.
        momentum: the momentum, in [0, 1).
        grad_clipping: flow.optimizer.grad_clipping.by_global_norm(clip_norm), or None.
        train_step_lbn: the logical name of a variable that counts the steps, or None.
        loss_scale_policy: a policy of flow.optimizer.loss_scale, or None.
        variables: the names of the variables to train; None is all trainable ones.
        master_weights: update float32 copies of 16-bit variables.
    """

    def __init__(self, lr_scheduler, loss_scale_factor: float | None = None, momentum: float = 0.9,
                 grad_clipping=None,
                 train_step_lbn: str | None = None, loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        super().__init__(lr_scheduler, loss_scale_factor, momentum, grad_clipping=grad_clipping,
                         train_step_lbn=train_step_lbn, loss_scale_policy=loss_scale_policy,
                         variables=variables, master_weights=master_weights)


class AdamW(Optimizer):
    """Adam with decoupled weight decay.

    m = b1*m + (1-b1)*g; v = b2*v + (1-b2)*g*g; w -= lr * (m/(sqrt(v)+epsilon) + wd*w). State: "m", "v".

    Args:
        lr_scheduler: a scheduler of flow.optimizer.
        beta1: the factor b1, in [0, 1).
        beta2: the factor b2, in [0, 1).
        epsilon: a constant added to the denominator.
        do_bias_correction: multiply lr, also for the decay, by sqrt(1-b2^t)/(1-b1^t). Off by default, as in
            OneFlow 0.4.
        loss_scale_factor: a constant loss scale, or None.
        weight_decay: the factor wd, or None.
        weight_decay_includes: regular expressions of the names that decay, or None.
        weight_decay_excludes: regular expressions of the names that do not decay, or None.
        grad_clipping: flow.optimizer.grad_clipping.by_global_norm(clip_norm), or None.
        train_step_lbn: the logical name of a variable that counts the steps, or None.
        loss_scale_policy: a policy of flow.optimizer.loss_scale, or None.
        variables: the names of the variables to train; None is all trainable ones.
        master_weights: update float32 copies of 16-bit variables.
    """

    def __init__(self, lr_scheduler, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 do_bias_correction: bool = False, loss_scale_factor: float | None = None,
                 weight_decay: float | None = None, weight_decay_includes: str | Sequence[str] | None = None,
                 weight_decay_excludes: str | Sequence[str] | None = None, grad_clipping=None,
                 train_step_lbn: str | None = None, loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        super().__init__(lr_scheduler, loss_scale_factor, grad_clipping, train_step_lbn, loss_scale_policy,
                         variables, weight_decay=weight_decay, weight_decay_includes=weight_decay_includes,
                         weight_decay_excludes=weight_decay_excludes, master_weights=master_weights)
        self.rule = UpdateRule(adam_update, {
            "beta1": self.number("beta1", beta1, least=0, below=1),
            "beta2": self.number("beta2", beta2, least=0, below=1),
            "epsilon": self.number("epsilon", epsilon, least=0),
            "do_bias_correction": bool(do_bias_correction)}, _MOMENTS)


class Adam(AdamW):
    """Adam.

    m = b1*m + (1-b1)*g; v = b2*v + (1-b2)*g*g; w -= lr * m/(sqrt(v)+epsilon). State: "m", "v".

    Args:
        lr_scheduler: a scheduler of flow.optimizer.
        beta1: the factor b1, in [0, 1).
        beta2: the factor b2, in [0, 1).
        epsilon: a constant added to the denominator.
        do_bias_correction: multiply lr by sqrt(1-b2^t)/(1-b1^t). Off by default, as in OneFlow 0.4.
        loss_scale_factor: a constant loss scale, or None.
        grad_clipping: flow.optimizer.grad_clipping.by_global_norm(clip_norm), or None.
        train_step_lbn: the logical name of a variable that counts the steps, or None.
        loss_scale_policy: a policy of flow.optimizer.loss_scale, or None.
        variables: the names of the variables to train; None is all trainable ones.
        master_weights: update float32 copies of 16-bit variables.
    """

    def __init__(self, lr_scheduler, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 do_bias_correction: bool = False, loss_scale_factor: float | None = None, grad_clipping=None,
                 train_step_lbn: str | None = None, loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        super().__init__(lr_scheduler, beta1, beta2, epsilon, do_bias_correction, loss_scale_factor,
                         grad_clipping=grad_clipping, train_step_lbn=train_step_lbn,
                         loss_scale_policy=loss_scale_policy,
                         variables=variables, master_weights=master_weights)


class LazyAdam(Adam):
    """Adam with bias correction.

    OneFlow's version skips rows without a gradient. In flowedu gradients are dense, so no row is skipped.

    Args:
        lr_scheduler: a scheduler of flow.optimizer.
        beta1: the factor b1, in [0, 1).
        beta2: the factor b2, in [0, 1).
        epsilon: a constant added to the denominator.
        loss_scale_factor: a constant loss scale, or None.
        grad_clipping: flow.optimizer.grad_clipping.by_global_norm(clip_norm), or None.
        train_step_lbn: the logical name of a variable that counts the steps, or None.
        loss_scale_policy: a policy of flow.optimizer.loss_scale, or None.
        variables: the names of the variables to train; None is all trainable ones.
        master_weights: update float32 copies of 16-bit variables.
    """

    def __init__(self, lr_scheduler, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 loss_scale_factor: float | None = None, grad_clipping=None,
                 train_step_lbn: str | None = None, loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        say_once("optimizer.LazyAdam", "gradients are dense, so every row is updated: it is Adam with bias "
                 "correction")
        super().__init__(lr_scheduler, beta1, beta2, epsilon, True, loss_scale_factor, grad_clipping,
                         train_step_lbn, loss_scale_policy, variables, master_weights=master_weights)


class RMSProp(Optimizer):
    """RMSProp, with epsilon inside the root.

    ms = r*ms + (1-r)*g*g; w -= lr * g/sqrt(ms + epsilon), where r is the decay rate. State: "mean_square",
    "mean_gradient".

    Args:
        lr_scheduler: a scheduler of flow.optimizer.
        decay_rate: the factor r, in [0, 1).
        epsilon: a constant added to the mean square.
        centered: also compute mg = r*mg + (1-r)*g, and use ms - mg*mg (at least 0) instead of ms under the
            root.
        loss_scale_factor: a constant loss scale, or None.
        grad_clipping: flow.optimizer.grad_clipping.by_global_norm(clip_norm), or None.
        train_step_lbn: the logical name of a variable that counts the steps, or None.
        loss_scale_policy: a policy of flow.optimizer.loss_scale, or None.
        variables: the names of the variables to train; None is all trainable ones.
        master_weights: update float32 copies of 16-bit variables.
    """

    def __init__(self, lr_scheduler, decay_rate: float = 0.99, epsilon: float = 1e-8, centered: bool = False,
                 loss_scale_factor: float | None = None, grad_clipping=None,
                 train_step_lbn: str | None = None, loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        super().__init__(lr_scheduler, loss_scale_factor, grad_clipping, train_step_lbn, loss_scale_policy,
                         variables, master_weights=master_weights)
        self.centered = bool(centered)
        self.rule = UpdateRule(rmsprop_centered_update if centered else rmsprop_update, {
            "decay_rate": self.number("decay_rate", decay_rate, least=0, below=1),
            "epsilon": self.number("epsilon", epsilon, least=0)},
            (State("mean_square"), State("mean_gradient"))[:1 + self.centered])


class LARS(Optimizer):
    """LARS, layer-wise adaptive rate scaling.

    m = b*m - lr*c*g; w += m - lr*c*wd*w. For each variable, c = lars_coefficient*|w| / (epsilon + |g| +
    wd*|w|), where |.| is the norm. If |w| or |g| is 0, c is 1. State: "momentum".

    Args:
        lr_scheduler: a scheduler of flow.optimizer.
        momentum_beta: the momentum b, in [0, 1).
        epsilon: a constant added to the denominator.
        lars_coefficient: the factor of the ratio of norms, above 0.
        loss_scale_factor: a constant loss scale, or None.
        weight_decay: the factor wd, or None.
        weight_decay_includes: regular expressions of the names that decay, or None.
        weight_decay_excludes: regular expressions of the names that do not decay, or None.
        grad_clipping: flow.optimizer.grad_clipping.by_global_norm(clip_norm), or None.
        train_step_lbn: the logical name of a variable that counts the steps, or None.
        loss_scale_policy: a policy of flow.optimizer.loss_scale, or None.
        variables: the names of the variables to train; None is all trainable ones.
        master_weights: update float32 copies of 16-bit variables.
    """

    def __init__(self, lr_scheduler, momentum_beta: float = 0.9, epsilon: float = 1e-9,
                 lars_coefficient: float = 0.0001,
                 loss_scale_factor: float | None = None, weight_decay: float | None = None,
                 weight_decay_includes: str | Sequence[str] | None = None,
                 weight_decay_excludes: str | Sequence[str] | None = None, grad_clipping=None,
                 train_step_lbn: str | None = None, loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        super().__init__(lr_scheduler, loss_scale_factor, grad_clipping, train_step_lbn, loss_scale_policy,
                         variables, weight_decay=weight_decay, weight_decay_includes=weight_decay_includes,
                         weight_decay_excludes=weight_decay_excludes, master_weights=master_weights)
        self.rule = UpdateRule(lars_update, {
            "momentum_beta": self.number("momentum_beta", momentum_beta, least=0, below=1),
            "epsilon": self.number("epsilon", epsilon, least=0),
            "lars_coefficient": self.number("lars_coefficient", lars_coefficient, above=0)},
                               (State("momentum"),))


class LAMB(Optimizer):
    """LAMB, layer-wise adaptive moments.

    a = (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + epsilon); w -= lr*c*(a + wd*w), with the m and v of Adam. For
    each variable, c = |w|/|a|, where |.| is the norm, or 1 if one of the norms is 0.

    State: "m" and "v", and two values of shape (1,): "beta1_t" and "beta2_t" are b1^t and b2^t of the next
    step. OneFlow 0.4 multiplies these values before it reads them, so it corrects the first step as if it
    were the second. flowedu reads them first.

    Args:
        lr_scheduler: a scheduler of flow.optimizer.
        beta1: the factor b1, in [0, 1).
        beta2: the factor b2, in [0, 1).
        epsilon: a constant added to the denominator.
        loss_scale_factor: a constant loss scale, or None.
        weight_decay: the factor wd, or None.
        weight_decay_includes: regular expressions of the names that decay, or None.
        weight_decay_excludes: regular expressions of the names that do not decay, or None.
        grad_clipping: flow.optimizer.grad_clipping.by_global_norm(clip_norm), or None.
        train_step_lbn: the logical name of a variable that counts the steps, or None.
        loss_scale_policy: a policy of flow.optimizer.loss_scale, or None.
        variables: the names of the variables to train; None is all trainable ones.
        master_weights: update float32 copies of 16-bit variables.
    """

    def __init__(self, lr_scheduler, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6,
                 loss_scale_factor: float | None = None, weight_decay: float | None = None,
                 weight_decay_includes: str | Sequence[str] | None = None,
                 weight_decay_excludes: str | Sequence[str] | None = None, grad_clipping=None,
                 train_step_lbn: str | None = None, loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        super().__init__(lr_scheduler, loss_scale_factor, grad_clipping, train_step_lbn, loss_scale_policy,
                         variables, weight_decay=weight_decay, weight_decay_includes=weight_decay_includes,
                         weight_decay_excludes=weight_decay_excludes, master_weights=master_weights)
        numbers = {"beta1": self.number("beta1", beta1, least=0, below=1),
                   "beta2": self.number("beta2", beta2, least=0, below=1)}
        powers = (State(f"{n}_t", initial=beta, single=True) for n, beta in numbers.items())
        self.rule = UpdateRule(lamb_update, {**numbers, "epsilon": self.number("epsilon", epsilon, least=0)},
                               (*_MOMENTS, *powers))


class CombinedOptimizer(Minimizer):
    """Several optimizers in one job, each with its own variables, schedule, clipping, and decay.

    Args:
        optimizers: a list of optimizers that share no variable.
        loss_scale_factor: a constant loss scale, or None.
        train_step_lbn: the logical name of a step counter for all optimizers; then none may have its own.
        loss_scale_policy: a policy for all optimizers; then none may have its own.
    """

    def __init__(self, optimizers: Sequence[Optimizer], loss_scale_factor: float | None = None,
                 train_step_lbn: str | None = None, loss_scale_policy=None):
        super().__init__(loss_scale_factor, train_step_lbn, loss_scale_policy)
        if not isinstance(optimizers, (list, tuple)) or not optimizers \
                or not all(isinstance(o, Optimizer) for o in optimizers):
            raise CheckError("optimizer.CombinedOptimizer: optimizers is not a list of optimizers",
                             expected="flow.optimizer.SGD(...) and its like, one or more",
                             got=repr(optimizers),
                             fix='CombinedOptimizer([SGD(lr, variables=["w"]), Adam(lr, variables=["b"])])')
        for what, mine, theirs in (
                ("train_step_lbn", train_step_lbn, [o.train_step_lbn for o in optimizers]),
                ("loss_scale_policy", self.loss_scale_policy, [o.loss_scale_policy for o in optimizers])):
            if mine is not None and any(x is not None for x in theirs):
                raise CheckError(f"optimizer.CombinedOptimizer: only one {what} among several optimizers",
                                 expected="given here, or to the single optimizers", got="both",
                                 fix=f"leave {what} out here")
        self.optimizers = self.parts = tuple(copy.copy(o) for o in optimizers)
        for part in self.parts if train_step_lbn is not None else ():
            part.train_step_lbn = train_step_lbn
