"""Differences between PyTorch's optimizers and schedules and those of flow.optim, which follow OneFlow.

The mocked torch follows PyTorch (mock/insides/torch_*.py; tests/optim compares its signatures with
PyTorch's), so the rows of parameters are computed from the signatures of both. The book shows the table.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

from flowedu import optim
from flowedu.mock.insides import torch_optimizers, torch_schedules


class Difference(NamedTuple):
    """Default and position of a parameter in flow.optim and in torch.optim, or another difference.

    A text is "" if the parameter is missing. `parameter` is "" for a difference without a parameter.
    """

    parameter: str
    oneflow: str
    torch: str


_STATE = Difference("", 'state_dict(): one "step", "_options" of a group',
                    "PyTorch's keys and form; PyTorch can load it")
_CLOCK = Difference("", "t counts all steps of the optimizer",
                    "t counts the steps in which the parameter had a gradient")
_ROOT = Difference("", "g / sqrt(v + eps); no momentum", "g / (sqrt(v) + eps); momentum")
_CHAIN = Difference("", "a rate follows from the first rate and the step: one set by hand is overwritten, a "
                    "group that came later stays as it is",
                    "a rate follows from the one before: one set by hand is kept and scaled, a group that "
                    "came later is scheduled, or refused where there is only a formula")
_EPOCH = Difference("", "get_lr(base_lr, step); step()", "get_lr(), of all groups; step(epoch)")
_FIRST = Difference("", "dampening holds from the first step on",
                    "dampening holds from a parameter's second step on")

# the differences that no signature shows
_BEHAVIOR = {
    "optim.Adadelta": (_STATE,),
    "optim.Adagrad": (_CLOCK, _STATE),
    "optim.Adam": (_CLOCK, _STATE),
    "optim.AdamW": (_CLOCK, _STATE),
    "optim.RMSprop": (_ROOT, _STATE),
    "optim.SGD": (_FIRST, _STATE),
    "optim.lr_scheduler.LRScheduler": (_CHAIN, _EPOCH),
}


def _parameters(f: Callable) -> dict[str, tuple[str, object]]:
    """Return {parameter: (its position, its default)} of a function or class."""
    return {p.name: ("by keyword" if p.kind is p.KEYWORD_ONLY else f"argument {i}", p.default)
            for i, p in enumerate(inspect.signature(f).parameters.values(), 1)}


def _format(parameter: tuple[str, object] | None) -> str:
    """Return the default and the position, "" for None."""
    if parameter is None:
        return ""
    position, default = parameter
    return position if default is inspect.Parameter.empty else f"{default!r}, {position}"


def compare_signatures(oneflow: Callable, torch: Callable) -> tuple[Difference, ...]:
    """Return a row for each parameter that only one of them has, or whose position or default differs."""
    ours, theirs = _parameters(oneflow), _parameters(torch)
    return tuple(Difference(name, _format(ours.get(name)), _format(theirs.get(name)))
                 for name in {**theirs, **ours} if ours.get(name) != theirs.get(name))


def _make_table() -> dict[str, tuple[Difference, ...]]:
    """Return {path of a class in flow: its rows}, without classes that do not differ."""
    table = {}
    modules: dict[str, tuple[ModuleType, ModuleType]] = {
        "optim": (optim, torch_optimizers), "optim.lr_scheduler": (optim.lr_scheduler, torch_schedules)}
    for path, (ours, theirs) in modules.items():
        for name in theirs.__all__:
            if hasattr(ours, name):
                rows = compare_signatures(getattr(ours, name), getattr(theirs, name))
                table[f"{path}.{name}"] = (*rows, *_BEHAVIOR.get(f"{path}.{name}", ()))
    return {path: rows for path, rows in table.items() if rows}


DIFFERS = _make_table()
