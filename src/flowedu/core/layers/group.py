"""The parts of optimizers: update rules, their states, and the interface between graphs and optimizers."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from flowedu.core.ops.define import Op
from flowedu.core.values.dtype import HALVES, float32
from flowedu.core.values.spec import Spec


class State(NamedTuple):
    """A tensor of a parameter's shape that an update remembers.

    suffix: in a graph the variable is `<parameter>-<suffix>`. key: in `optimizer.state[parameter]`. initial: first value.
    single: one number, of shape (1,), whatever the parameter's shape. wide: float32 where the parameter has 16 bits.
    master: the parameter itself, in float32; one that has more than 16 bits has no such state, and stands for it.
    """

    suffix: str
    key: str = ""
    initial: float = 0.0
    single: bool = False
    wide: bool = False
    master: bool = False

    def spec(self, of: Spec) -> Spec | None:
        """Of the state of a parameter of this Spec; None: it has none."""
        narrow = of.dtype in HALVES
        if self.master and not narrow:
            return None
        return Spec((1,) if self.single else of.shape, float32 if self.wide and narrow else of.dtype)


class UpdateRule(NamedTuple):
    """`op(lr, step, *[w, g, *states of each parameter], **attrs)` changes w and the states where they lie."""

    op: Op
    attrs: dict
    states: tuple[State, ...] = ()


class BaseOptimizer:
    """The interface of an optimizer for an nn.Graph.

    Attributes: param_groups, the parameters with their options: [{"params": list of parameters, "lr": ...}]; count_, a
    tensor (int64) that holds the number of steps made.
    """

    param_groups: list[dict]
    count_: Any

    def state_of(self, p: Any, group: Mapping[str, Any]) -> dict:
        """{key: tensor} of a parameter's states: the tensors themselves, made if there are none."""
        raise NotImplementedError(f"{type(self).__name__}.state_of is not defined")

    def update_of(self, group: Mapping[str, Any]) -> UpdateRule:
        """The update of a group with these options."""
        raise NotImplementedError(f"{type(self).__name__}.update_of is not defined")

    def clipping_of(self, group: Mapping[str, Any]) -> Any:
        """None, or what makes the gradients of a group smaller: factor(gradients) says what to multiply them by."""
        return None
