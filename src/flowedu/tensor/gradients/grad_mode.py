"""Switches of the tape for the current thread: no_grad, enable_grad, set_grad_enabled, and inference_mode.

Each is a context manager and a decorator.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Self

from flowedu.core.eager.dispatch import is_grad_enabled, is_inference_mode_enabled, set_inference
from flowedu.core.eager.dispatch import set_grad_enabled as _set_grad

__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad",
           "set_grad_enabled"]


class _Mode:
    """Base class of modes: a subclass defines the switches inside the block.

    Use it as `@mode` or `@mode()`.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        self = super().__new__(cls)
        if len(args) == 1 and not kwargs and callable(args[0]):      # @no_grad without parentheses
            cls.__init__(self)
            return self(args[0])
        return self

    def __init__(self) -> None:
        self.old: list[tuple[bool, bool]] = []

    def inside(self) -> tuple[bool, bool]:
        """Return (record calls, mark tensors as made for inference)."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        record, inference = self.inside()
        self.old.append((_set_grad(record), set_inference(inference)))
        return self

    def __exit__(self, *exc: object) -> None:
        record, inference = self.old.pop()
        _set_grad(record)
        set_inference(inference)

    def clone(self) -> _Mode:
        """Return the same switch for one call of a decorated function."""
        return type(self)()

    def __call__(self, f: Callable) -> Callable:
        if inspect.isgeneratorfunction(f):
            @functools.wraps(f)
            def steps(*args: Any, **kwargs: Any) -> Any:
                generator = f(*args, **kwargs)
                resume, value = generator.send, None
                while True:
                    try:
                        with self.clone():
                            item = resume(value)
                    except StopIteration as end:
                        return end.value
                    try:
                        resume, value = generator.send, (yield item)
                    # Thrown in by the caller; GeneratorExit closes the generator.
                    except BaseException as e:
                        resume, value = generator.throw, e
            return steps

        @functools.wraps(f)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return f(*args, **kwargs)
        return inner


class no_grad(_Mode):
    """Context manager or decorator in which no call is recorded for the backward pass."""

    def inside(self) -> tuple[bool, bool]:
        return False, is_inference_mode_enabled()


class enable_grad(_Mode):
    """Context manager or decorator that records calls again inside no_grad."""

    def inside(self) -> tuple[bool, bool]:
        return True, is_inference_mode_enabled()


class inference_mode(_Mode):
    """Context manager or decorator like no_grad that also marks new tensors.

    `is_inference()` of a marked tensor returns True.

    Args:
        mode: if False, calls are recorded and tensors are not marked; default: True.
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self.mode = bool(mode)

    def inside(self) -> tuple[bool, bool]:
        return not self.mode, self.mode

    def clone(self) -> inference_mode:
        return type(self)(self.mode)


class set_grad_enabled(_Mode):
    """Switch for the recording of calls, which takes effect immediately.

    As a context manager, it restores the previous state at the end of the block.

    Args:
        mode: True records calls for the backward pass, and False does not.
    """

    def __new__(cls, mode: bool) -> set_grad_enabled:
        return object.__new__(cls)

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode, self.before = bool(mode), _set_grad(bool(mode))

    def inside(self) -> tuple[bool, bool]:
        return self.mode, is_inference_mode_enabled()

    def __enter__(self) -> Self:
        super().__enter__()
        self.old[-1] = (self.before, self.old[-1][1])
        return self

    def clone(self) -> _Mode:
        return enable_grad() if self.mode else no_grad()

    def __call__(self, f: Callable) -> Callable:
        _set_grad(self.before)                   # a decorator applies to the function only
        return super().__call__(f)
