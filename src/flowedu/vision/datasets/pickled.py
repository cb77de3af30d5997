"""Reads the pickles of CIFAR: no name in a file is looked up, and nothing that it could call does anything.

A pickle is a program for a machine with a stack. The files of CIFAR-10 and CIFAR-100 (written by Python 2's cPickle,
protocol 2) need 28 of its 68 instructions: numbers, strings, lists, tuples, one dictionary, and for an array three names.
`pickletools` reads the program first, without running it, and what has another instruction is refused; then `pickle` runs
it, where the three names are the stand-ins below.
"""
from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any

import numpy as np

from flowedu.errors import DataError

_INSTRUCTIONS = frozenset("""PROTO STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 SHORT_BINSTRING BINSTRING BINPUT
    LONG_BINPUT BINGET LONG_BINGET EMPTY_LIST APPEND APPENDS EMPTY_DICT SETITEM SETITEMS TUPLE TUPLE1 TUPLE2 TUPLE3 GLOBAL
    REDUCE BUILD""".split())
_TYPES = {b"u1", b"i1", b"i2", b"i4", b"i8", b"f4", b"f8"}


class _Name:
    """What stands for a name: it can be neither called nor changed."""

    __slots__ = ()

    def __call__(self, *arguments):
        raise ValueError("it calls something")

    def __setstate__(self, state):
        raise ValueError("it changes something")


class _DTypeName(_Name):
    __slots__ = ()

    def __call__(self, code: bytes, *_) -> _DType:
        if code not in _TYPES:
            raise ValueError(f"an array of {code!r}")
        return _DType(code)


class _Reconstruct(_Name):
    __slots__ = ()

    def __call__(self, *arguments) -> _Array:
        if arguments != (_NDARRAY, (0,), b"b"):
            raise ValueError("it calls something")
        return _Array()


class _DType:
    """What stands for a dtype."""

    def __init__(self, code: bytes):
        self.code = code

    def __setstate__(self, state: tuple):
        if state[1] not in (b"|", b"<"):
            raise ValueError("an array whose bytes are the other way round")


class _Array:
    """What stands for an array until the end."""

    value: np.ndarray | None = None

    def __setstate__(self, state: tuple):
        _, shape, dtype, columns_first, data = state
        if type(dtype) is not _DType or not all(type(n) is int and n >= 0 for n in shape) or type(data) is not bytes:
            raise ValueError("an array without a shape, a type or data")
        self.value = np.frombuffer(data, f"<{dtype.code.decode()}").reshape(shape, order="F" if columns_first else "C")


_NDARRAY = _Name()
_NAMES = {("numpy.core.multiarray", "_reconstruct"): _Reconstruct(), ("numpy", "ndarray"): _NDARRAY,
          ("numpy", "dtype"): _DTypeName()}


class _Unpickler(pickle.Unpickler):
    """Python's, in which a name is one of three."""

    def find_class(self, module: str, name: str) -> _Name:
        if (module, name) not in _NAMES:
            raise ValueError(f"it names {module}.{name}, which no file of CIFAR does")
        return _NAMES[module, name]


def _check(data: bytes) -> None:
    """Every instruction is one that CIFAR's files have. Raises ValueError."""
    for n, (instruction, argument, at) in enumerate(pickletools.genops(data)):
        name = instruction.name
        if name not in _INSTRUCTIONS:
            raise ValueError(f"the instruction {name} at byte {at} is not one that CIFAR's files have")
        if name == "PROTO" and argument != 2:
            raise ValueError("the protocol is not 2")
        if name == "LONG_BINPUT" and argument > n:               # pickle makes room for as many
            raise ValueError(f"it numbers {argument} values before there are as many")


def read_pickled(path: Path) -> dict[str, Any]:
    """The dictionary in a file of CIFAR: names -> int, bytes, list of them, or ndarray. Raises DataError for any other
    file; nothing in a file can make it do more than that."""
    try:
        data = path.read_bytes()
        _check(data)
        found = _Unpickler(io.BytesIO(data), fix_imports=False, encoding="bytes").load()
        if type(found) is not dict:
            raise ValueError("it is not a dictionary")
        if not all(type(k) is bytes for k in found):
            raise ValueError("a key that is not a string")
        return {k.decode("ascii"): _plain(v) for k, v in found.items()}
    except (pickle.UnpicklingError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, OSError, EOFError,
            MemoryError) as e:
        raise DataError(f"{path} is not a file of CIFAR, or is damaged (nothing in it was called)", expected="a pickle as "
                        "on www.cs.toronto.edu/~kriz/cifar.html", got=str(e) if isinstance(e, ValueError) else
                        f"{type(e).__name__}: {e}", fix="remove it and use download=True") from e


def _plain(value):
    if type(value) is _Array:
        if value.value is None:
            raise ValueError("an array without data")
        return value.value
    if type(value) is list and all(type(x) in (int, bytes) for x in value) or type(value) in (int, bytes):
        return value
    raise ValueError(f"a value of type {type(value).__name__}")
