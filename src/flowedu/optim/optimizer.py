"""flow.optimizer: what `minimize` does to each variable. Formulas as in OneFlow 0.4 (spec in each docstring).

w weight, g gradient of the mean loss, lr learning rate. All parameters are updated by one kernel call.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from flowedu.context import current
from flowedu.errors import ArgumentError, UnsupportedError
from flowedu.ops import REGISTRY
from flowedu.optim.schedule import as_scheduler


class Optimizer:
    """Base class.

    Args:
        lr_scheduler: a scheduler, such as PiecewiseConstantScheduler([], [0.1]).
        variables: which variables to train: names, or a function that returns names. Default: all trainable ones that
            exist when `minimize` is called.
    """

    op: ClassVar[str]
    slots: ClassVar[tuple[str, ...]] = ()     # suffixes of the state variables

    def __init__(self, lr_scheduler, loss_scale_factor=None, grad_clipping=None, train_step_lbn=None,
                 loss_scale_policy=None, variables: Sequence[str] | Callable | None = None):
        self.lr_scheduler = as_scheduler(lr_scheduler, f"optimizer.{type(self).__name__}: lr_scheduler")
        if grad_clipping is not None and not hasattr(grad_clipping, "clip_norm"):
            raise ArgumentError("grad_clipping is not a clipping rule", expected="flow.optimizer.grad_clipping."
                                "by_global_norm(clip_norm)", got=repr(grad_clipping),
                                fix="grad_clipping=flow.optimizer.grad_clipping.by_global_norm(1.0)")
        self.grad_clipping, self.variables = grad_clipping, variables

    def attributes(self, names: Sequence[str]) -> dict:
        """Attributes of the update op for these variables."""
        return {}

    @property
    def update(self):
        return REGISTRY[self.op]

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


class SGD(Optimizer):
    """momentum == 0: w -= lr*g. Otherwise m = momentum*m - lr*g; w += m (the rate is part of m).

    The default momentum is 0.9, as in OneFlow 0.4.
    """

    def __init__(self, lr_scheduler, loss_scale_factor=None, momentum: float = 0.9, grad_clipping=None,
                 train_step_lbn=None, loss_scale_policy=None, variables=None):
        super().__init__(lr_scheduler, loss_scale_factor, grad_clipping, train_step_lbn, loss_scale_policy, variables)
        if not isinstance(momentum, (int, float)) or not 0 <= momentum < 1:
            raise ArgumentError("optimizer.SGD: momentum is out of range", expected="0 <= momentum < 1", got=repr(momentum),
                                fix="momentum=0.9, or 0 for plain gradient descent")
        self.momentum = float(momentum)
        self.op = "momentum_update" if momentum else "sgd_update"
        self.slots = ("momentum",) if momentum else ()

    def attributes(self, names):
        return {"beta": self.momentum} if self.momentum else {}


class Adam(Optimizer):
    """m = b1*m + (1-b1)*g; v = b2*v + (1-b2)*g*g; w -= lr * m/(sqrt(v)+epsilon).

    With do_bias_correction lr is multiplied by sqrt(1-b2^t)/(1-b1^t); it is off by default, as in OneFlow 0.4.
    """

    op, slots = "adam_update", ("m", "v")

    def __init__(self, lr_scheduler, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
                 do_bias_correction: bool = False, loss_scale_factor=None, grad_clipping=None, train_step_lbn=None,
                 loss_scale_policy=None, variables=None):
        super().__init__(lr_scheduler, loss_scale_factor, grad_clipping, train_step_lbn, loss_scale_policy, variables)
        for name, value in (("beta1", beta1), ("beta2", beta2)):
            if not 0 <= value < 1:
                raise ArgumentError(f"optimizer.Adam: {name} is out of range", expected=f"0 <= {name} < 1", got=repr(value),
                                    fix="leave it out: beta1=0.9, beta2=0.999")
        self.hyper = {"beta1": float(beta1), "beta2": float(beta2), "epsilon": float(epsilon),
                      "do_bias_correction": bool(do_bias_correction)}

    def attributes(self, names):
        return self.hyper
