"""flow.optimizer: what `minimize` does to each variable. Formulas as in OneFlow 0.4 (each class has its own).

w weight, g gradient of the mean loss, with the regularizer's part, clipped; lr learning rate; wd weight decay, which is
0 unless the class takes it; t = 1, 2, ... the number of the step. All parameters are updated by one kernel call.
"""
from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

from flowedu.core.layers.context import current
from flowedu.core.layers.group import State, UpdateRule
from flowedu.errors import ArgumentError, CheckError, UnsupportedError
from flowedu.errors.once import say_once
from flowedu.oneflow04.job.update import Training
from flowedu.oneflow04.optim.decay import WeightDecay
from flowedu.oneflow04.optim.loss_scale import LossScalePolicy, StaticLossScalePolicy
from flowedu.oneflow04.optim.schedule import LrScheduler, as_scheduler
from flowedu.ops import REGISTRY
from flowedu.optim.checks import number
from flowedu.optim.master import with_master

_MOMENTS = State("m"), State("v")


class Minimizer:
    """What one optimizer and several of them have in common.

    Args:
        loss_scale_factor, loss_scale_policy: a number, or one of flow.optimizer.loss_scale: what the loss is multiplied,
            and the gradients divided, by (oneflow04/optim/loss_scale.py).
        train_step_lbn: logical name of an int64 variable of shape (1,) that counts the steps instead of the job's own
            counter: schedules and bias correction go by its value before the run. Nobody but you changes it.
    """

    parts: tuple[Optimizer, ...]

    def __init__(self, loss_scale_factor: float | None, train_step_lbn: str | None, loss_scale_policy):
        self.what = f"optimizer.{type(self).__name__}"
        if loss_scale_factor is not None:
            if loss_scale_policy is not None:
                raise CheckError(f"{self.what}: loss_scale_factor and loss_scale_policy exclude each other",
                                 expected="one of them, or none", got=f"{loss_scale_factor!r} and {loss_scale_policy!r}",
                                 fix="leave loss_scale_factor out")
            loss_scale_policy = StaticLossScalePolicy(loss_scale_factor)
        if loss_scale_policy is not None and not isinstance(loss_scale_policy, LossScalePolicy):
            raise ArgumentError(f"{self.what}: loss_scale_policy is not a policy", got=repr(loss_scale_policy),
                                expected="flow.optimizer.loss_scale.static_loss_scale(f) or dynamic_loss_scale()",
                                fix="leave it out: float32 rarely needs one")
        if train_step_lbn is not None and not isinstance(train_step_lbn, str):
            raise ArgumentError(f"{self.what}: train_step_lbn is not a name", expected='a logical blob name, "step/out"',
                                got=repr(train_step_lbn), fix="pass blob.logical_blob_name")
        self.loss_scale_policy, self.train_step_lbn = loss_scale_policy, train_step_lbn

    def minimize(self, loss) -> None:
        """Train on `loss`, a blob or a list of blobs of one shape: the mean over its elements goes down.

        Only inside a train job. A second call in the same job replaces the first.
        """
        context = current()
        if not hasattr(context, "minimize"):
            raise UnsupportedError("minimize: not inside a job", expected="a call in the body of a job function",
                                   got="a call outside",
                                   fix='put it into a function decorated with @flow.global_function("train")')
        context.minimize(self, list(loss) if isinstance(loss, (list, tuple)) else [loss])

    def training(self, context) -> Training:
        """What it does in a job: the job asks when minimize is called."""
        return Training(self, context)


class Optimizer(Minimizer):
    """Base class of the rules.

    Args:
        lr_scheduler: a scheduler, such as PiecewiseConstantScheduler([], [0.1]).
        variables: which variables to train: names, or a function that returns names. Default: all trainable ones that
            exist when `minimize` is called.
        master_weights: keep the variable "<name>-master", a float32 copy of each 16-bit one, and update that; the variable
            is the copy rounded (flowedu/optim/master.py). flowedu's own; all optimizers take it.

    Attributes: rule, the update, but for weight decay; decay, the weight decay of each name; secondary, the schedule of
    variables whose model_name is "bias" where that is another one (oneflow04/optim/legacy.py).
    """

    rule: UpdateRule
    secondary: LrScheduler | None = None

    def __init__(self, lr_scheduler, loss_scale_factor=None, grad_clipping=None, train_step_lbn=None,
                 loss_scale_policy=None, variables: Sequence[str] | Callable | None = None, *, weight_decay=None,
                 weight_decay_includes=None, weight_decay_excludes=None, master_weights: bool = False):
        super().__init__(loss_scale_factor, train_step_lbn, loss_scale_policy)
        self.lr_scheduler = as_scheduler(lr_scheduler, f"{self.what}: lr_scheduler")
        if grad_clipping is not None and not hasattr(grad_clipping, "clip_norm"):
            raise ArgumentError(f"{self.what}: grad_clipping is not a clipping rule", expected="flow.optimizer."
                                "grad_clipping.by_global_norm(clip_norm)", got=repr(grad_clipping),
                                fix="grad_clipping=flow.optimizer.grad_clipping.by_global_norm(1.0)")
        if isinstance(variables, str):
            raise ArgumentError(f"{self.what}: variables is one string", expected="a list of names, or a function that "
                                "returns one", got=repr(variables), fix=f"variables=[{variables!r}]")
        self.grad_clipping, self.variables = grad_clipping, variables
        self.decay = WeightDecay(self.what, weight_decay, weight_decay_includes, weight_decay_excludes)
        if not isinstance(master_weights, bool):
            raise ArgumentError(f"{self.what}: master_weights is not a yes or no", expected="True: a float32 copy of each "
                                "16-bit variable is kept, and updated", got=repr(master_weights), fix="master_weights=True")
        self.master_weights = master_weights

    @property
    def parts(self) -> tuple[Optimizer, ...]:
        return (self,)

    def update_of(self, names: Sequence[str]) -> UpdateRule:
        """The update of these variables. A state of suffix "m" is the variable "<name>-m"."""
        decay = tuple(map(self.decay, names)) if self.decay.factor else ()
        rule = self.rule._replace(attrs={**self.rule.attrs, "weight_decay": decay})
        return with_master(rule) if self.master_weights else rule

    def number(self, name: str, value, **bounds) -> float:
        return number(self.what, name, value, **bounds)


class SGDW(Optimizer):
    """momentum == 0: w -= lr*(g + wd*w). Otherwise m = momentum*m - lr*g; w += m - lr*wd*w (the rate is part of m).

    The default momentum is 0.9, as in OneFlow 0.4. State: "momentum".
    """

    def __init__(self, lr_scheduler, loss_scale_factor: float | None = None, momentum: float = 0.9,
                 weight_decay: float | None = None, weight_decay_includes: str | Sequence[str] | None = None,
                 weight_decay_excludes: str | Sequence[str] | None = None, grad_clipping=None,
                 train_step_lbn: str | None = None, loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        super().__init__(lr_scheduler, loss_scale_factor, grad_clipping, train_step_lbn, loss_scale_policy, variables,
                         weight_decay=weight_decay, weight_decay_includes=weight_decay_includes,
                         weight_decay_excludes=weight_decay_excludes, master_weights=master_weights)
        self.momentum = self.number("momentum", momentum, least=0, below=1)
        self.rule = UpdateRule(REGISTRY["momentum_update"], {"beta": self.momentum}, (State("momentum"),)) \
            if self.momentum else UpdateRule(REGISTRY["sgd_update"], {})


class SGD(SGDW):
    """momentum == 0: w -= lr*g. Otherwise m = momentum*m - lr*g; w += m (the rate is part of m).

    The default momentum is 0.9, as in OneFlow 0.4. State: "momentum".
    """

    def __init__(self, lr_scheduler, loss_scale_factor: float | None = None, momentum: float = 0.9, grad_clipping=None,
                 train_step_lbn: str | None = None, loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        super().__init__(lr_scheduler, loss_scale_factor, momentum, grad_clipping=grad_clipping,
                         train_step_lbn=train_step_lbn, loss_scale_policy=loss_scale_policy, variables=variables,
                         master_weights=master_weights)


class AdamW(Optimizer):
    """m = b1*m + (1-b1)*g; v = b2*v + (1-b2)*g*g; w -= lr * (m/(sqrt(v)+epsilon) + wd*w).

    With do_bias_correction lr is multiplied by sqrt(1-b2^t)/(1-b1^t), also where it multiplies wd; it is off by default,
    as in OneFlow 0.4. State: "m", "v".
    """

    def __init__(self, lr_scheduler, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 do_bias_correction: bool = False, loss_scale_factor: float | None = None,
                 weight_decay: float | None = None, weight_decay_includes: str | Sequence[str] | None = None,
                 weight_decay_excludes: str | Sequence[str] | None = None, grad_clipping=None,
                 train_step_lbn: str | None = None, loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        super().__init__(lr_scheduler, loss_scale_factor, grad_clipping, train_step_lbn, loss_scale_policy, variables,
                         weight_decay=weight_decay, weight_decay_includes=weight_decay_includes,
                         weight_decay_excludes=weight_decay_excludes, master_weights=master_weights)
        self.rule = UpdateRule(REGISTRY["adam_update"], {
            "beta1": self.number("beta1", beta1, least=0, below=1),
            "beta2": self.number("beta2", beta2, least=0, below=1),
            "epsilon": self.number("epsilon", epsilon, least=0), "do_bias_correction": bool(do_bias_correction)}, _MOMENTS)


class Adam(AdamW):
    """m = b1*m + (1-b1)*g; v = b2*v + (1-b2)*g*g; w -= lr * m/(sqrt(v)+epsilon).

    With do_bias_correction lr is multiplied by sqrt(1-b2^t)/(1-b1^t); it is off by default, as in OneFlow 0.4.
    State: "m", "v".
    """

    def __init__(self, lr_scheduler, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 do_bias_correction: bool = False, loss_scale_factor: float | None = None, grad_clipping=None,
                 train_step_lbn: str | None = None, loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        super().__init__(lr_scheduler, beta1, beta2, epsilon, do_bias_correction, loss_scale_factor,
                         grad_clipping=grad_clipping, train_step_lbn=train_step_lbn, loss_scale_policy=loss_scale_policy,
                         variables=variables, master_weights=master_weights)


class LazyAdam(Adam):
    """Adam with bias correction. (OneFlow's skips rows without a gradient; gradients here are dense.)"""

    def __init__(self, lr_scheduler, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 loss_scale_factor: float | None = None, grad_clipping=None, train_step_lbn: str | None = None,
                 loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        say_once("optimizer.LazyAdam", "gradients are dense, so every row is updated: it is Adam with bias correction")
        super().__init__(lr_scheduler, beta1, beta2, epsilon, True, loss_scale_factor, grad_clipping, train_step_lbn,
                         loss_scale_policy, variables, master_weights=master_weights)


class RMSProp(Optimizer):
    """ms = r*ms + (1-r)*g*g; w -= lr * g/sqrt(ms + epsilon), with r the decay rate and epsilon inside the root.

    centered: mg = r*mg + (1-r)*g, and ms - mg*mg (at least 0) takes the place of ms under the root.
    State: "mean_square", "mean_gradient".
    """

    def __init__(self, lr_scheduler, decay_rate: float = 0.99, epsilon: float = 1e-8, centered: bool = False,
                 loss_scale_factor: float | None = None, grad_clipping=None, train_step_lbn: str | None = None,
                 loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        super().__init__(lr_scheduler, loss_scale_factor, grad_clipping, train_step_lbn, loss_scale_policy, variables,
                         master_weights=master_weights)
        self.centered = bool(centered)
        self.rule = UpdateRule(REGISTRY["rmsprop_centered_update" if centered else "rmsprop_update"], {
            "decay_rate": self.number("decay_rate", decay_rate, least=0, below=1),
            "epsilon": self.number("epsilon", epsilon, least=0)},
            (State("mean_square"), State("mean_gradient"))[:1 + self.centered])


class LARS(Optimizer):
    """m = b*m - lr*c*g; w += m - lr*c*wd*w. Per variable c = lars_coefficient*|w| / (epsilon + |g| + wd*|w|), with
    norms, or 1 when one of the two norms is 0. State: "momentum".
    """

    def __init__(self, lr_scheduler, momentum_beta: float = 0.9, epsilon: float = 1e-9, lars_coefficient: float = 0.0001,
                 loss_scale_factor: float | None = None, weight_decay: float | None = None,
                 weight_decay_includes: str | Sequence[str] | None = None,
                 weight_decay_excludes: str | Sequence[str] | None = None, grad_clipping=None,
                 train_step_lbn: str | None = None, loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        super().__init__(lr_scheduler, loss_scale_factor, grad_clipping, train_step_lbn, loss_scale_policy, variables,
                         weight_decay=weight_decay, weight_decay_includes=weight_decay_includes,
                         weight_decay_excludes=weight_decay_excludes, master_weights=master_weights)
        self.rule = UpdateRule(REGISTRY["lars_update"], {
            "momentum_beta": self.number("momentum_beta", momentum_beta, least=0, below=1),
            "epsilon": self.number("epsilon", epsilon, least=0),
            "lars_coefficient": self.number("lars_coefficient", lars_coefficient, above=0)}, (State("momentum"),))


class LAMB(Optimizer):
    """m, v as Adam's; a = (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + epsilon); w -= lr*c*(a + wd*w), where per variable
    c = |w|/|a|, or 1 when one of the norms is 0.

    State: "m", "v", and, of shape (1,), "beta1_t" and "beta2_t": b1^t and b2^t of the step to come. OneFlow 0.4 multiplies
    these before it reads them, which corrects the first step as if it were the second; flowedu does not.
    """

    def __init__(self, lr_scheduler, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-6,
                 loss_scale_factor: float | None = None, weight_decay: float | None = None,
                 weight_decay_includes: str | Sequence[str] | None = None,
                 weight_decay_excludes: str | Sequence[str] | None = None, grad_clipping=None,
                 train_step_lbn: str | None = None, loss_scale_policy=None, variables=None, *,
                 master_weights: bool = False):
        super().__init__(lr_scheduler, loss_scale_factor, grad_clipping, train_step_lbn, loss_scale_policy, variables,
                         weight_decay=weight_decay, weight_decay_includes=weight_decay_includes,
                         weight_decay_excludes=weight_decay_excludes, master_weights=master_weights)
        numbers = {"beta1": self.number("beta1", beta1, least=0, below=1),
                   "beta2": self.number("beta2", beta2, least=0, below=1)}
        powers = (State(f"{n}_t", initial=beta, single=True) for n, beta in numbers.items())
        self.rule = UpdateRule(REGISTRY["lamb_update"], {**numbers, "epsilon": self.number("epsilon", epsilon, least=0)},
                               (*_MOMENTS, *powers))


class CombinedOptimizer(Minimizer):
    """Several optimizers in one job: each trains its own `variables` by its own schedule, clipping and decay.

    Args:
        optimizers: they must not share a variable.
        train_step_lbn: for all of them; then none may have one of its own.
    """

    def __init__(self, optimizers: Sequence[Optimizer], loss_scale_factor: float | None = None,
                 train_step_lbn: str | None = None, loss_scale_policy=None):
        super().__init__(loss_scale_factor, train_step_lbn, loss_scale_policy)
        if not isinstance(optimizers, (list, tuple)) or not optimizers \
                or not all(isinstance(o, Optimizer) for o in optimizers):
            raise CheckError("optimizer.CombinedOptimizer: optimizers is not a list of optimizers",
                             expected="flow.optimizer.SGD(...) and its like, one or more", got=repr(optimizers),
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
