"""Parts of optimizers: update rules, their states, and the interface to graphs."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from flowedu.core.ops.define import Op
from flowedu.core.values.dtype import HALVES, float32
from flowedu.core.values.spec import Spec


class State(NamedTuple):
    """A tensor that an update keeps for each parameter, such as a momentum.

    suffix: the name in a graph is `<parameter>-<suffix>`. key: key in `optimizer.state[parameter]`.
    initial: first value. single: True for one value of shape (1,), False for the parameter's shape.
    wide: True for float32 if the parameter has 16 bits. master: True for a float32 copy of a 16-bit
    parameter; for wider parameters this state is missing, and the update uses the parameter.
    """

    suffix: str
    key: str = ""
    initial: float = 0.0
    single: bool = False
    wide: bool = False
    master: bool = False

    def spec(self, of: Spec) -> Spec | Any:
        """Return the Spec of the state of a parameter with Spec `of`, or None if it has none."""
        narrow = of.dtype in HALVES
        if self.master and not narrow:
            return None
        return Spec((1,) if self.single else of.shape,
                    float32 if self.wide and narrow else of.dtype)


class UpdateRule(NamedTuple):
    """An in-place update: `op(lr, step, *[w, g, *states of each parameter], **attrs)`."""

    op: Op
    attrs: dict
    states: tuple[State, ...] = ()


class BaseOptimizer:
    """Interface of an optimizer for an nn.Graph.

    Attributes: param_groups, the parameters with their options: [{"params": list of parameters,
    "lr": ...}]; count_, an int64 tensor with the number of steps.
    """

    param_groups: list[dict]
    count_: Any

    def state_of(self, p: Any, group: Mapping[str, Any]) -> dict:
        """Return the states of a parameter as {key: tensor}, not copied; create missing ones."""
        raise NotImplementedError(f"{type(self).__name__}.state_of is not defined")

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        raise NotImplementedError(f"{type(self).__name__}.update_of is not defined")

    def clipping_of(self, group: Mapping[str, Any]) -> Any:
        """Return an object whose factor(gradients) returns the factor that clips them, or None."""
        return None
