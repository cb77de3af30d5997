"""PyTorch's cyclic schedulers, which also change the momentum (SGD) or beta1 (Adam).

| class | rate |
|---|---|
| OneCycleLR | from max_lr / div_factor up to max_lr, then down to the initial rate / final_div_factor; once |
| CyclicLR | linearly between base_lr and max_lr, repeatedly |
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from flowedu.errors import ArgumentError, UnsupportedError
from flowedu.optim.base import Optimizer
from flowedu.optim.checks import count, number
from flowedu.optim.lr_scheduler.base import LRScheduler

Numbers = float | Sequence[float]


class _Cycle(LRScheduler):
    """Base class: a subclass defines the rate and the momentum of a group at a step."""

    cycle_momentum = False

    def _rate(self, group: int, step: int) -> float:
        raise NotImplementedError

    def _momentum(self, group: int, step: int) -> float:
        raise NotImplementedError

    def _start(self, optimizer: Optimizer, rates: list[float], last_epoch: int, verbose: bool) -> None:
        """Set the initial rates of the groups."""
        if isinstance(optimizer, Optimizer):
            if self.cycle_momentum and not {"momentum", "betas"} & {*optimizer.defaults}:
                raise ArgumentError(f"{type(self).__name__}: the optimizer has no momentum and no beta1",
                                    expected="SGD, Adam, AdamW, ..., or cycle_momentum=False",
                                    got=type(optimizer).__name__, fix="cycle_momentum=False")
            if last_epoch == -1:
                for group, lr in zip(optimizer.param_groups, rates):
                    group["initial_lr"] = group["lr"] = lr
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return self.lr_at(base_lr, step)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        """Return the rate (base_lr is not used); raise an error if the momentum would have to change."""
        if self.cycle_momentum:
            raise UnsupportedError(f"{type(self).__name__}: in an nn.Graph, and as a part of another "
                                   f"schedule, a momentum stays as it is", expected="cycle_momentum=False",
                                   got="cycle_momentum=True",
                                   fix=f"{type(self).__name__}(..., cycle_momentum=False), or "
                                   f"scheduler.step() after an eager optimizer.step()")
        return self._rate(group, step)

    def _rates(self) -> list[float]:
        return [self._rate(i, self.last_step) for i in range(len(self.base_lrs))]

    def _set(self, rates: list[float]) -> None:
        super()._set(rates)
        for i, group in enumerate(self.optimizer.param_groups[:len(rates)] if self.cycle_momentum else ()):
            m = self._momentum(i, self.last_step)
            if "betas" in group:
                group["betas"] = (m, *group["betas"][1:])
            else:
                group["momentum"] = m


def _each(what: str, name: str, given: Numbers, groups: int, **bounds: float) -> list[float]:
    """Return one number for each group from a number or a list."""
    values = list(given) if isinstance(given, (list, tuple)) else [given] * groups
    if len(values) != groups:
        raise ArgumentError(f"{what}: {name} does not fit",
                            expected=f"a number, or a list of {groups}, one per group",
                            got=repr(given)[:80], fix=f"{name}=0.1")
    return [number(what, name, x, **bounds) for x in values]


def _groups(optimizer: Optimizer) -> int:
    return len(getattr(optimizer, "param_groups", ()))       # the base class raises for other types


class OneCycleLR(_Cycle):
    """One cycle of total_steps steps (Smith 2018), up to max_lr and then down to almost 0.

    The momentum changes in the opposite direction.

    Args:
        optimizer: optimizer whose groups get the rates.
        max_lr: highest rate, or a list with one per group.
        total_steps: number of steps; default: epochs * steps_per_epoch.
        epochs: number of epochs; default: None.
        steps_per_epoch: number of steps per epoch; default: None.
        pct_start: share of the steps with increasing rates.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: change the momentum, or beta1, between base_momentum and max_momentum.
        base_momentum: lowest momentum.
        max_momentum: highest momentum.
        div_factor: the initial rate is max_lr / div_factor.
        final_div_factor: the final rate is the initial rate / final_div_factor.
        three_phase: decrease symmetrically to the initial rate first, and then to the final rate.
        last_epoch: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.

    Raises:
        ArgumentError (a ValueError): a step beyond total_steps.
    """

    _uncalled = ("_anneal_func", "_annealing_cos", "_annealing_linear")

    def __init__(self, optimizer: Optimizer, max_lr: Numbers, total_steps: int | None = None,
                 epochs: int | None = None,
                 steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
                 cycle_momentum: bool = True, base_momentum: Numbers = 0.85, max_momentum: Numbers = 0.95,
                 div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False,
                 last_epoch: int = -1, verbose: bool = False):
        what, n = "OneCycleLR", _groups(optimizer)
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ArgumentError(f"{what}: how many steps there are is not said", got="neither",
                                    expected="total_steps, or epochs and steps_per_epoch",
                                    fix="total_steps=epochs * len(loader)")
            total_steps = count(what, "epochs", epochs, 1) * count(what, "steps_per_epoch", steps_per_epoch,
                                                                   1)
        self.total_steps = count(what, "total_steps", total_steps, 1)
        if anneal_strategy not in ("cos", "linear"):
            raise ArgumentError(f"{what}: there is no such anneal_strategy", expected='"cos" or "linear"',
                                got=repr(anneal_strategy), fix='anneal_strategy="cos"')
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, bool(cycle_momentum)
        pct = number(what, "pct_start", pct_start, least=0)
        if pct > 1:
            raise ArgumentError(f"{what}: pct_start is a part of the steps", expected="0 to 1",
                                got=repr(pct_start), fix="pct_start=0.3")
        high = _each(what, "max_lr", max_lr, n, above=0)
        low = [x / number(what, "div_factor", div_factor, above=0) for x in high]
        end = [x / number(what, "final_div_factor", final_div_factor, above=0) for x in low]
        last, top = self.total_steps - 1, pct * self.total_steps - 1
        # [(last step of a phase, the rates there, True if the momentum is high)], after the start
        self.parts: list[Any] = [[top, high, False], [2 * top, low, True], [last, end,
                                                                            True]] if three_phase else \
            [[top, high, False], [last, end, True]]
        self.momenta = [_each(what, name, x, n, least=0) for name, x in (("base_momentum", base_momentum),
                                                                         ("max_momentum", max_momentum))]
        self._start(optimizer, low, last_epoch, verbose)

    def _at(self, begin: list[float], values: list[list[float]], group: int, step: int) -> float:
        """Return the value at a step of several phases that start at `begin`; phase i ends at values[i]."""
        if step > self.total_steps:
            raise ArgumentError(f"OneCycleLR: Tried to step {step} times. The specified number of total "
                                f"steps is {self.total_steps}", expected=f"at most {self.total_steps} steps",
                                got=str(step),
                                fix="total_steps=epochs * len(loader), one scheduler.step() for each batch")
        first = 0.0
        for (last, _, _), value in zip(self.parts, values):
            if step <= last or last == self.parts[-1][0]:
                break
            first, begin = last, value
        part = (step - first) / (last - first) if last != first else 1.0
        if self.anneal_strategy == "linear":
            return begin[group] + (value[group] - begin[group]) * part
        return value[group] + (begin[group] - value[group]) / 2 * (1 + math.cos(math.pi * part))

    def _rate(self, group: int, step: int) -> float:
        return self._at(self.base_lrs, [rates for _, rates, _ in self.parts], group, step)

    def _momentum(self, group: int, step: int) -> float:
        return self._at(self.momenta[True], [self.momenta[high] for _, _, high in self.parts], group, step)


class CyclicLR(_Cycle):
    """Linear cycles between base_lr and max_lr (Smith 2017).

    Args:
        optimizer: optimizer whose groups get the rates.
        base_lr: lowest rate, or a list with one per group.
        max_lr: highest rate, or a list with one per group.
        step_size_up: number of steps with increasing rates.
        step_size_down: number of steps with decreasing rates; default: step_size_up.
        mode: height of the cycles. "triangular" keeps it constant, "triangular2" halves it after each cycle,
            and "exp_range" multiplies it by gamma^step.
        gamma: see mode.
        scale_fn: function that returns the relative height and replaces mode; default: None.
        scale_mode: "cycle" passes the number of the cycle, from 1, to scale_fn; "iterations" passes the step.
        cycle_momentum: change the momentum, or beta1, between base_momentum and max_momentum.
        base_momentum: lowest momentum.
        max_momentum: highest momentum.
        last_epoch: index of the last step made, to resume a schedule; default: -1, start at step 0.
        verbose: print every rate.
    """

    _uncalled = ("_exp_range_scale_fn", "_init_scale_fn", "_triangular2_scale_fn",
                 "_triangular_scale_fn", "scale_fn")

    def __init__(self, optimizer: Optimizer, base_lr: Numbers, max_lr: Numbers, step_size_up: int = 2000,
                 step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
                 scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
                 cycle_momentum: bool = True,
                 base_momentum: Numbers = 0.8, max_momentum: Numbers = 0.9, last_epoch: int = -1,
                 verbose: bool = False):
        what, n = "CyclicLR", _groups(optimizer)
        low = _each(what, "base_lr", base_lr, n, least=0)
        self.max_lrs = _each(what, "max_lr", max_lr, n, least=0)
        self.up = count(what, "step_size_up", step_size_up, 1)
        self.down = self.up if step_size_down is None else count(what, "step_size_down", step_size_down, 1)
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ArgumentError(f"{what}: there is no such mode",
                                expected='"triangular", "triangular2" or "exp_range"',
                                got=repr(mode), fix='mode="triangular"')
        if scale_mode not in ("cycle", "iterations"):
            raise ArgumentError(f"{what}: there is no such scale_mode", expected='"cycle" or "iterations"',
                                got=repr(scale_mode), fix='scale_mode="cycle"')
        self.mode, self.gamma = mode, number(what, "gamma", gamma, least=0)
        self._scale_fn, self.scale_mode = scale_fn, scale_mode
        self.cycle_momentum = bool(cycle_momentum)
        self.momenta = [_each(what, name, x, n, least=0) for name, x in (("base_momentum", base_momentum),
                                                                         ("max_momentum", max_momentum))]
        self._start(optimizer, low, last_epoch, verbose)

    def _height(self, step: int) -> float:
        """Return the relative height between base_lr and max_lr."""
        cycle, at = divmod(step, self.up + self.down)
        part = at / self.up if at <= self.up else 1 - (at - self.up) / self.down
        if self._scale_fn is not None:
            return part * self._scale_fn(cycle + 1 if self.scale_mode == "cycle" else step)
        return part * {"triangular": 1.0, "triangular2": 0.5 ** cycle,
                       "exp_range": self.gamma ** step}[self.mode]

    def _rate(self, group: int, step: int) -> float:
        return self.base_lrs[group] + (self.max_lrs[group] - self.base_lrs[group]) * self._height(step)

    def _momentum(self, group: int, step: int) -> float:
        low, high = (momenta[group] for momenta in self.momenta)
        return high - (high - low) * self._height(step)

    def state_dict(self) -> dict:
        """Return all attributes except the optimizer and scale_fn."""
        return {k: v for k, v in super().state_dict().items() if k != "_scale_fn"}
