"""Messages between a judge and an answer in another process: plain data, never a pickle, never code.

Both sides number the objects that have an identity (lists, arrays, objects of flowedu's classes) and send each other their
changes. When a call returns, the judge's arguments have the changes that the answer made to its arguments. One side calls a
function of the other side through a message. Tensors stay with the judge: the answer receives lazy tensors, and the judge
runs their ops, so that the tensors keep their history.
"""
from __future__ import annotations

import base64
import builtins
import enum
import importlib
import json
import socket
import struct
from collections.abc import Callable, Iterable, MappingView, Sequence
from typing import Any

import numpy as np

from flowedu.core.eager.dispatch import lazy_tensor
from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.ir import GraphValue
from flowedu.core.ops.call import OpBase, call_below, interpreter
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values import dtype as dt

MOST = 64 << 20                                    # bytes of one message
PLAIN = (type(None), bool, int, float, str)
OP_FIELDS = ("name", "signature", "inputs", "outputs", "attrs", "variadic", "view", "mutates", "random", "effect", "fresh",
             "inplace", "elementwise")
LITTLE = {tuple: "t", frozenset: "f"}


class Broken(Exception):
    """The other side is gone, or says what it must not."""


def send(to: socket.socket, message: dict) -> None:
    data = json.dumps(message).encode()
    if len(data) > MOST:
        raise Broken(f"{len(data) >> 20} MB in one message")
    to.sendall(struct.pack("<I", len(data)) + data)


def receive(of: socket.socket) -> dict:
    """The next message. Raises Broken: there is none, or it is no message."""
    size = struct.unpack("<I", _exactly(of, 4))[0]
    if size > MOST:
        raise Broken(f"{size >> 20} MB in one message")
    try:
        message = json.loads(_exactly(of, size))
    except (ValueError, RecursionError) as error:
        raise Broken(f"no message: {error}") from None
    if not isinstance(message, dict):
        raise Broken("no message")
    return message


def _exactly(of: socket.socket, n: int) -> bytes:
    data = bytearray()
    while len(data) < n:
        try:
            part = of.recv(min(n - len(data), 1 << 20))
        except OSError as error:
            raise Broken(str(error)) from None
        if not part:
            raise Broken("the other side is gone")
        data += part
    return bytes(data)


class Opaque:
    """Something that cannot be sent; it can be given back."""


class Side:
    """One end. `home`: the judge's, which believes nothing. ask(message): sends a message and gives the reply.

    pack(values): a message part; unpack(part): the values, and what changed in those that were known."""

    def __init__(self, home: bool, ask: Callable[[dict], Any]):
        self.home, self.ask = home, ask
        self.next = 0 if home else 1
        self.objects: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}
        self.told: dict[int, Any] = {}

    # ---- to the other side
    def pack(self, values: Iterable, changed: bool = False) -> dict:
        """changed: also what has changed in everything that is known to both."""
        self.todo: list[int] = []
        self.met: set[int] = set()
        roots = [self.ref(v) for v in values]
        if changed:
            for n in [*self.objects]:
                self._meet(n)
        heap = {}
        while self.todo:
            n = self.todo.pop()
            node = self.told[n] if isinstance(self.objects[n], Opaque) else self.node(self.objects[n])
            if self.told.get(n) != node:
                heap[n] = self.told[n] = node
        return {"roots": roots, "heap": heap}

    def _meet(self, n: int) -> None:
        if n not in self.met:
            self.met.add(n)
            self.todo.append(n)

    def ref(self, v: Any) -> Any:
        if type(v) in PLAIN:
            return v
        for kind, letter in LITTLE.items():
            if isinstance(v, kind) and not (hasattr(v, "_fields") and _named(type(v))):
                return [letter, [self.ref(x) for x in v]]
        small = _small(v)
        if small is not None:
            return small
        n = self.numbers.get(id(v))
        if n is None:
            n, self.next = self.next, self.next + 2
            self._know(n, v)
        self._meet(n)
        return ["#", n]

    def _know(self, n: int, v: Any) -> None:
        self.objects[n], self.numbers[id(v)] = v, n

    def node(self, v: Any) -> list:
        if isinstance(v, Tensor):
            if v.symbol is not None or self.home:  # the judge's own: known to both by its number
                return ["tensor", list(v.shape), v.dtype.name, bool(v.requires_grad)]
            return ["value", self.ref(np.array(v.detach().numpy())), v.dtype.name, bool(v.requires_grad)]
        if isinstance(v, tuple):                   # one with names: laws ask which it is
            return ["fields", _named(type(v)), [self.ref(x) for x in v]]
        if isinstance(v, list):
            return ["list", [self.ref(x) for x in v]]
        if isinstance(v, dict):
            return ["dict", [[self.ref(k), self.ref(x)] for k, x in v.items()]]
        if isinstance(v, set):
            return ["set", [self.ref(x) for x in v]]
        if isinstance(v, np.ndarray) and v.dtype.kind in "biuf":
            return self._array(v)
        if isinstance(v, OpBase):                  # of a law: what is not in the registry
            return ["op", [[k, self.ref(getattr(v, k))] for k in OP_FIELDS]]
        if callable(v):
            return ["call"]
        if hasattr(v, "__next__") or isinstance(v, MappingView):
            return ["iter", [self.ref(x) for x in v]]
        return self._object(v)

    def _array(self, v: np.ndarray) -> list:
        root = v
        while isinstance(root.base, np.ndarray):
            root = root.base
        if root is v or root.dtype != v.dtype or not root.flags.c_contiguous:
            return ["array", v.dtype.str, list(v.shape), base64.b64encode(v.tobytes()).decode()]
        start = v.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        return ["look", self.ref(root), start, list(v.shape), list(v.strides)]

    def _object(self, v: Any) -> list:
        cls = type(v)
        state = {**{k: getattr(v, k) for k in _slots(cls) if hasattr(v, k)}, **getattr(v, "__dict__", {})}
        if cls.__module__.startswith("flowedu.") and not cls.__flags__ & 1 << 8:      # written in Python
            name = _named(cls)
            if not name:                           # of a law: what its objects have will do
                own = {k: x for k, x in vars(cls).items() if not k.startswith("_") and not callable(x)
                       and not hasattr(x, "__get__")}
                state = {**own, **state}
            return ["object", name, [[k, self.ref(x)] for k, x in sorted(state.items())]]
        return ["opaque", cls.__name__]

    # ---- from the other side
    def unpack(self, part: dict) -> list:
        """Raises Broken: it is not what pack makes."""
        try:
            heap = {int(n): node for n, node in part["heap"].items()}
            for n in heap:
                if n not in self.objects and self.home and n % 2 == 0:
                    raise Broken(f"a number of the judge's: {n}")
            self.heap = heap
            for n in heap:
                self._shell(n)
            for n, node in heap.items():
                self._fill(self.objects[n], node)
                self.told[n] = node
            return [self.value(r) for r in part["roots"]]
        except Broken:
            raise
        except Exception as error:                 # whatever the other side may have made of it
            raise Broken(f"{type(error).__name__}: {error}") from None

    def _shell(self, n: int) -> Any:
        if n in self.objects:
            return self.objects[n]
        node = self.heap[n]
        kind = node[0]
        made: Any
        if kind in ("list", "iter"):
            made = []
        elif kind == "dict":
            made = {}
        elif kind == "set":
            made = set()
        elif kind == "array":
            shape = [int(s) for s in node[2]]
            made = np.frombuffer(bytearray(base64.b64decode(node[3])), _numbers(node[1])).reshape(shape)
            made = np.array(made)
        elif kind == "fields":
            cls = _resolved(node[1])
            if not (isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")):
                raise Broken(f"{node[1]} is no named tuple")
            made = cls._make([self.value(x) for x in node[2]])
        elif kind == "look":
            made = _looked(self.value(node[1]), *node[2:])
        elif kind == "tensor":
            if self.home:
                raise Broken("a tensor of nobody")
            made = lazy_tensor(n, tuple(node[1]), dt.by_name(node[2]), node[3])
        elif kind == "value":
            import flowedu as flow
            made = flow.tensor(self.value(node[1]), dtype=dt.by_name(node[2]), requires_grad=bool(node[3]))
        elif kind == "call":
            made = self._caller(n)
        elif kind == "object":
            cls = _resolved(node[1]) if node[1] else type("Record", (), {})
            if self.home and (not node[1] or cls.__new__ is not object.__new__):
                raise Broken(f"an object of {node[1]}")
            made = object.__new__(cls)
        elif kind in ("opaque", "op") and not self.home:
            made = Opaque()
        else:
            raise Broken(f"a {kind}")
        self._know(n, made)
        return made

    def _caller(self, n: int) -> Callable:
        return lambda *args, **kwargs: self.ask({"call": n, **self.pack([list(args), kwargs])})

    def _fill(self, v: Any, node: list) -> None:
        kind = node[0]
        if kind in ("list", "iter") and isinstance(v, list):
            v[:] = [self.value(r) for r in node[1]]
        elif kind == "dict" and isinstance(v, dict):
            items = [(self.value(k), self.value(x)) for k, x in node[1]]
            v.clear()
            v.update(items)
        elif kind == "set" and isinstance(v, set):
            items = {self.value(r) for r in node[1]}
            v.clear()
            v.update(items)
        elif kind == "array" and isinstance(v, np.ndarray):
            if v.dtype != _numbers(node[1]) or list(v.shape) != node[2]:
                raise Broken("an array of another size")
            v[...] = np.frombuffer(base64.b64decode(node[3]), v.dtype).reshape(v.shape)
        elif kind == "op" and isinstance(v, Opaque):
            vars(v).update((str(name), self.value(x)) for name, x in node[1])
        elif kind == "object":
            if self.home and _named(type(v)) != node[1]:
                raise Broken("an object of another class")
            for name, x in node[2]:
                object.__setattr__(v, name, self.value(x))
        elif kind not in ("fields", "look", "tensor", "value", "call", "opaque"):
            raise Broken(f"{kind} for {type(v).__name__}")

    def value(self, r: Any) -> Any:
        if type(r) in PLAIN:
            return r
        kind = r[0]
        if kind == "#":
            return self._shell(int(r[1]))
        if kind in LITTLE.values():
            items = [self.value(x) for x in r[1]]
            return tuple(items) if kind == "t" else frozenset(items)
        return _large(r)


# ---- values that are what they are
def _small(v: Any) -> list | None:
    if isinstance(v, np.generic) and v.dtype.kind in "biuf":
        return ["n", v.dtype.str, v.item()]
    if isinstance(v, enum.Enum):
        return ["e", _named(type(v)), v.name]
    if isinstance(v, (int, float, str)):           # of a class derived from these
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
    if (isinstance(v, type) or hasattr(v, "__code__")) and (name := _named(v)):
        return ["g", name]
    return None


def _large(r: list) -> Any:
    kind, *rest = r
    if kind == "n":
        return _numbers(rest[0]).type(rest[1])
    if kind == "e":
        return _resolved(rest[0])[rest[1]]
    if kind == "b":
        return base64.b64decode(rest[0])
    if kind in "rs":
        return (range if kind == "r" else slice)(*rest)
    if kind == "...":
        return Ellipsis
    if kind == "d":
        return dt.by_name(rest[0])
    if kind == "D":
        return _numbers(rest[0])
    if kind == "o":
        return REGISTRY[rest[0]]
    if kind == "g":
        return _resolved(rest[0])
    raise Broken(f"a {kind}")


def _numbers(name: str) -> np.dtype:
    made = np.dtype(name)
    if made.kind not in "biuf":
        raise Broken(f"an array of {made}")
    return made


def _looked(root: np.ndarray, start: int, shape: Sequence[int], strides: Sequence[int]) -> np.ndarray:
    """A view, inside of what it looks at."""
    ends = [s * (n - 1) for s, n in zip(strides, shape)] if 0 not in shape else []
    low = start + sum(e for e in ends if e < 0)
    high = start + sum(e for e in ends if e > 0) + root.itemsize
    if len(strides) != len(shape) or low < 0 or 0 not in shape and high > root.nbytes:
        raise Broken("a view beyond its array")
    return np.ndarray(shape, root.dtype, root, start, strides)


def _slots(cls: type) -> list[str]:
    found = []
    for c in cls.__mro__:
        own = vars(c).get("__slots__", ())
        found += [own] if isinstance(own, str) else list(own)
    return [n for n in found if n not in ("__dict__", "__weakref__")]


def _named(v: Any) -> str:
    """`module:name` of a class or function of flowedu (laws and judges are not sent), or of builtins; "" for others."""
    module, name = getattr(v, "__module__", None) or "", getattr(v, "__qualname__", "")
    if not (module.startswith("flowedu.") and not module.startswith("flowedu.learn") or module == "builtins"):
        return ""
    try:
        return f"{module}:{name}" if _resolved(f"{module}:{name}") is v else ""
    except (AttributeError, ImportError):
        return ""


def _resolved(name: str) -> Any:
    module, _, path = name.partition(":")
    if module == "builtins" and path in ("int", "float", "bool", "str", "tuple", "list", "dict", "set"):
        return getattr(builtins, path)
    if not module.startswith("flowedu.") or module.startswith(("flowedu.learn", "flowedu.diagnostics")):
        raise AttributeError(name)
    found = importlib.import_module(module)
    for part in path.split("."):
        if part.startswith("_") and part.startswith("__"):
            raise AttributeError(name)
        found = getattr(found, part)
    if not (isinstance(found, type) or hasattr(found, "__code__")):
        raise AttributeError(name)
    return found


class Forwarding:
    """The interpreter of an answer's side: ops on tensors and graph values of the judge are run there.

    below: True for the interpreter that serves `call_below` of an answer that is an interpreter itself."""

    def __init__(self, side: Side, below: bool = False):
        self.side, self.below = side, below

    def run(self, op, inputs, attrs):
        if not any(map(self._of_the_judge, inputs)) and (inputs or not self._in_a_graph()):
            return call_below(op, inputs, attrs)
        return self.side.ask({"op": op.name, "below": self.below, **self.side.pack([list(inputs), list(attrs)])})

    def _of_the_judge(self, x: Any) -> bool:
        return isinstance(x, GraphValue) or isinstance(x, Tensor) and x.symbol is not None

    def _in_a_graph(self) -> bool:
        """Constants are values of the graph that the judge builds."""
        return any(isinstance(x, GraphValue) for x in self.side.objects.values())

    def on(self) -> interpreter:
        return interpreter(self)
