"""Switches of the tape: no_grad, enable_grad, set_grad_enabled, inference_mode. Each is a context manager and a decorator,
and concerns the thread it is used in."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

from flowedu.core.eager.dispatch import is_grad_enabled, is_inference_mode_enabled, set_inference
from flowedu.core.eager.dispatch import set_grad_enabled as _set_grad

__all__ = ["enable_grad", "inference_mode", "is_grad_enabled", "is_inference_mode_enabled", "no_grad", "set_grad_enabled"]


class _Mode:
    """Base class of modes: a subclass defines the switches inside the block.

    Use it as `@mode` or `@mode()`.
    """

    def __new__(cls, *args, **kwargs):
        self = super().__new__(cls)
        if len(args) == 1 and not kwargs and callable(args[0]):      # @no_grad without brackets
            self.__init__()
            return self(args[0])
        return self

    def __init__(self):
        self.old: list[tuple[bool, bool]] = []

    def inside(self) -> tuple[bool, bool]:
        """(whether calls are recorded, whether tensors are marked as made for inference)."""
        raise NotImplementedError

    def __enter__(self):
        record, inference = self.inside()
        self.old.append((_set_grad(record), set_inference(inference)))
        return self

    def __exit__(self, *exc) -> None:
        record, inference = self.old.pop()
        _set_grad(record)
        set_inference(inference)

    def clone(self):
        """The same switch for one call of a decorated function."""
        return type(self)()

    def __call__(self, f: Callable) -> Callable:
        if inspect.isgeneratorfunction(f):
            @functools.wraps(f)
            def steps(*args, **kwargs):
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
                    except BaseException as e:           # thrown in by the caller; GeneratorExit: it is closed
                        resume, value = generator.throw, e
            return steps

        @functools.wraps(f)
        def inner(*args, **kwargs):
            with self.clone():
                return f(*args, **kwargs)
        return inner


class no_grad(_Mode):
    """Nothing inside is recorded for backward."""

    def inside(self):
        return False, is_inference_mode_enabled()


class enable_grad(_Mode):
    """Calls inside are recorded again, within no_grad."""

    def inside(self):
        return True, is_inference_mode_enabled()


class inference_mode(_Mode):
    """no_grad whose tensors say so: `t.is_inference()`. inference_mode(False) switches it off again."""

    def __init__(self, mode: bool = True):
        super().__init__()
        self.mode = bool(mode)

    def inside(self):
        return not self.mode, self.mode

    def clone(self):
        return type(self)(self.mode)


class set_grad_enabled(_Mode):
    """Switches recording on or off at once; as a context manager, until the end of the block."""

    def __new__(cls, mode: bool):
        return object.__new__(cls)

    def __init__(self, mode: bool):
        super().__init__()
        self.mode, self.before = bool(mode), _set_grad(bool(mode))

    def inside(self):
        return self.mode, is_inference_mode_enabled()

    def __enter__(self):
        super().__enter__()
        self.old[-1] = (self.before, self.old[-1][1])
        return self

    def clone(self):
        return enable_grad() if self.mode else no_grad()

    def __call__(self, f: Callable) -> Callable:
        _set_grad(self.before)                   # as a decorator it concerns the function only
        return super().__call__(f)
