"""GradScaler: loss scaling for float16, whose smallest positive value is 6e-8.

The loss is multiplied by the scale before backward, and the gradients are divided by it before the step. If a
gradient overflowed in float16, the step is skipped and the scale is halved.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from flowedu.core.ops.elementwise import le, where
from flowedu.core.values import thread_state as ambient
from flowedu.core.values.dtype import HALVES, float32, int64
from flowedu.errors import ArgumentError, CallError
from flowedu.optim import overflow
from flowedu.tensor import Tensor, no_grad, tensor

READY, UNSCALED, STEPPED = "ready", "unscaled", "stepped"
LARGEST = 3.4028234663852886e38                           # largest float32


def scale_after(scale: float, good: int, overflows: Sequence[bool], growth: float, backoff: float,
                interval: int) -> tuple[float, int]:
    """Return (the scale for the next step, the number of good steps in a row).

    The scale grows up to the largest float32.

    Args:
        scale: scale of the last step.
        good: number of good steps before it.
        overflows: for each optimizer, True if a gradient was infinite or NaN.
        growth: factor of the scale after `interval` good steps in a row.
        backoff: factor of the scale after an overflow.
        interval: number of good steps before the scale grows.
    """
    if any(overflows):
        return scale * backoff, 0
    if good + 1 < interval:
        return scale, good + 1
    return scale if scale * growth > LARGEST else scale * growth, 0


class GradScaler:
    """Loss scaling for float16, as in PyTorch.

    Use scale(loss).backward(), optionally unscale_(optimizer) before clipping, step(optimizer), and update().

    Args:
        init_scale: initial scale of losses.
        growth_factor: factor of the scale after `growth_interval` steps in a row without an overflow.
        backoff_factor: factor of the scale after an overflow.
        growth_interval: number of steps.
        enabled: False makes all methods pass their arguments through.

    Raises:
        ArgumentError: a factor is out of range.
        CallError: methods are called in a wrong order.

    Note:
        nn.Graph.set_grad_scaler uses a scaler in graphs; graphs and eager steps share its state.
    """

    def __init__(self, init_scale: float = 2.0 ** 16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True):
        for name, given, fits, expected in (
                ("init_scale", init_scale, init_scale > 0 and math.isfinite(init_scale), "a number above 0"),
                ("growth_factor", growth_factor, growth_factor > 1.0, "above 1"),
                ("backoff_factor", backoff_factor, 0.0 < backoff_factor < 1.0, "between 0 and 1"),
                ("growth_interval", growth_interval, growth_interval >= 1, "1 or more")):
            if enabled and not fits:
                raise ArgumentError(f"GradScaler: {name}", expected=expected, got=repr(given),
                                    fix="leave it out: the defaults are PyTorch's")
        self._enabled, self._rule = bool(enabled), (growth_factor, backoff_factor, growth_interval)
        self._factor, self._good = tensor([float(init_scale)], dtype=float32), tensor([0], dtype=int64)
        self._scaled = False                              # True after the first scale()
        # {id of an optimizer: (optimizer, stage, overflow)}
        self._states: dict[int, tuple[Any, str, bool]] = {}

    def scale(self, outputs: Tensor | Iterable) -> Any:
        """Return the outputs times the scale: a tensor, or a list or tuple of tensors."""
        if not self._enabled:
            return outputs
        self._scaled = True
        if isinstance(outputs, Tensor):
            return outputs.float() * self._scale if outputs.dtype in HALVES else outputs * self._scale
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(x) for x in outputs)
        raise CallError("GradScaler.scale: this is no tensor",
                        expected="a tensor, or a list or tuple of tensors",
                        got=type(outputs).__name__, fix="scaler.scale(loss).backward()")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, for clipping or inspection."""
        if not self._enabled:
            return
        stage = self._stage(optimizer)
        if stage is not READY:
            raise CallError("GradScaler.unscale_: called twice, or after step",
                            expected="once for an optimizer and update",
                            got=f"its gradients are {stage}", fix="call update() after the step")
        if not self._scaled:
            raise CallError("GradScaler: a step without a scale", expected="gradients of a scaled loss",
                            got="no call of scale()",
                            fix="scaler.scale(loss).backward(), then scaler.step(optimizer)")
        found, inverse = False, 1.0 / self._scale
        with no_grad():
            for group in optimizer.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        p.grad.mul_(inverse)
                        # NaN or infinite if an element is, or almost
                        total = p.grad.float().sum()
                        found = found or not math.isfinite(total.item()) and not bool(p.grad.isfinite().all())
        self._states[id(optimizer)] = (optimizer, UNSCALED, found)

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Call optimizer.step(*args, **kwargs) and return its result, unless a gradient is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise CallError("GradScaler.step: a closure cannot be scaled",
                            expected="an optimizer whose step needs none",
                            got="closure", fix="compute loss and gradients before the step")
        stage = self._stage(optimizer)
        if stage is STEPPED:
            raise CallError("GradScaler.step: called twice",
                            expected="update() between two steps of an optimizer",
                            got="a second step", fix="scaler.update()")
        if stage is READY:
            self.unscale_(optimizer)
        _, _, found = self._states[id(optimizer)]
        self._states[id(optimizer)] = (optimizer, STEPPED, found)
        return None if found else optimizer.step(*args, **kwargs)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Halve the scale if a step was skipped; increase it after growth_interval good steps."""
        if not self._enabled:
            return
        growth, backoff, interval = self._rule
        if new_scale is not None:
            self._set(float(new_scale.item() if isinstance(new_scale, Tensor) else new_scale),
                      self._good.item())
        elif not self._states:
            raise CallError("GradScaler.update: nothing was stepped",
                            expected="scaler.step(optimizer) before",
                            got="update() alone", fix="scaler.step(optimizer), then scaler.update()")
        else:
            overflows = [found for _, _, found in self._states.values()]
            self._set(*scale_after(self._scale, self._good.item(), overflows, growth, backoff, interval))
        self._states.clear()

    @property
    def _scale(self) -> float:
        return self._factor.item()

    def _set(self, scale: float, good: int) -> None:
        self._factor.fill_(scale)
        self._good.fill_(good)

    def _follow(self, scale: Any, good: Any, finite: Any) -> None:
        """Perform update() as part of a graph, on values for the scale, the good steps, and `finite`."""
        growth, backoff, interval = self._rule
        grown = scale * growth
        grown = where(le(grown, grown * 0.0 + LARGEST), grown, scale)
        overflow.follow(scale, good, finite, interval, grown, scale * backoff)

    def _stage(self, optimizer: Any) -> str:
        return self._states.get(id(optimizer), (None, READY, False))[1]

    def get_scale(self) -> float:
        """Return the scale of losses; 1.0 if disabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """Return the growth factor of the scale."""
        return self._rule[0]

    def set_growth_factor(self, new_factor: float) -> None:
        """Set the growth factor of the scale."""
        self._rule = new_factor, *self._rule[1:]
        ambient.changes += 1                              # for graphs

    def get_backoff_factor(self) -> float:
        """Return the factor of the scale after an overflow."""
        return self._rule[1]

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set the factor of the scale after an overflow."""
        self._rule = self._rule[0], new_factor, self._rule[2]
        ambient.changes += 1

    def get_growth_interval(self) -> int:
        """Return the number of good steps after which the scale grows."""
        return self._rule[2]

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the number of good steps after which the scale grows."""
        self._rule = *self._rule[:2], new_interval
        ambient.changes += 1

    def is_enabled(self) -> bool:
        """Return True if the scaler is enabled."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the state under PyTorch's names; {} if the scaler is disabled."""
        growth, backoff, interval = self._rule
        return {"scale": self.get_scale(), "growth_factor": growth, "backoff_factor": backoff,
                "growth_interval": interval, "_growth_tracker": self._good.item()} if self._enabled else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a result of state_dict, from flowedu or PyTorch.

        Raises:
            ArgumentError: the state is empty, because the saved scaler was disabled.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise ArgumentError("GradScaler.load_state_dict: the state is empty",
                                expected="one of a scaler that was on",
                                got="{}", fix="GradScaler(enabled=False), or begin with a new one")
        self._rule = tuple(state_dict[k] for k in ("growth_factor", "backoff_factor", "growth_interval"))
        self._set(float(state_dict["scale"]), state_dict["_growth_tracker"])
        ambient.changes += 1


class StaticGradScaler(GradScaler):
    """Loss scaler with a constant scale; a step with an overflow is skipped. From OneFlow 0.9.

    Args:
        scale_factor: scale of losses.
    """

    def __init__(self, scale_factor: float):
        super().__init__(init_scale=scale_factor)

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """Prepare for the next step; the scale does not change."""
        self._states.clear()

    def _follow(self, scale: Any, good: Any, finite: Any) -> None:
        """Do nothing: the scale is constant."""
