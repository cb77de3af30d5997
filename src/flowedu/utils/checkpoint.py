"""flow.utils.checkpoint: recomputes part of a model in the backward pass instead of saving its values.

    y = checkpoint(block, x, use_reentrant=False)          # same values; only x and y are stored

Every tensor that the part saves for the backward pass is replaced by its index in the order of saving. The
first access to such a tensor runs the part again, with the random numbers of the first run, and uses the
tensors saved by the second run.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flowedu.autograd.graph import saved_tensors_hooks
from flowedu.errors import ArgumentError, GradientError
from flowedu.tensor import Tensor
from flowedu.tensor.construction.generator import get_rng_state, set_rng_state
from flowedu.tensor.gradients.grad_mode import enable_grad, is_grad_enabled


class _Recomputation:
    """Saved-tensor hooks of one call. They recompute its saved tensors when the backward pass reads one."""

    def __init__(self, run: Callable[[], Any], preserve: bool, around: Callable):
        self.run, self.around, self.places = run, around, 0
        self.random = get_rng_state() if preserve else None
        self.saved: dict[int, Tensor] = {}

    def pack(self, x: Tensor) -> int:
        self.places += 1
        return self.places - 1

    def unpack(self, place: int) -> Tensor:
        if place not in self.saved:
            self.compute()
        return self.saved.pop(place)

    def compute(self) -> None:
        saved: list[Tensor] = []
        hooks = saved_tensors_hooks(lambda x: saved.append(x.detach()), _raise_on_unpack)
        with enable_grad(), self.around(), _random_state(self.random), hooks:
            self.run()
        if len(saved) != self.places:
            raise GradientError("checkpoint: the second time other tensors were saved for backward",
                                expected=f"{self.places} tensors, as the first time",
                                got=f"{len(saved)} tensors",
                                fix="a function that does the same each time it is called; or call it "
                                "without checkpoint")
        self.saved = dict(enumerate(saved))


def _raise_on_unpack(packed: Any) -> Tensor:
    raise GradientError("checkpoint: backward through what is computed again",
                        expected="backward outside of the function")


@contextlib.contextmanager
def _random_state(state: Tensor | None) -> Iterator[None]:
    """Return a context in which the generator starts at `state`. Its old state is restored at the end."""
    if state is None:
        yield
        return
    now = get_rng_state()
    try:
        set_rng_state(state)
        yield
    finally:
        set_rng_state(now)


def checkpoint(function: Callable, *args, use_reentrant: bool | None = None,
               context_fn: Callable | None = None,
               determinism_check: str = "default", debug: bool = False, preserve_rng_state: bool = True,
               early_stop: bool = True, **kwargs) -> Any:
    """Return function(*args, **kwargs), and store only the arguments.

    The backward pass calls the function again, so its side effects (running statistics, a counter) occur
    twice, as in PyTorch.

    Args:
        function: function of tensors.
        *args, **kwargs: its arguments.
        context_fn: function that returns two context managers, one for each call; default: none.
        preserve_rng_state: draw the same random numbers in both calls; default: True.
        use_reentrant, determinism_check, debug, early_stop: accepted for compatibility, without effect.

    Raises:
        GradientError: the two calls save different numbers of tensors.
    """
    if not callable(function):
        raise ArgumentError("checkpoint: this is no function", expected="a function or a module",
                            got=type(function).__name__, fix="checkpoint(block, x)")
    if not is_grad_enabled():
        return function(*args, **kwargs)
    first, second = context_fn() if context_fn else (contextlib.nullcontext(), contextlib.nullcontext())
    recomputation = _Recomputation(lambda: function(*args, **kwargs), preserve_rng_state, lambda: second)
    with first, saved_tensors_hooks(recomputation.pack, recomputation.unpack):
        return function(*args, **kwargs)


def checkpoint_sequential(functions: Iterable[Callable], segments: int, input: Tensor,
                          use_reentrant: bool | None = None, preserve_rng_state: bool = True) -> Any:
    """Call functions in sequence, in `segments` parts. Each part except the last is a `checkpoint`.

    Args:
        functions: modules or functions of one tensor.
        segments: number of parts.
        input: argument of the first function.
        use_reentrant: accepted for PyTorch compatibility, without effect; default: None.
        preserve_rng_state: draw the same random numbers in both calls of a part; default: True.

    Raises:
        ArgumentError: fewer functions than segments.
    """
    steps = list(functions)
    if not isinstance(segments, int) or not 1 <= segments <= max(len(steps), 1):
        raise ArgumentError("checkpoint_sequential: no such number of segments",
                            expected=f"1 to {len(steps)}, a function each at least", got=repr(segments),
                            fix="segments=2")

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
