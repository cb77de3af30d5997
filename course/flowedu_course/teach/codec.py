"""Immutable values, classes, and functions in the messages of protocol.py, and the socket of an answer."""
from __future__ import annotations

import base64
import builtins
import enum
import importlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowedu.core.ops.call import OpBase
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values import dtype as dt

PLAIN = (type(None), bool, int, float, str)


class Broken(Exception):
    """The other side has ended or sent an invalid message."""


class Ended(Broken):
    """The other side has ended."""


class Link:
    """A socket used as a file, because the sandbox refuses socket calls."""

    def __init__(self, fd: int):
        self.fd = fd

    def sendall(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.fd, view):]

    def recv(self, n: int) -> bytes:
        return os.read(self.fd, n)


def encode(v: Any) -> list | None:
    if isinstance(v, np.generic) and v.dtype.kind in "biuf":
        return ["n", v.dtype.str, v.item()]
    if isinstance(v, enum.Enum):
        return ["e", name_of(type(v)), v.name]
    if isinstance(v, (int, float, str)):           # also of a derived class
        return next(kind(v) for kind in (int, float, str) if isinstance(v, kind))
    if isinstance(v, (bytes, bytearray)):
        return ["b", base64.b64encode(v).decode()]
    if isinstance(v, range):
        return ["r", v.start, v.stop, v.step]
    if isinstance(v, slice) and all(type(x) in PLAIN for x in (v.start, v.stop, v.step)):
        return ["s", v.start, v.stop, v.step]
    if v is Ellipsis:
        return ["..."]
    if isinstance(v, dt.dtype):
        return ["d", v.name]
    if isinstance(v, np.dtype) and v.kind in "biuf":
        return ["D", v.str]
    if isinstance(v, OpBase) and REGISTRY.get(v.name) is v:
        return ["o", v.name]
    if (isinstance(v, type) or hasattr(v, "__code__")) and (name := name_of(v)):
        return ["g", name]
    return None


def decode(r: list) -> Any:
    kind, *rest = r
    if kind == "n":
        return numeric_dtype(rest[0]).type(rest[1])
    if kind == "e":
        return resolve(rest[0])[rest[1]]
    if kind == "b":
        return base64.b64decode(rest[0])
    if kind in "rs":
        return (range if kind == "r" else slice)(*rest)
    if kind == "...":
        return Ellipsis
    if kind == "d":
        return dt.by_name(rest[0])
    if kind == "D":
        return numeric_dtype(rest[0])
    if kind == "o":
        return REGISTRY[rest[0]]
    if kind == "g":
        return resolve(rest[0])
    raise Broken(f"invalid kind of value: {kind}")


def numeric_dtype(name: str) -> np.dtype:
    dtype = np.dtype(name)
    if dtype.kind not in "biuf":
        raise Broken(f"invalid dtype of an array: {dtype}")
    return dtype


def make_view(root: np.ndarray, start: int, shape: Sequence[int], strides: Sequence[int]) -> np.ndarray:
    """Return a view of `root`. Raises Broken if it reaches beyond the array."""
    ends = [s * (n - 1) for s, n in zip(strides, shape)] if 0 not in shape else []
    low = start + sum(e for e in ends if e < 0)
    high = start + sum(e for e in ends if e > 0) + root.itemsize
    if len(strides) != len(shape) or low < 0 or 0 not in shape and high > root.nbytes:
        raise Broken("a view outside its array")
    return np.ndarray(shape, root.dtype, root, start, strides)


def slots_of(cls: type) -> list[str]:
    slots = []
    for c in cls.__mro__:
        own = vars(c).get("__slots__", ())
        slots += [own] if isinstance(own, str) else list(own)
    return [n for n in slots if n not in ("__dict__", "__weakref__")]


def name_of(v: Any) -> str:
    """Return `module:name` of a class or function of flowedu or builtins, or "" for others, such as laws."""
    module, name = getattr(v, "__module__", None) or "", getattr(v, "__qualname__", "")
    if not (module.startswith("flowedu.") and not module.startswith("flowedu.swap") or module == "builtins"):
        return ""
    try:
        return f"{module}:{name}" if resolve(f"{module}:{name}") is v else ""
    except (AttributeError, ImportError):
        return ""


def resolve(name: str) -> Any:
    module, _, path = name.partition(":")
    if module == "builtins" and path in ("int", "float", "bool", "str", "tuple", "list", "dict", "set"):
        return getattr(builtins, path)
    if not module.startswith("flowedu.") or module.startswith(("flowedu.swap", "flowedu.diagnostics")):
        raise AttributeError(name)
    value = importlib.import_module(module)
    for part in path.split("."):
        if part.startswith("_") and part.startswith("__"):
            raise AttributeError(name)
        value = getattr(value, part)
    if not (isinstance(value, type) or hasattr(value, "__code__")):
        raise AttributeError(name)
    return value
