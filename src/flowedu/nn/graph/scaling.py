"""Loss scaling in a graph (nn.Graph.set_grad_scaler), as part of the plan of the graph.

Backward starts with the scale instead of 1, and the gradients are divided by the scale before clipping. If a
gradient is infinite or NaN, the updates get a step below 0 and change nothing, the optimizers do not count
the step, and the scale shrinks. The scale and the count of good steps are the scaler's own tensors, so eager
steps and graphs can alternate.
"""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.core.eager.arrays import copied
from flowedu.core.eager.dispatch import copy_to_device
from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.ir import GraphValue, Node
from flowedu.core.ops.view import assign, cast
from flowedu.core.values import dtype as dt
from flowedu.errors import JobBuildAndInferError, UnsupportedError
from flowedu.nn.graph.repeat import ForgetfulTracer, RepeatingCompiled
from flowedu.nn.graph.state import MADE, SCALE, SCALER
from flowedu.optim import overflow


class ScalingTracer(ForgetfulTracer):
    """Tracer of a graph that may have a scaler.

    Attributes:
        factor: the value of the scale, or None.
        finite: value that is True if the gradients are finite; None before the backward pass.
    """

    factor: GraphValue | None = None
    finite: GraphValue | None = None

    def gradients(self, nodes: Sequence[Node], loss: GraphValue, gradient: GraphValue | None,
                  targets: Sequence[GraphValue]) -> list[GraphValue | None]:
        if self.factor is not None:
            with self.raw():
                seed = overflow.seed(loss.spec, self.factor)
                gradient = seed if gradient is None else gradient * seed
        return super().gradients(nodes, loss, gradient, targets)

    def append(self, op, values, attrs: tuple, *more, **options) -> tuple[GraphValue, ...]:
        if self.finite is not None and op.group is not None:              # an update: lr, step, parameters
            lr, step, *rest = values
            values = lr, overflow.step_or_none(step, self.finite), *rest
        return super().append(op, values, attrs, *more, **options)


class ScalingCompiled(RepeatingCompiled):
    """Compiled graph that may have a scaler."""

    tracer_type = ScalingTracer
    tracer: ScalingTracer

    def _check_goal(self) -> None:
        super()._check_goal()
        if self.owner._scaler is None:
            return
        if not self.owner._optimizers:
            raise JobBuildAndInferError(f"nn.Graph {self.owner.name}: there is a grad scaler, and no "
                                        f"optimizer",
                                        expected="self.add_optimizer(...) in __init__", got="none",
                                        at=self._build_line(),
                                        fix="add an optimizer, or leave set_grad_scaler out")
        if self.tracer.placing.active:
            raise UnsupportedError("nn.Graph.set_grad_scaler: in a graph of global tensors",
                                   expected="local tensors",
                                   got="global ones", at="",
                                   fix="bfloat16 needs no scale: enable_amp(dtype=flow.bfloat16)")

    def differentiate(self, targets: Sequence[GraphValue],
                      watched: Sequence[GraphValue]) -> tuple[Sequence, Sequence]:
        """Return the gradients; those of `watched` values are not divided by the scale."""
        scaler, tracer = self.owner._scaler, self.tracer
        if scaler is None or not scaler.is_enabled():
            return super().differentiate(targets, watched)
        for name, key in SCALER.items():
            own = copy_to_device(getattr(scaler, key), tracer.placing.place)
            setattr(scaler, key, own)
            self._variable(name, own)
        self.steps.made = copy_to_device(copied([1], dt.int64), tracer.placing.place)
        self._variable(MADE, self.steps.made)
        tracer.factor = self.graph.variables[SCALE]
        grads, diffs = super().differentiate(targets, watched)
        found = [g for g in grads if g is not None]
        with tracer.raw():
            finite = overflow.all_finite(found)
            divided = iter(overflow.divided(found, tracer.factor))
        tracer.finite = finite
        return [None if g is None else next(divided) for g in grads], diffs

    def _train(self):
        made, finite = super()._train(), self.tracer.finite
        if finite is not None:
            with self.tracer.raw():
                variables = self.graph.variables
                self.owner._scaler._follow(*(variables[name] for name in SCALER), finite)
                assign(cast(finite, dtype=dt.int64), variables[MADE])
        return made

    def _variable(self, name: str, own: Tensor) -> None:
        self.tracer.variables[name] = own
        self.graph.variable(name, own.spec)
