"""optim.lr_scheduler.LRScheduler with PyTorch's semantics.

A schedule changes the current rate of a group, even if a program set it by hand. step(epoch) and an nn.Graph use
the formula of the schedule, if it has one.
"""
from __future__ import annotations

from collections.abc import Mapping

from flowedu.errors import ArgumentError, UnsupportedError
from flowedu.optim import lr_scheduler as ours
from flowedu.optim.base import Optimizer
from flowedu.tensor import Tensor


class _Any(type):
    """isinstance(x, LRScheduler) holds for all schedules."""

    def __instancecheck__(cls, x) -> bool:
        if cls is LRScheduler:
            return isinstance(x, (ours.LRScheduler, ours.ReduceLROnPlateau))
        return super().__instancecheck__(x)


def _epoch(self) -> int:
    return vars(self).get("last_epoch", -1)


def _set_epoch(self, value: int) -> None:
    vars(self)["last_epoch"] = value


class LRScheduler(ours.LRScheduler, metaclass=_Any):
    """Base of a program's own schedules: write `get_lr()`, which gives a list of the groups' rates at self.last_epoch, of
    self.base_lrs or of the rates that self.optimizer.param_groups have.

    Args:
        optimizer: whose groups get the rates. Their rate when the first scheduler is made is their `initial_lr`.
        last_epoch: the number of steps done before; -1: none, and the rates of step 0 are set at once.
        verbose: print every rate (PyTorch had it up to 2.6).
    """

    formula: type | None = None                           # flowedu's schedule whose rates these are

    last_epoch = last_step = property(_epoch, _set_epoch)

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1, verbose: bool = False):
        self._step_count, self._is_initial, self._get_lr_called_within_step = 0, True, False
        for group in getattr(optimizer, "param_groups", ()) if last_epoch == -1 else ():
            if isinstance(group["lr"], Tensor):           # whose number will change
                group.setdefault("initial_lr", float(group["lr"]))
        super().__init__(optimizer, last_epoch, verbose)  # ends with a step
        self._is_initial = False

    def _initial_step(self) -> None:
        self._step_count, self._is_initial = 0, True
        self.step()
        self._is_initial = False

    def get_lr(self) -> list[float]:
        """The rates of all groups at self.last_epoch."""
        raise UnsupportedError(f"{type(self).__name__}: no get_lr() is defined", got=type(self).__name__,
                               expected="a class that defines it", fix="return self.base_lrs for constant rates")

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        """Return the rate of group number `group` at `step`, if it is not set by hand; called by nn.Graph."""
        if self.formula:
            return self.formula.get_lr(self, base_lr, step)
        before, self.last_epoch = self.last_epoch, step
        try:
            return self.get_lr()[group]
        finally:
            self.last_epoch = before

    def step(self, epoch: int | None = None) -> None:
        """Go on by one step, or to step `epoch`, and set the rates."""
        self._step_count += 1
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        closed = epoch is not None and self.formula
        self._set([self.lr_at(b, self.last_epoch, i) for i, b in enumerate(self.base_lrs)] if closed else self.get_lr())

    def _set(self, rates: list[float]) -> None:
        rates, groups = list(rates), self.optimizer.param_groups
        if len(rates) != len(groups):
            raise ArgumentError(f"{type(self).__name__}: one rate for each parameter group", expected=f"{len(groups)}",
                                got=f"{len(rates)}", fix="add parameter groups before the scheduler is made")
        held = [g["lr"] for g in groups]
        super()._set(rates)
        for group, old, new in zip(groups, held, rates):
            if isinstance(old, Tensor):                   # a rate that is a tensor stays the same tensor
                group["lr"] = old.fill_(float(new))

    # ---- for subclasses
    def same(self) -> list[float]:
        """The rates that the groups have."""
        return [float(g["lr"]) if isinstance(g["lr"], Tensor) else g["lr"] for g in self.optimizer.param_groups]

    def times(self, factor: float) -> list[float]:
        return [lr * factor for lr in self.same()]

    def load_state_dict(self, state_dict: Mapping) -> None:
        """Continue where `state_dict` was taken, by PyTorch or here. The optimizer has the rates in its own state."""
        state = dict(state_dict)
        if "last_step" in state:                          # flow.optim's
            state["last_epoch"] = state.pop("last_step")
        super().load_state_dict(state)


_LRScheduler = LRScheduler                               # its older name
