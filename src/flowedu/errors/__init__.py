"""Error classes. Their messages contain the location, the expected and received values, and a fix.

The location is the op and the user's own line. The classes also derive from the built-in exception that
OneFlow raises in the same place, so that `except ValueError` in a script written for OneFlow keeps working.
"""
from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Sequence

_PACKAGE = os.path.dirname(os.path.dirname(__file__))


_SIZE = re.compile(r"flowedu\.Size\(\[([^]]*)\]\)")


def _plain(size: re.Match) -> str:
    """flowedu.Size([2, 3]) as (2, 3)."""
    return f"({size[1]},)" if size[1] and "," not in size[1] else f"({size[1]})"


# cache: files of flowedu, since every node of a graph looks at frames
_OURS: set[str] = set()
_RANKS: dict[str, int] = {}                       # cache: the _rank of other files
_STANDARD = os.path.dirname(os.__file__) + os.sep


def ours(frame) -> bool:
    """Return True if a frame runs flowedu's own code.

    Args:
        frame: Python frame object.
    """
    file = frame.f_code.co_filename
    if file.startswith((_PACKAGE, "<frozen")):
        _OURS.add(file)
        return True
    return frame.f_globals.get("__name__", "").startswith("flowedu.")


def _rank(frame) -> int:
    """Return 0 for a frame of the user's own code, 1 for an installed package, 2 for the standard library.

    Methods that `dataclass` and `namedtuple` write have no file, although their module has one. They count as
    2.
    """
    file = frame.f_code.co_filename
    if file.startswith("<"):
        return 2 if "__file__" in frame.f_globals and file == "<string>" else 0
    if f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file:
        return 1
    return 2 if file.startswith(_STANDARD) else int(os.path.dirname(file) == os.path.dirname(sys.executable))


def _innermost(frame, rank: int = 2) -> tuple[int, str, int] | None:
    """Return (rank, file, line) of the innermost frame outside flowedu with the lowest rank up to `rank`."""
    best = None
    while frame is not None:
        file = frame.f_code.co_filename
        if file not in _OURS and not ours(frame):
            known = _RANKS.get(file)
            if known is None:
                known = _rank(frame)
                if not file.startswith("<"):
                    _RANKS[file] = known
            if known <= rank:
                best, rank = (known, file, frame.f_lineno), known - 1
                if known == 0:
                    break
        frame = frame.f_back
    return best


def user_place(frame=None) -> tuple[str, int] | None:
    """Return (file, line) of the user's call: the innermost frame of the user's own code.

    The search skips the standard library and installed packages, which may call flowedu on the user's behalf.
    If a thread runs no code of the user, the frames of the main thread are searched. If these contain no code
    of the user either, the result is the innermost frame of an installed package, or else of the standard
    library. Without a frame outside flowedu, the result is None.

    Args:
        frame: Python frame to start from; default: the caller's.
    """
    best = _innermost(frame or sys._getframe(1))
    if (best is None or best[0]) and threading.current_thread() is not threading.main_thread():
        best = (_innermost(sys._current_frames().get(threading.main_thread().ident or 0), best[0] - 1 if best
                           else 2) or best)
    return best and best[1:]


def format_location(place: tuple[str, int] | None) -> str:
    """Return `file.py:12: source text` for a place, or "" for None.

    Args:
        place: (file, line number), as user_place returns it, or None.
    """
    import linecache

    if place is None:
        return ""
    name, number = place
    text = linecache.getline(name, number).strip()
    return f"{os.path.basename(name)}:{number}" + (f": {text}" if text else "")


def user_line(frame=None) -> str:
    """Return `file.py:12: source text` of the user's call (see user_place).

    Args:
        frame: Python frame to start from; default: the caller's.
    """
    return format_location(user_place(frame or sys._getframe(1)))


def _format_sizes(value: object) -> str:
    """Return a value as text, with `(2, 3)` instead of `flowedu.Size([2, 3])`."""
    text = str(value)
    return _SIZE.sub(_plain, text) if "Size(" in text else text


class FlowError(Exception):
    """Base class of all errors that flowedu raises on purpose.

    Args:
        problem: one sentence, starting with the name of the op or function.
        expected: the accepted values, shapes in axis letters if this helps.
        got: the value that was passed.
        fix: the smallest change that works.
        at: the user's line; None searches for it.
    """

    def __init__(self, problem: str, *, expected: str = "", got: str = "", fix: str = "",
                 at: str | None = None):
        self.problem, self.expected = _format_sizes(problem), _format_sizes(expected)
        self.got, self.fix = _format_sizes(got), _format_sizes(fix)
        self.at = user_line() if at is None else at
        super().__init__(self._text())

    def _text(self) -> str:
        parts = (("at", self.at), ("expected", self.expected), ("got", self.got), ("fix", self.fix))
        return "\n".join([self.problem, *(f"  {label + ':':<10}{text}" for label, text in parts if text)])

    def with_texts(self, **changed: str) -> FlowError:
        """Replace `problem`, `expected`, `got`, `fix`, or `at` in a caller with more information.

        Returns:
            The error.
        """
        vars(self).update(changed)
        self.args = (self._text(),)
        return self

    def __reduce__(self):
        return _rebuilt, (type(self), self.args, {k: v for k, v in vars(self).items() if k != "culprit"})


def _rebuilt(cls: type, args: tuple, attributes: dict) -> FlowError:
    """Return an error from another process, as it was raised there."""
    error: FlowError = FlowError.__new__(cls, *args)          # MemoryError.__new__ refuses OutOfMemoryError
    vars(error).update(attributes)
    return error


class ShapeError(FlowError, ValueError, RuntimeError):
    """Shapes or ranks that do not fit.

    A ValueError as in OneFlow 0.4, and a RuntimeError as in PyTorch and later OneFlow.
    """


class AxisError(ShapeError, IndexError):
    """An axis or an index out of range."""


class DTypeError(FlowError, TypeError, RuntimeError):
    """A dtype that does not fit.

    A TypeError as in OneFlow 0.4, and a RuntimeError as in PyTorch and later OneFlow.
    """


def either(words: Sequence[str]) -> str:
    """Return ["a", "b", "c"] as "a, b or c"."""
    return " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


class NotATensorError(DTypeError):
    """An argument that must be a tensor, but is not.

    Attributes:
        culprit: the argument, so that a public function can name its own parameter.
    """

    def __init__(self, what: str, x, name: str = "input"):
        remedy = f"wrap it: flow.tensor({name if name.isidentifier() else 'x'})"
        if x is None or isinstance(x, str):
            remedy = ("look at what made it: it returned None" if x is None
                      else "use numbers: flow.tensor([1.0, 2.0])")
        super().__init__(f"{what}: {name} is not a tensor", expected="a flow.Tensor", got=format_value(x),
                         fix=remedy)
        self.culprit = x


def format_value(x) -> str:
    """Describe a value: `the int 2`, `a list of 3`, `float32[2, 3]`, `float32 NumPy array of shape (2, 3)`.

    Args:
        x: any object.
    """
    kind, home = type(x).__name__, type(x).__module__.partition(".")[0]
    if x is None:
        return "None"
    if isinstance(x, type):
        return f"the class {x.__name__}"
    if isinstance(x, (bool, int, float, str, complex)):
        text = repr(x)
        return f"the {kind} {text if len(text) < 60 else text[:56] + ' ...'}"
    if isinstance(x, (list, tuple, dict, set)):
        return f"a {kind} of {len(x)}"
    if home == "numpy" and hasattr(x, "dtype"):
        return f"{x.dtype.name} NumPy array of shape {x.shape}" if kind == "ndarray" else f"the {kind} {x!r}"
    if isinstance(getattr(x, "shape", None), tuple) and hasattr(x, "dtype"):
        numbers = f"{getattr(x.dtype, 'name', x.dtype)}{list(x.shape)}"
        return numbers if home == "flowedu" else f"a {home}.{kind}, {numbers}"
    return (f"the function {getattr(x, '__name__', kind)}" if callable(x) and not hasattr(x, "forward")
            else f"a {kind}")


# Earlier names, which programs use.
told_line, told_value = format_location, format_value


class ArgumentError(FlowError, ValueError, RuntimeError):
    """An argument with a value that the op does not accept."""


class CheckError(FlowError, AssertionError):
    """A condition that OneFlow checks with `assert`."""


class HyperparameterError(ArgumentError, CheckError):
    """An option of an optimizer out of range. OneFlow asserts these, PyTorch raises ValueError."""


class StateError(ArgumentError):
    """A state_dict that does not fit the object it is loaded into."""


class CallError(FlowError, TypeError):
    """A call with other arguments than the function accepts."""


class UnsupportedError(FlowError, NotImplementedError):
    """A feature that flowedu does not have. OneFlow raises NotImplementedError."""


class JobBuildAndInferError(FlowError, RuntimeError):
    """A job that cannot be compiled."""


class GraphError(FlowError, RuntimeError):
    """A wrong use of a graph: a call before it is built, or inputs or variables that changed."""


class GraphAttributeError(FlowError, AttributeError):
    """An attribute that a graph must not have."""


class KernelError(FlowError, RuntimeError):
    """A value that a kernel cannot process, such as a label outside its range."""


class LinAlgError(KernelError):
    """A matrix that is singular or not positive definite, or a LAPACK routine that does not converge."""


class OutOfMemoryError(FlowError, MemoryError, RuntimeError):
    """A failed allocation of memory. It is a RuntimeError, as in PyTorch and OneFlow."""


class GradientError(FlowError, RuntimeError):
    """A backward pass without a differentiable value, or a second backward pass."""


def no_gradient(op: str, line: str | None) -> GradientError:
    """Return the error for a backward pass that reaches an op without gradient rules.

    `line` is the line of its call.
    """
    return GradientError(f"backward: {op} has no gradient",
                         expected="ops with a gradient rule between the loss and the tensors that require "
                         "grad", got=f"a call of {op}, which has none", at=line,
                         fix="give it one: custom_op(..., backward=...), define(..., grad=...); or call it "
                         "on x.detach()")


class LazyTensorError(FlowError, RuntimeError, AssertionError):
    """A request for the data of a tensor of a graph that is being built."""


class DeviceError(FlowError, RuntimeError):
    """A device that does not exist, or tensors on different ones."""


class CommError(FlowError, RuntimeError):
    """Ranks that called different collectives, a rank that has ended, or a wait that took too long."""


class CheckpointError(FlowError, RuntimeError):
    """A checkpoint that is missing, damaged, or does not fit."""


class DataError(FlowError, RuntimeError):
    """A data file that is missing or damaged, or that could not be downloaded."""


class MissingAttributeError(FlowError, AttributeError):
    """An attribute that is missing, or that cannot be set yet."""


class NameKeyError(FlowError, KeyError):
    """A name that is missing, taken, or invalid."""

    __str__ = Exception.__str__


class OutOfRangeError(KernelError, IndexError):
    """A class or an index out of range. It is an IndexError, as in PyTorch."""
