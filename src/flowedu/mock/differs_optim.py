"""Differences between PyTorch's optimizers and schedules and those of flow.optim, which follow OneFlow.

Under torch's name they follow PyTorch (mock/insides/torch_*.py). The book's page shows the table; tests/optim
compares every row with both signatures.
"""
from __future__ import annotations

from typing import NamedTuple


class Difference(NamedTuple):
    """Default and position of a parameter in both ("" if missing); without a parameter, another difference."""

    parameter: str
    oneflow: str
    torch: str


_MASTER = Difference("master_weights", "False, by keyword", "")
_STATE = Difference("", 'state_dict(): one "step", "_options" of a group', "PyTorch's keys and form; PyTorch can load it")
_CLOCK = Difference("", "t counts all steps of the optimizer", "t counts the steps in which the parameter had a gradient")
_ROOT = Difference("", "g / sqrt(v + eps); no momentum", "g / (sqrt(v) + eps); momentum")
_CHAIN = Difference("", "a rate follows from the first rate and the step: one set by hand is overwritten, a group that "
                    "came later stays as it is", "a rate follows from the one before: one set by hand is kept and scaled, "
                    "a group that came later is scheduled, or refused where there is only a formula")
_EPOCH = Difference("", "get_lr(base_lr, step); step()", "get_lr(), of all groups; step(epoch)")
_FIRST = Difference("", "dampening holds from the first step on", "dampening holds from a parameter's second step on")

DIFFERS: dict[str, tuple[Difference, ...]] = {
    "optim.Adadelta": (
        Difference("foreach", "None, by keyword", "None, argument 6"),
        Difference("maximize", "False, argument 6", "False, by keyword"),
        Difference("contiguous_params", "False, argument 7", ""),
        _MASTER, _STATE,
    ),
    "optim.Adagrad": (
        Difference("lr", "0.001, argument 2", "0.01, argument 2"),
        Difference("foreach", "None, by keyword", "None, argument 7"),
        Difference("contiguous_params", "False, argument 7", ""),
        _MASTER, _CLOCK, _STATE,
    ),
    "optim.Adam": (
        Difference("fused", "None, argument 9", "None, by keyword"),
        Difference("decoupled_weight_decay", "", "False, by keyword"),
        Difference("do_bias_correction", "True, argument 7", ""),
        Difference("contiguous_params", "False, argument 8", ""),
        _MASTER, _CLOCK, _STATE,
    ),
    "optim.AdamW": (
        Difference("weight_decay", "0, argument 5", "0.01, argument 5"),
        Difference("fused", "None, argument 9", "None, by keyword"),
        Difference("do_bias_correction", "True, argument 7", ""),
        Difference("contiguous_params", "False, argument 8", ""),
        _MASTER, _CLOCK, _STATE,
    ),
    "optim.RMSprop": (
        Difference("lr", "0.001, argument 2", "0.01, argument 2"),
        Difference("capturable", "False, by keyword", "False, argument 8"),
        Difference("foreach", "None, by keyword", "None, argument 9"),
        Difference("maximize", "False, by keyword", "False, argument 10"),
        Difference("differentiable", "False, by keyword", "False, argument 11"),
        Difference("contiguous_params", "False, argument 8", ""),
        _MASTER, _ROOT, _STATE,
    ),
    "optim.SGD": (
        Difference("maximize", "False, argument 7", "False, by keyword"),
        Difference("fused", "None, argument 9", "None, by keyword"),
        Difference("contiguous_params", "False, argument 8", ""),
        _MASTER, _FIRST, _STATE,
    ),
    "optim.lr_scheduler.ChainedScheduler": (
        Difference("optimizer", "", "None, argument 2"),
    ),
    "optim.lr_scheduler.ConstantLR": (
        Difference("last_epoch", "", "-1, argument 4"),
        Difference("last_step", "-1, argument 4", ""),
    ),
    "optim.lr_scheduler.CosineAnnealingLR": (
        Difference("last_epoch", "", "-1, argument 4"),
        Difference("last_step", "-1, argument 4", ""),
    ),
    "optim.lr_scheduler.CosineAnnealingWarmRestarts": (
        Difference("last_epoch", "", "-1, argument 5"),
        Difference("verbose", "False, argument 8", "False, argument 6"),
        Difference("decay_rate", "1.0, argument 5", ""),
        Difference("restart_limit", "0, argument 6", ""),
        Difference("last_step", "-1, argument 7", ""),
    ),
    "optim.lr_scheduler.ExponentialLR": (
        Difference("last_epoch", "", "-1, argument 3"),
        Difference("last_step", "-1, argument 3", ""),
    ),
    "optim.lr_scheduler.LRScheduler": (
        _CHAIN, _EPOCH,
        Difference("last_epoch", "", "-1, argument 2"),
        Difference("last_step", "-1, argument 2", ""),
    ),
    "optim.lr_scheduler.LambdaLR": (
        Difference("last_epoch", "", "-1, argument 3"),
        Difference("last_step", "-1, argument 3", ""),
    ),
    "optim.lr_scheduler.LinearLR": (
        Difference("last_epoch", "", "-1, argument 5"),
        Difference("last_step", "-1, argument 5", ""),
    ),
    "optim.lr_scheduler.MultiStepLR": (
        Difference("last_epoch", "", "-1, argument 4"),
        Difference("last_step", "-1, argument 4", ""),
    ),
    "optim.lr_scheduler.MultiplicativeLR": (
        Difference("last_epoch", "", "-1, argument 3"),
        Difference("last_step", "-1, argument 3", ""),
    ),
    "optim.lr_scheduler.PolynomialLR": (
        Difference("total_iters", "", "5, argument 2"),
        Difference("power", "1.0, argument 4", "1.0, argument 3"),
        Difference("last_epoch", "", "-1, argument 4"),
        Difference("verbose", "False, argument 7", "False, argument 5"),
        Difference("decay_batch", "argument 2", ""),
        Difference("end_learning_rate", "0.0001, argument 3", ""),
        Difference("cycle", "False, argument 5", ""),
        Difference("last_step", "-1, argument 6", ""),
    ),
    "optim.lr_scheduler.SequentialLR": (
        Difference("last_epoch", "", "-1, argument 4"),
        Difference("verbose", "False, argument 6", "False, argument 5"),
        Difference("interval_rescaling", "False, argument 4", ""),
        Difference("last_step", "-1, argument 5", ""),
    ),
    "optim.lr_scheduler.StepLR": (
        Difference("last_epoch", "", "-1, argument 4"),
        Difference("last_step", "-1, argument 4", ""),
    ),
}
