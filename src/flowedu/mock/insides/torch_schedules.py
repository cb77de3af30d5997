"""optim.lr_scheduler as PyTorch has it: last_epoch for last_step; a SequentialLR whose parts count from their milestones;
a PolynomialLR to 0; schedules of a program's own whose get_lr() gives the rates of all groups."""
from __future__ import annotations

from collections.abc import Sequence

from flowedu.optim import lr_scheduler as ours
from flowedu.optim.base import Optimizer
from flowedu.optim.checks import count, number


class _Any(type):
    """isinstance(x, LRScheduler) holds for all schedules."""

    def __instancecheck__(cls, x) -> bool:
        return isinstance(x, ours.LRScheduler) if cls is LRScheduler else super().__instancecheck__(x)


class LRScheduler(ours.LRScheduler, metaclass=_Any):
    """Base of a program's own schedules: write `get_lr()`, which gives a list of the groups' rates at self.last_epoch, of
    self.base_lrs or of the rates that self.optimizer.param_groups have."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1, verbose: bool = False):
        super().__init__(optimizer, last_epoch, verbose)

    def lr_at(self, base_lr: float, step: int, group: int = 0) -> float:
        before, self.last_step = self.last_step, step
        try:
            return self.get_lr()[group]
        finally:
            self.last_step = before


_LRScheduler = LRScheduler


def _with_last_epoch(cls: type) -> type:
    """The class, where last_step is called last_epoch, too."""
    def __init__(self, *args, last_epoch: int | None = None, **options):
        if last_epoch is not None:
            options["last_step"] = last_epoch
        cls.__init__(self, *args, **options)

    return type(cls.__name__, (cls,), {"__init__": __init__, "__doc__": cls.__doc__, "__module__": __name__})


for _name in ("ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR", "LambdaLR", "LinearLR",
              "MultiStepLR", "MultiplicativeLR", "StepLR"):
    globals()[_name] = _with_last_epoch(getattr(ours, _name))


class SequentialLR(ours.SequentialLR):
    """schedulers[0] until step milestones[0], then schedulers[1], and so on; each counts from its own beginning."""

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[ours.LRScheduler], milestones: Sequence[int],
                 last_epoch: int = -1, verbose: bool = False):
        super().__init__(optimizer, schedulers, milestones, True, last_epoch, verbose)


class PolynomialLR(ours.LRScheduler):
    """b * (1 - n/total_iters)^power, n at most total_iters."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1,
                 verbose: bool = False):
        self.total_iters = count("PolynomialLR", "total_iters", total_iters, 1)
        self.power = number("PolynomialLR", "power", power, least=0)
        super().__init__(optimizer, last_epoch, verbose)

    def get_lr(self, base_lr: float, step: int) -> float:
        return base_lr * (1 - min(step, self.total_iters) / self.total_iters) ** self.power
