"""The loss scale of a job: where it comes from, and its steps in the order in which a training graph takes them."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowedu.core.values.spec import Spec
from flowedu.errors import CheckError
from flowedu.oneflow04.optim.loss_scale import LossScalePolicy, StaticLossScalePolicy
from flowedu.optim import overflow


def loss_scale_policy(optimizer, config) -> LossScalePolicy | None:
    """The policy of an optimizer or of one of its parts, or else of config.train.loss_scale_factor."""
    given = [o.loss_scale_policy for o in (optimizer, *optimizer.parts) if o.loss_scale_policy is not None]
    found = list(dict.fromkeys(given))
    if len(found) > 1:
        raise CheckError("minimize: the optimizers of a CombinedOptimizer have different loss scales", got=f"{len(found)} "
                         "policies", expected="one, for there is one loss",
                         fix="CombinedOptimizer([...], loss_scale_policy=...), and none in its optimizers", at="")
    factor = config.values.get("train.loss_scale_factor") if config else None
    return found[0] if found else None if factor is None else StaticLossScalePolicy(factor)


class Scaling:
    """One training step's part of a policy: `seed` before the backward pass, `undo` after it, `step` for every update,
    `finish` at the end.

    Args:
        job: the JobContext.
        policy: None for a loss as it is.
    """

    def __init__(self, job, policy: LossScalePolicy | None):
        self.job, self.policy, self.finite = job, policy, None
        self.factor: Any = 1.0
        if policy is not None:
            with job.graph.building():
                self.factor = policy.factor(self._variable)

    def _variable(self, name: str, spec: Spec, initializer):
        return self.job.state_variable(f"System-Train-DynamicLossScale-{self.job.name}-{name}", spec, initializer)

    def seed(self, spec: Spec):
        """The gradient of a loss to begin with."""
        return overflow.seed(spec, self.factor)

    def undo(self, grads: Mapping[str, Any], scale: float) -> tuple[dict[str, Any], float]:
        """(gradients, the number that the updates multiply them by), for the `scale` of a loss as it is."""
        if isinstance(self.factor, float):
            return dict(grads), scale / self.factor
        with self.job.graph.building():
            self.finite = overflow.all_finite(list(grads.values()))
            return dict(zip(grads, overflow.divided(list(grads.values()), self.factor))), scale

    def step(self, step):
        """The number of the step for an update, which may say that it is left out."""
        return step if self.finite is None else overflow.step_or_none(step, self.finite)

    def finish(self) -> None:
        """Append what the policy remembers for the next step."""
        if self.finite is not None:
            self.policy.finish(self._variable, self.finite)
