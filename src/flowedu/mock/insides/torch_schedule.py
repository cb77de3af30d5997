"""optim.lr_scheduler.LRScheduler with PyTorch's semantics.

A schedule changes the current rate of a group, even if a program set it by hand. step(epoch) and an
nn.Graph use the formula of the schedule, if it has one.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flowedu.errors import ArgumentError, UnsupportedError
from flowedu.optim import lr_scheduler as ours
from flowedu.optim.base import Optimizer
from flowedu.tensor import Tensor


def allow_other_signature(method: Callable) -> Any:
    """Return the method, whose signature is PyTorch's and not that of the base class."""
    return method


class _Any(type):
    """Metaclass that makes isinstance(x, LRScheduler) true for all schedules."""

    def __instancecheck__(cls, x) -> bool:
        if cls is LRScheduler:
            return isinstance(x, (ours.LRScheduler, ours.ReduceLROnPlateau))
        return super().__instancecheck__(x)


def _epoch(self) -> int:
    return vars(self).get("last_epoch", -1)


def _set_epoch(self, value: int) -> None:
    vars(self)["last_epoch"] = value


class LRScheduler(ours.LRScheduler, metaclass=_Any):
    """Base class of custom schedules, which define `get_lr()`.

    get_lr() returns the rates of the groups at self.last_epoch, computed from self.base_lrs or from the
    current rates in self.optimizer.param_groups.

    Args:
        optimizer: the optimizer. The first schedule stores the rates of its groups as `initial_lr`.
        last_epoch: the number of the last step; -1: none, and the rates of step 0 are set immediately.
        verbose: print every rate (removed in PyTorch 2.7).
    """

    formula: type[ours.LRScheduler] | None = None         # flowedu's schedule with the same rates

    last_epoch = last_step = property(_epoch, _set_epoch)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1, verbose: bool = False):
        self._step_count, self._is_initial, self._get_lr_called_within_step = 0, True, False
        for group in getattr(optimizer, "param_groups", ()) if last_epoch == -1 else ():
            if isinstance(group["lr"], Tensor):           # its value will change
                group.setdefault("initial_lr", float(group["lr"]))
        super().__init__(optimizer, last_epoch, verbose)  # performs a step at its end
        self._is_initial = False

    def _initial_step(self) -> None:
        self._step_count, self._is_initial = 0, True
        self.step()
        self._is_initial = False

    @allow_other_signature
    def get_lr(self) -> list[float]:
        """Return the rates of all groups at self.last_epoch."""
        raise UnsupportedError(f"{type(self).__name__}: no get_lr() is defined", got=type(self).__name__,
                               expected="a class that defines it",
                               fix="return self.base_lrs for constant rates")

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        """Return the rate of a group at `step`, if no rate was set by hand. nn.Graph calls this."""
        if self.formula:
            return self.formula.get_lr(self, base_lr, step)
        before, self.last_epoch = self.last_epoch, step
        try:
            return self.get_lr()[group]
        finally:
            self.last_epoch = before

    def step(self, epoch: int | None = None) -> None:
        """Advance by one step, or to step `epoch`, and set the rates."""
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if epoch is None:
            self._set(self.get_lr())
        elif hasattr(self, "_get_closed_form_lr"):        # defined by a user's class
            self._set(self._get_closed_form_lr())
        elif self.formula:
            self._set([self.lr_at(b, self.last_epoch, i) for i, b in enumerate(self.base_lrs)])
        else:
            self._set(self.get_lr())

    def _set(self, rates: list[float]) -> None:
        rates, groups = list(rates), self.optimizer.param_groups
        if len(rates) != len(groups):
            raise ArgumentError(f"{type(self).__name__}: one rate for each parameter group",
                                expected=f"{len(groups)}",
                                got=f"{len(rates)}", fix="add parameter groups before the scheduler is made")
        held = [g["lr"] for g in groups]
        super()._set(rates)
        for group, old, new in zip(groups, held, rates):
            if isinstance(old, Tensor):                   # a tensor is written in place
                group["lr"] = old.fill_(float(new))

    # ---- for subclasses
    def same(self) -> list[float]:
        """Return the current rates of the groups."""
        return [float(g["lr"]) if isinstance(g["lr"],
                                             Tensor) else g["lr"] for g in self.optimizer.param_groups]

    def times(self, factor: float) -> list[float]:
        return [lr * factor for lr in self.same()]

    def load_state_dict(self, state_dict: Mapping) -> None:
        """Restore a state of PyTorch's or flowedu's class. The optimizer's state contains the rates."""
        state = dict(state_dict)
        if "last_step" in state:                          # a state of flow.optim
            state["last_epoch"] = state.pop("last_step")
        super().load_state_dict(state)


_LRScheduler = LRScheduler                               # older name
