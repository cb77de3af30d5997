"""The loss scale of a job, and its steps in the order in which the training graph runs them."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowedu.core.values.spec import Spec
from flowedu.errors import CheckError
from flowedu.oneflow04.optim.loss_scale import LossScalePolicy, StaticLossScalePolicy
from flowedu.optim import overflow


def loss_scale_policy(optimizer, config) -> LossScalePolicy | None:
    """Return the policy of an optimizer or one of its parts, or that for config.train.loss_scale_factor."""
    given = [o.loss_scale_policy for o in (optimizer, *optimizer.parts) if o.loss_scale_policy is not None]
    found = list(dict.fromkeys(given))
    if len(found) > 1:
        raise CheckError("minimize: the optimizers of a CombinedOptimizer have different loss scales",
                         got=f"{len(found)} policies", expected="one, for there is one loss",
                         fix="CombinedOptimizer([...], loss_scale_policy=...), and none in its optimizers",
                         at="")
    factor = config.values.get("train.loss_scale_factor") if config else None
    if found:
        return found[0]
    return None if factor is None else StaticLossScalePolicy(factor)


class Scaling:
    """The operations of a loss scale in one training step.

    They are `seed` before the backward pass, `undo` after it, `step` for each update, and `finish` at the
    end.

    Args:
        job: the JobContext.
        policy: the policy; None does not scale the loss.
    """

    def __init__(self, job, policy: LossScalePolicy | None):
        self.job, self.policy, self.finite = job, policy, None
        self.factor: Any = 1.0
        if policy is not None:
            with job.graph.building():
                self.factor = policy.factor(self._variable)

    def _variable(self, name: str, spec: Spec, initializer):
        return self.job.state_variable(f"System-Train-DynamicLossScale-{self.job.name}-{name}", spec,
                                       initializer)

    def seed(self, spec: Spec):
        """Return the gradient of the loss with which the backward pass starts."""
        return overflow.seed(spec, self.factor)

    def undo(self, grads: Mapping[str, Any], scale: float) -> tuple[dict[str, Any], float]:
        """Return (gradients, the factor of the updates) without the loss scale."""
        if isinstance(self.factor, float):
            return dict(grads), scale / self.factor
        with self.job.graph.building():
            self.finite = overflow.all_finite(list(grads.values()))
            return dict(zip(grads, overflow.divided(list(grads.values()), self.factor))), scale

    def step(self, step):
        """Return the step number for an update. If gradients overflowed, it marks the update as skipped."""
        return step if self.finite is None else overflow.step_or_none(step, self.finite)

    def finish(self) -> None:
        """Append the ops that update the state of the policy."""
        if self.finite is not None:
            self.policy.finish(self._variable, self.finite)
