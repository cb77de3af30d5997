"""Reads the pickles of CIFAR without unpickling: no name in a file is looked up, nothing in it is called.

A pickle is a program for a machine with a stack. The files of CIFAR-10 and CIFAR-100 (written by Python 2's cPickle,
protocol 2) need 24 of its 68 instructions: numbers, strings, lists, tuples, one dictionary, and for an array the three
names below, each in one fixed use, which are read as data here. Anything else is refused.
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
    """What stands for a dtype."""

    def __init__(self, code: bytes):
        if code not in _TYPES:
            raise ValueError(f"an array of {code!r}")
        self.code = code


class _Array:
    """What stands for an array until the end."""

    value: np.ndarray | None = None


class _Machine:
    """Runs the instructions. Every method named op_XX does the one of that byte."""

    def __init__(self, data: bytes):
        self.data, self.at, self.stack, self.memo = data, 0, [], {}

    def take(self, n: int) -> bytes:
        """The next n bytes."""
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
        """Everything on the stack above the mark; takes the mark away, too."""
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
                raise ValueError(f"the instruction {code!r} at byte {self.at - 1} is not one that CIFAR's files have")
            if op is _STOP:
                return self.stack.pop()
            made = op(self)
            if made is not None:
                push(made[0])

    # ---- instructions: what they return (in a tuple of one) goes on the stack
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
        found = _Name((self.line(), self.line()))
        if found not in _NAMES:
            raise ValueError(f"it names {b'.'.join(found).decode(errors='replace')}, which no file of CIFAR does")
        return (found,)

    def call(self):
        arguments, function = self.stack.pop(), self.stack.pop()
        if function == (b"numpy", b"dtype") and len(arguments) == 3:
            return (_DType(arguments[0]),)
        if function == (b"numpy.core.multiarray", b"_reconstruct") and arguments == ((b"numpy", b"ndarray"), (0,), b"b"):
            return (_Array(),)
        raise ValueError("it calls something")

    def build(self):
        state = self.stack.pop()
        if type(self.stack[-1]) is _DType:
            if state[1] not in (b"|", b"<"):
                raise ValueError("an array whose bytes are the other way round")
            return
        array = self.top(_Array)
        _, shape, dtype, columns_first, data = state
        if type(dtype) is not _DType or not all(type(n) is int and n >= 0 for n in shape) or type(data) is not bytes:
            raise ValueError("an array without a shape, a type or data")
        array.value = np.frombuffer(data, f"<{dtype.code.decode()}").reshape(shape, order="F" if columns_first else "C")

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
_OPS = {
    b"\x80": _M.proto, b".": _STOP, b"(": _M.mark,
    b"}": lambda m: ({},), b"]": lambda m: ([],), b"N": lambda m: (None,),
    b"\x88": lambda m: (True,), b"\x89": lambda m: (False,),
    b"J": lambda m: (m.number("<i"),), b"K": lambda m: (m.number("B"),), b"M": lambda m: (m.number("<H"),),
    b"U": lambda m: (m.take(m.number("B")),), b"T": lambda m: (m.take(m.number("<i")),),
    b"q": lambda m: m.put("B"), b"r": lambda m: m.put("<I"), b"h": lambda m: m.get("B"), b"j": lambda m: m.get("<I"),
    b"\x85": lambda m: m.tuple_of(1), b"\x86": lambda m: m.tuple_of(2), b"\x87": lambda m: m.tuple_of(3),
    b"t": lambda m: (tuple(m.above_mark()),),
    b"c": _M.name, b"R": _M.call, b"b": _M.build,
    b"a": _M.append, b"e": _M.appends, b"s": _M.set_item, b"u": lambda m: m.set_items(m.above_mark()),
}


def read_pickled(path: Path) -> dict[str, Any]:
    """The dictionary in a file of CIFAR: names -> int, bytes, list of them, or ndarray. Raises DataError for any other
    file; nothing in a file can make it do more than that."""
    try:
        found = _Machine(path.read_bytes()).run()
        if type(found) is not dict:
            raise ValueError("it is not a dictionary")
        return {k.decode("ascii"): _plain(v) for k, v in found.items()}
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, OSError, struct.error, OverflowError) as e:
        raise DataError(f"{path} is not a file of CIFAR, or is damaged (nothing is unpickled)", expected="a pickle as "
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
