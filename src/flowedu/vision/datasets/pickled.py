"""Safe reader of CIFAR's pickles, which neither imports names nor calls functions that a file contains.

A pickle is a program for a stack machine. The files of CIFAR-10 and CIFAR-100 (written by Python 2's cPickle,
protocol 2) need 24 of its 68 instructions: those for numbers, strings, lists, tuples, one dictionary, and
arrays. A file refers to an array by three names (`_NAMES`). Each name has one fixed use and is treated as
data. Anything else raises an error.
"""
from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

from flowedu.errors import DataError

_NAMES = {(b"numpy.core.multiarray", b"_reconstruct"), (b"numpy", b"ndarray"), (b"numpy", b"dtype")}
_TYPES = {b"u1", b"i1", b"i2", b"i4", b"i8", b"f4", b"f8"}
_MARK = object()


class _Name(tuple):
    """(module, name) in the file."""


class _DType:
    """Placeholder of a dtype."""

    def __init__(self, code: bytes):
        if code not in _TYPES:
            raise ValueError(f"an array of {code!r}")
        self.code = code


class _Array:
    """Placeholder of an array, which is created at the end."""

    value: np.ndarray | None = None


class _Machine:
    """Interpreter of the instructions; method op_XX executes the byte XX."""

    def __init__(self, data: bytes):
        self.data, self.at = data, 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def take(self, n: int) -> bytes:
        """Return the next n bytes."""
        if n < 0 or self.at + n > len(self.data):
            raise ValueError("the file ends too early")
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self, code: str) -> int:
        return struct.unpack(code, self.take(struct.calcsize(code)))[0]

    def line(self) -> bytes:
        end = self.data.index(b"\n", self.at)
        return self.take(end + 1 - self.at)[:-1]

    def above_mark(self) -> list:
        """Remove and return everything on the stack above the mark, and remove the mark."""
        i = len(self.stack) - 1
        while self.stack[i] is not _MARK:
            i -= 1
            if i < 0:
                raise ValueError("a mark is missing")
        items = self.stack[i + 1:]
        del self.stack[i:]
        return items

    def top(self, kind: type):
        if type(self.stack[-1]) is not kind:
            raise ValueError(f"{kind.__name__} expected, {type(self.stack[-1]).__name__} found")
        return self.stack[-1]

    def run(self) -> Any:
        push = self.stack.append
        while True:
            code = self.take(1)
            op = _OPS.get(code)
            if op is None:
                raise ValueError(f"the instruction {code!r} at byte {self.at - 1} is not one that CIFAR's "
                                 f"files have")
            if op is _STOP:
                return self.stack.pop()
            pushed = op(self)
            if pushed is not None:
                push(pushed[0])

    # ---- instructions, whose result (in a 1-tuple) is pushed on the stack
    def proto(self):
        if self.number("B") != 2:
            raise ValueError("the protocol is not 2")

    def put(self, code: str):
        self.memo[self.number(code)] = self.stack[-1]

    def get(self, code: str):
        return (self.memo[self.number(code)],)

    def tuple_of(self, n: int):
        items = tuple(self.stack[-n:])
        if len(items) < n or _MARK in items:
            raise ValueError("a tuple is too short")
        del self.stack[-n:]
        return (items,)

    def name(self):
        result = _Name((self.line(), self.line()))
        if result not in _NAMES:
            name = b".".join(result).decode(errors="replace")
            raise ValueError(f"it names {name}, which no file of CIFAR does")
        return (result,)

    def call(self):
        arguments, function = self.stack.pop(), self.stack.pop()
        if function == (b"numpy", b"dtype") and len(arguments) == 3:
            return (_DType(arguments[0]),)
        if (function == (b"numpy.core.multiarray", b"_reconstruct") and arguments == ((b"numpy", b"ndarray"),
                                                                                      (0,), b"b")):
            return (_Array(),)
        raise ValueError("it calls something")

    def build(self):
        state = self.stack.pop()
        if type(self.stack[-1]) is _DType:
            if state[1] not in (b"|", b"<"):
                raise ValueError("an array whose bytes are the other way round")
            return
        array = self.top(_Array)
        shape, dtype = state[1:3]
        columns_first, data = state[3:]
        if (type(dtype) is not _DType or not all(type(n) is int and n >= 0 for n in shape)
            or type(data) is not bytes):
            raise ValueError("an array without a shape, a type or data")
        array.value = np.frombuffer(data, f"<{dtype.code.decode()}").reshape(shape, order="F" if columns_first
                                                                             else "C")

    def append(self):
        item = self.stack.pop()
        self.top(list).append(item)

    def appends(self):
        items = self.above_mark()
        self.top(list).extend(items)

    def set_items(self, items: list):
        if len(items) % 2:
            raise ValueError("a key without a value")
        if not all(type(k) is bytes for k in items[::2]):
            raise ValueError("a key that is not a string")
        self.top(dict).update(zip(items[::2], items[1::2]))

    def set_item(self):
        value, key = self.stack.pop(), self.stack.pop()
        self.set_items([key, value])

    def mark(self):
        return (_MARK,)


_STOP = object()
_M = _Machine
_OPS: dict[bytes, Any] = {              # functions of a _Machine, and _STOP
    b"\x80": _M.proto, b".": _STOP, b"(": _M.mark,
    b"}": lambda m: ({},), b"]": lambda m: ([],), b"N": lambda m: (None,),
    b"\x88": lambda m: (True,), b"\x89": lambda m: (False,),
    b"J": lambda m: (m.number("<i"),), b"K": lambda m: (m.number("B"),), b"M": lambda m: (m.number("<H"),),
    b"U": lambda m: (m.take(m.number("B")),), b"T": lambda m: (m.take(m.number("<i")),),
    b"q": lambda m: m.put("B"), b"r": lambda m: m.put("<I"), b"h": lambda m: m.get("B"),
    b"j": lambda m: m.get("<I"),
    b"\x85": lambda m: m.tuple_of(1), b"\x86": lambda m: m.tuple_of(2), b"\x87": lambda m: m.tuple_of(3),
    b"t": lambda m: (tuple(m.above_mark()),),
    b"c": _M.name, b"R": _M.call, b"b": _M.build,
    b"a": _M.append, b"e": _M.appends, b"s": _M.set_item, b"u": lambda m: m.set_items(m.above_mark()),
}


def read_pickled(path: Path) -> dict[str, Any]:
    """Return the dictionary in a CIFAR file. Its values are ints, bytes, lists of these, or ndarrays.

    Raises DataError for any other file.
    """
    try:
        result = _Machine(path.read_bytes()).run()
        if type(result) is not dict:
            raise ValueError("it is not a dictionary")
        return {k.decode("ascii"): _plain(v) for k, v in result.items()}
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OSError, struct.error,
            OverflowError) as e:
        raise DataError(f"{path} is not a file of CIFAR, or is damaged (nothing is unpickled)",
                        expected="a pickle as on www.cs.toronto.edu/~kriz/cifar.html",
                        got=str(e) if isinstance(e, ValueError) else
                        f"{type(e).__name__}: {e}", fix="remove it and use download=True") from e


def _plain(value):
    if type(value) is _Array:
        if value.value is None:
            raise ValueError("an array without data")
        return value.value
    if type(value) is list and all(type(x) in (int, bytes) for x in value) or type(value) in (int, bytes):
        return value
    raise ValueError(f"a value of type {type(value).__name__}")
