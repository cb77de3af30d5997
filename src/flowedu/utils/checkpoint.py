"""flow.utils.checkpoint: recomputes part of a model in the backward pass instead of saving its values.

    y = checkpoint(block, x, use_reentrant=False)          # the same values; memory for x and y alone

Every tensor that the part would save for backward is replaced by its index in the order of saving. The first
access to such a tensor runs the part again, with the random values of the first run, and uses the tensors
saved by that run.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flowedu.autograd.graph import saved_tensors_hooks
from flowedu.errors import ArgumentError, GradientError
from flowedu.tensor import Tensor
from flowedu.tensor.generator import get_rng_state, set_rng_state
from flowedu.tensor.modes import enable_grad, is_grad_enabled


class _Again:
    """A call whose saved tensors are computed again."""

    def __init__(self, run: Callable[[], Any], preserve: bool, around: Callable):
        self.run, self.around, self.places = run, around, 0
        self.random = get_rng_state() if preserve else None
        self.found: dict[int, Tensor] = {}

    def pack(self, x: Tensor) -> int:
        self.places += 1
        return self.places - 1

    def unpack(self, place: int) -> Tensor:
        if place not in self.found:
            self.compute()
        return self.found.pop(place)

    def compute(self) -> None:
        found: list[Tensor] = []
        hooks = saved_tensors_hooks(lambda x: found.append(x.detach()), _never)
        with enable_grad(), self.around(), _drawn_again(self.random), hooks:
            self.run()
        if len(found) != self.places:
            raise GradientError("checkpoint: the second time other tensors were saved for backward",
                                expected=f"{self.places} tensors, as the first time", got=f"{len(found)} tensors",
                                fix="a function that does the same each time it is called; or call it without checkpoint")
        self.found = dict(enumerate(found))


def _never(packed: Any) -> Tensor:
    raise GradientError("checkpoint: backward through what is computed again", expected="backward outside of the function")


@contextlib.contextmanager
def _drawn_again(state: Tensor | None) -> Iterator[None]:
    """Inside, random numbers go on from `state`; outside as if nothing had been drawn."""
    if state is None:
        yield
        return
    now = get_rng_state()
    try:
        set_rng_state(state)
        yield
    finally:
        set_rng_state(now)


def checkpoint(function: Callable, *args, use_reentrant: bool | None = None, context_fn: Callable | None = None,
               determinism_check: str = "default", debug: bool = False, preserve_rng_state: bool = True,
               early_stop: bool = True, **kwargs) -> Any:
    """function(*args, **kwargs), of which nothing is kept for backward but its arguments: backward calls it again.

    Args:
        preserve_rng_state: the second call draws the random numbers of the first.
        context_fn: gives two contexts, one for each call.
        use_reentrant, determinism_check, debug, early_stop: PyTorch's ways to do it; without effect.

    A function with an effect of its own (running statistics, a counter) has it twice, as in PyTorch.
    Errors: GradientError where the second call saves another number of tensors than the first."""
    if not callable(function):
        raise ArgumentError("checkpoint: this is no function", expected="a function or a module",
                            got=type(function).__name__, fix="checkpoint(block, x)")
    if not is_grad_enabled():
        return function(*args, **kwargs)
    first, second = context_fn() if context_fn else (contextlib.nullcontext(), contextlib.nullcontext())
    again = _Again(lambda: function(*args, **kwargs), preserve_rng_state, lambda: second)
    with first, saved_tensors_hooks(again.pack, again.unpack):
        return function(*args, **kwargs)


def checkpoint_sequential(functions: Iterable[Callable], segments: int, input: Tensor,
                          use_reentrant: bool | None = None, preserve_rng_state: bool = True) -> Any:
    """The functions one after the other, in `segments` parts, each but the last a `checkpoint` of its own.

    Errors: ArgumentError where there are fewer functions than segments."""
    steps = list(functions)
    if not isinstance(segments, int) or not 1 <= segments <= max(len(steps), 1):
        raise ArgumentError("checkpoint_sequential: no such number of segments", expected=f"1 to {len(steps)}, a function "
                            "each at least", got=repr(segments), fix="segments=2")

    def part(steps: list) -> Callable:
        def run(x):
            for f in steps:
                x = f(x)
            return x
        return run

    size = len(steps) // segments
    for i in range(segments - 1):
        input = checkpoint(part(steps[i * size:(i + 1) * size]), input, preserve_rng_state=preserve_rng_state)
    return part(steps[(segments - 1) * size:])(input)


__all__ = ["checkpoint", "checkpoint_sequential"]
