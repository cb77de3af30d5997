"""One error family. Every message says where (op and the user's own line), what was expected, what came, and the fix.

The classes also derive from the built-in exception OneFlow raises in the same place, so that `except ValueError` in a
script written for OneFlow keeps working.
"""
from __future__ import annotations

import os
import re
import sys
import threading

_PACKAGE = os.path.dirname(__file__)


_SIZE = re.compile(r"flowedu\.Size\(\[([^]]*)\]\)")


def _plain(size: re.Match) -> str:
    """flowedu.Size([2, 3]) as (2, 3)."""
    return f"({size[1]},)" if size[1] and "," not in size[1] else f"({size[1]})"


def user_line(frame=None) -> str:
    """`file.py:12: source text` of the innermost frame outside flowedu, from `frame` (default: here) outwards; empty when
    there is none."""
    import linecache

    frame = frame or sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        ours = name.startswith((_PACKAGE, "<frozen")) or frame.f_globals.get("__name__", "").startswith("flowedu.")
        if not ours and name != threading.__file__:
            text = linecache.getline(name, frame.f_lineno).strip()
            return f"{os.path.basename(name)}:{frame.f_lineno}" + (f": {text}" if text else "")
        frame = frame.f_back
    return ""


class FlowError(Exception):
    """Base of all errors flowedu raises on purpose.

    Args:
        problem: one sentence, starting with the name of the op or function.
        expected, got: what the function takes and what came (shapes in axis letters where they help).
        fix: the smallest change that works.
        at: the user's line; found by itself when not given.
    """

    def __init__(self, problem: str, *, expected: str = "", got: str = "", fix: str = "", at: str | None = None):
        problem, expected, got, fix = (_SIZE.sub(_plain, t) if "Size(" in t else t for t in (problem, expected, got, fix))
        self.problem, self.expected, self.got, self.fix = problem, expected, got, fix
        self.at = user_line() if at is None else at
        super().__init__(self._text())

    def _text(self) -> str:
        parts = (("at", self.at), ("expected", self.expected), ("got", self.got), ("fix", self.fix))
        return "\n".join([self.problem, *(f"  {label + ':':<10}{text}" for label, text in parts if text)])

    def told(self, **changed: str) -> FlowError:
        """This error with other words for `problem`, `expected`, `got`, `fix` or `at`, where somebody knows more."""
        vars(self).update(changed)
        self.args = (self._text(),)
        return self


    def __reduce__(self):
        return _rebuilt, (type(self), self.args, vars(self))


def _rebuilt(cls: type, args: tuple, attributes: dict) -> FlowError:
    """An error that comes from another process, as it was raised there."""
    error = cls.__new__(cls, *args)
    vars(error).update(attributes)
    return error


class ShapeError(FlowError, ValueError, RuntimeError):
    """Shapes or ranks do not fit. (ValueError in OneFlow 0.4, RuntimeError in PyTorch and later OneFlows.)"""


class AxisError(ShapeError, IndexError):
    """An axis or an index is out of range."""


class DTypeError(FlowError, TypeError, RuntimeError):
    """A dtype does not fit. (TypeError in OneFlow 0.4, RuntimeError in PyTorch and later OneFlows.)"""


class ArgumentError(FlowError, ValueError, RuntimeError):
    """An attribute has a value the op does not take."""


class CheckError(FlowError, AssertionError):
    """A condition OneFlow checks by `assert`."""


class HyperparameterError(ArgumentError, CheckError):
    """An option of an optimizer is out of range. (OneFlow asserts these, PyTorch raises ValueError.)"""


class StateError(ArgumentError):
    """A state_dict does not fit the object it is loaded into."""


class CallError(FlowError, TypeError):
    """A call has other arguments than the function takes."""


class UnsupportedError(FlowError, NotImplementedError):
    """Something OneFlow refuses with NotImplementedError."""


class JobBuildAndInferError(FlowError, RuntimeError):
    """A job could not be compiled."""


class KernelError(FlowError, RuntimeError):
    """A kernel met a value it cannot work with, such as a label outside its range."""


class OutOfMemoryError(FlowError, MemoryError, RuntimeError):
    """There is no memory for an array, or no machine could have so much. (RuntimeError in PyTorch and OneFlow.)"""


class GradientError(FlowError, RuntimeError):
    """Backward was asked for where there is nothing to differentiate, or twice."""


class LazyTensorError(FlowError, RuntimeError, AssertionError):
    """Numbers were asked of a tensor of a graph that is being built."""


class DeviceError(FlowError, RuntimeError):
    """A device that does not exist, or tensors on different ones."""


class CommError(FlowError, RuntimeError):
    """Ranks that cannot meet: they called different collectives, or one has ended; or a wait that took too long."""


class CheckpointError(FlowError, RuntimeError):
    """A checkpoint is missing, damaged or does not fit."""


class DataError(FlowError, RuntimeError):
    """A data file is missing, damaged, or could not be fetched."""


class MissingAttributeError(FlowError, AttributeError):
    """An attribute is not there, or cannot be set yet."""


class NameKeyError(FlowError, KeyError):
    """A name that is missing, taken, or cannot be used."""

    __str__ = Exception.__str__


class OutOfRangeError(KernelError, IndexError):
    """A class or an index names nothing. (IndexError in PyTorch.)"""
