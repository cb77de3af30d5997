"""One error family. Every message says where (op and the user's own line), what was expected, what came, and the fix.

The classes also derive from the built-in exception OneFlow raises in the same place, so that `except ValueError` in a
script written for OneFlow keeps working.
"""
from __future__ import annotations

import sys
import threading
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


def user_line() -> str:
    """`file.py:12: source text` of the innermost frame outside flowedu; empty when there is none."""
    import linecache

    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        ours = name.startswith((_PACKAGE, "<frozen")) or frame.f_globals.get("__name__", "").startswith("flowedu.")
        if not ours and name != threading.__file__:
            text = linecache.getline(name, frame.f_lineno).strip()
            return f"{Path(name).name}:{frame.f_lineno}" + (f": {text}" if text else "")
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


class ShapeError(FlowError, ValueError):
    """Shapes or ranks do not fit."""


class DTypeError(FlowError, TypeError):
    """A dtype does not fit."""


class ArgumentError(FlowError, ValueError):
    """An attribute has a value the op does not take."""


class CheckError(FlowError, AssertionError):
    """A condition OneFlow checks by `assert`."""


class CallError(FlowError, TypeError):
    """A call has other arguments than the function takes."""


class UnsupportedError(FlowError, NotImplementedError):
    """Something OneFlow refuses with NotImplementedError."""


class JobBuildAndInferError(FlowError, RuntimeError):
    """A job could not be compiled."""


class KernelError(FlowError, RuntimeError):
    """A kernel met a value it cannot work with, such as a label outside its range."""


class GradientError(FlowError, RuntimeError):
    """Backward was asked for where there is nothing to differentiate, or twice."""


class CheckpointError(FlowError, RuntimeError):
    """A checkpoint is missing, damaged or does not fit."""


class DataError(FlowError, RuntimeError):
    """A data file is missing, damaged, or could not be fetched."""
