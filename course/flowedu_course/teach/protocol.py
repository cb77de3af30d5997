"""Messages between a judge and an answer in another process: plain data, never a pickle, never code.

Both sides number the objects that have an identity (lists, arrays, objects of flowedu's classes) and send
each other their changes. When a call returns, the judge's arguments have the changes that the answer made to
its arguments. One side calls a function of the other side through a message. Tensors stay with the judge: the
answer receives lazy tensors, and the judge runs their ops, so that the tensors keep their history.
"""
from __future__ import annotations

import base64
import json
import socket
import struct
from collections.abc import Callable, Iterable, MappingView
from typing import Any

import numpy as np

from flowedu.core.eager.dispatch import lazy_tensor
from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.ir import GraphValue
from flowedu.core.ops.call import OpBase, call_below, interpreter
from flowedu.core.values import dtype as dt
from flowedu_course.teach.codec import (
    PLAIN,
    Broken,
    Ended,
    decode,
    encode,
    make_view,
    name_of,
    numeric_dtype,
    resolve,
    slots_of,
)

MOST = 64 << 20                                    # bytes of one message
OP_FIELDS = ("name", "signature", "inputs", "outputs", "attrs", "variadic", "view", "mutates", "random",
             "effect", "fresh", "inplace", "elementwise")
LITTLE = {tuple: "t", frozenset: "f"}


def send(to: socket.socket, message: dict) -> None:
    data = json.dumps(message).encode()
    if len(data) > MOST:
        raise Broken(f"a message of {len(data) >> 20} MB")
    try:
        to.sendall(struct.pack("<I", len(data)) + data)
    except OSError as error:
        raise Ended(str(error)) from None


def receive(of: socket.socket) -> dict:
    """Return the next message. Raises Broken if it is missing or invalid."""
    size = struct.unpack("<I", _exactly(of, 4))[0]
    if size > MOST:
        raise Broken(f"a message of {size >> 20} MB")
    try:
        message = json.loads(_exactly(of, size))
    except (ValueError, RecursionError) as error:
        raise Broken(f"invalid message: {error}") from None
    if not isinstance(message, dict):
        raise Broken("invalid message: not a dict")
    return message


def _exactly(of: socket.socket, n: int) -> bytes:
    data = bytearray()
    while len(data) < n:
        try:
            part = of.recv(min(n - len(data), 1 << 20))
        except OSError as error:
            raise Ended(str(error)) from None
        if not part:
            raise Ended("the other process has ended")
        data += part
    return bytes(data)


class Opaque:
    """Stand-in for an object that cannot be sent, but can be passed back."""


class Side:
    """One end of a connection. `home` marks the judge's end, which validates everything.

    ask(message) sends a message and returns the reply. pack(values) makes a message part. unpack(part)
    returns the values and applies the changes to known objects.
    """

    def __init__(self, home: bool, ask: Callable[[dict], Any]):
        self.home, self.ask = home, ask
        self.next = 0 if home else 1
        self.objects: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}
        self.told: dict[int, Any] = {}

    # ---- to the other side
    def pack(self, values: Iterable, changed: bool = False) -> dict:
        """Return a message part with the values; `changed` adds the changes of all known objects."""
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
            if isinstance(v, kind) and not (hasattr(v, "_fields") and name_of(type(v))):
                return [letter, [self.ref(x) for x in v]]
        small = encode(v)
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
            if v.symbol is not None or self.home:  # the judge's tensor; both sides know its number
                return ["tensor", list(v.shape), v.dtype.name, bool(v.requires_grad)]
            return ["value", self.ref(np.array(v.detach().numpy())), v.dtype.name, bool(v.requires_grad)]
        if isinstance(v, tuple):                   # a named tuple; laws check its type
            return ["fields", name_of(type(v)), [self.ref(x) for x in v]]
        if isinstance(v, list):
            return ["list", [self.ref(x) for x in v]]
        if isinstance(v, dict):
            return ["dict", [[self.ref(k), self.ref(x)] for k, x in v.items()]]
        if isinstance(v, set):
            return ["set", [self.ref(x) for x in v]]
        if isinstance(v, np.ndarray) and v.dtype.kind in "biuf":
            return self._array(v)
        if isinstance(v, OpBase):                  # an op of a law, not in the registry
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
        state = {**{k: getattr(v, k) for k in slots_of(cls) if hasattr(v, k)}, **getattr(v, "__dict__", {})}
        ours = cls.__module__.startswith(("flowedu.", "flowedu_course."))
        if ours and not cls.__flags__ & 1 << 8:    # a class written in Python
            name = name_of(cls)
            # a class of a law; the other side needs only the attributes
            if not name:
                own = {k: x for k, x in vars(cls).items() if not k.startswith("_") and not callable(x)
                       and not hasattr(x, "__get__")}
                state = {**own, **state}
            return ["object", name, [[k, self.ref(x)] for k, x in sorted(state.items())]]
        return ["opaque", cls.__name__]

    # ---- from the other side
    def unpack(self, part: dict) -> list:
        """Return the values of a message part. Raises Broken if `pack` did not make it."""
        try:
            heap = {int(n): node for n, node in part["heap"].items()}
            for n in heap:
                if n not in self.objects and self.home and n % 2 == 0:
                    raise Broken(f"invalid object number {n}: even numbers belong to the judge")
            self.heap = heap
            for n in heap:
                self._shell(n)
            for n, node in heap.items():
                self._fill(self.objects[n], node)
                self.told[n] = node
            return [self.value(r) for r in part["roots"]]
        except Broken:
            raise
        except Exception as error:                 # the other side may have sent anything
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
            made = np.frombuffer(bytearray(base64.b64decode(node[3])), numeric_dtype(node[1])).reshape(shape)
            made = np.array(made)
        elif kind == "fields":
            cls = resolve(node[1])
            if not (isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")):
                raise Broken(f"{node[1]} is not a named tuple")
            made = cls._make([self.value(x) for x in node[2]])
        elif kind == "look":
            made = make_view(self.value(node[1]), *node[2:])
        elif kind == "tensor":
            if self.home:
                raise Broken("a tensor that the judge did not send")
            made = lazy_tensor(n, tuple(node[1]), dt.by_name(node[2]), node[3])
        elif kind == "value":
            import flowedu as flow
            made = flow.tensor(self.value(node[1]), dtype=dt.by_name(node[2]), requires_grad=bool(node[3]))
        elif kind == "call":
            made = self._caller(n)
        elif kind == "object":
            cls = resolve(node[1]) if node[1] else type("Record", (), {})
            if self.home and (not node[1] or cls.__new__ is not object.__new__):
                raise Broken(f"invalid class of an object: {node[1]}")
            made = object.__new__(cls)
        elif kind in ("opaque", "op") and not self.home:
            made = Opaque()
        else:
            raise Broken(f"invalid kind of object: {kind}")
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
            if v.dtype != numeric_dtype(node[1]) or list(v.shape) != node[2]:
                raise Broken("an array with another dtype or shape")
            v[...] = np.frombuffer(base64.b64decode(node[3]), v.dtype).reshape(v.shape)
        elif kind == "op" and isinstance(v, Opaque):
            vars(v).update((str(name), self.value(x)) for name, x in node[1])
        elif kind == "object":
            if self.home and name_of(type(v)) != node[1]:
                raise Broken("an object of another class")
            for name, x in node[2]:
                object.__setattr__(v, name, self.value(x))
        elif kind not in ("fields", "look", "tensor", "value", "call", "opaque"):
            raise Broken(f"a node of kind {kind} for an object of {type(v).__name__}")

    def value(self, r: Any) -> Any:
        if type(r) in PLAIN:
            return r
        kind = r[0]
        if kind == "#":
            return self._shell(int(r[1]))
        if kind in LITTLE.values():
            items = [self.value(x) for x in r[1]]
            return tuple(items) if kind == "t" else frozenset(items)
        return decode(r)


class Forwarding:
    """The interpreter of an answer's side: ops on tensors and graph values of the judge are run there.

    below: True for the interpreter that serves `call_below` of an answer that is an interpreter itself.
    """

    def __init__(self, side: Side, below: bool = False):
        self.side, self.below = side, below

    def run(self, op, inputs, attrs):
        if not any(map(self._of_the_judge, inputs)) and (inputs or not self._in_a_graph()):
            return call_below(op, inputs, attrs)
        return self.side.ask({"op": op.name, "below": self.below,
                              **self.side.pack([list(inputs), list(attrs)])})

    def _of_the_judge(self, x: Any) -> bool:
        return isinstance(x, GraphValue) or isinstance(x, Tensor) and x.symbol is not None

    def _in_a_graph(self) -> bool:
        """Return True while the judge builds a graph; constants then become values of it."""
        return any(isinstance(x, GraphValue) for x in self.side.objects.values())

    def on(self) -> interpreter:
        return interpreter(self)
