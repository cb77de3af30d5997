"""The identity of a global tensor: an integer that is equal on all ranks that make the same calls.

Boxing passes it to the communicator, which compares it with that of the other ranks. So two ranks that
request different tensors of one shape get an error instead of each other's data.

A tensor that is created, assembled from local tensors, or moved from one device to several gets a number n:
it is the n-th tensor of its shape, dtype, and layout on this rank. The identity of an op's result is a hash
of the op and of the identities of its inputs. So a rank may compute more results than other ranks if it does
not send them, because the identities of its other tensors do not change.

Python numbers and float attributes of ops are not part of an identity, because ranks may use different ones.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple
from zlib import crc32

from flowedu.core.eager.dispatch import GlobalLayout
from flowedu.core.ops.elementwise import add
from flowedu.core.sbp.ranks import Engine
from flowedu.core.sbp.tensor.global_layout import remember
from flowedu.core.values.dtype import dtype
from flowedu.core.values.spec import Spec

MASK = (1 << 32) - 1


class IdentifyingEngine(Engine):
    """The engine of one rank among several, which counts its global tensors."""

    def __init__(self):
        self._codes: dict[tuple, int] = {}
        self._counts: Counter[tuple] = Counter()

    def identify(self, maker, attrs, inputs=()):
        """Return the identity of a result (see Engine).

        `maker` is an op, a graph, or the name of a source, which is counted.
        """
        if type(maker) is str:
            self._counts[maker, attrs] += 1
            numbers = [self._counts[maker, attrs]]
        else:
            attrs = attrs[:-2] if maker.random else attrs
            numbers = [identity_of(x) for x in inputs]
            if maker is add:                         # gradients may arrive in any order
                numbers.sort()
        code = self._codes.get((maker, attrs)) or self._make_code(maker, attrs)
        return hash((code, *numbers)) & MASK or 1    # Python's hash of integers is the same in all processes

    def _make_code(self, maker, attrs: tuple) -> int:
        text = repr((getattr(maker, "name", maker), describe_attribute(attrs)))
        return remember(self._codes, (maker, attrs), crc32(text.encode()) or 1)


def identity_of(x) -> int:
    """Return the identity of a tensor, or 0 for a local tensor and for one on a single device."""
    rare = x.rare
    return 0 if rare is None or rare.parts is None else rare.parts.identity


class GraphSource(NamedTuple("GraphSource", [("name", str)])):
    """A compiled graph as the source of its outputs. `name` is from `describe_graph`."""

    __slots__ = ()
    random = False


def describe_graph(graph, variables: Mapping[str, object]) -> str:
    """Return a text that is equal on all ranks: a checksum of nodes and of identities of variables."""
    checksum = crc32(repr([identity_of(x) for x in variables.values()]).encode())
    for node in graph.nodes:
        attrs = node.attrs[:-2] if node.op.random else node.attrs
        text = repr((node.op.name, describe_attribute(attrs), [describe_attribute(x.spec)
                                                               for x in node.outputs]))
        checksum = crc32(text.encode(), checksum)
    return f"graph {checksum}"


def describe_attribute(value) -> object:
    """Return an attribute's contribution to an identity, which is equal on all ranks and in all processes."""
    if isinstance(value, (tuple, list)):
        return tuple(map(describe_attribute, value))
    if isinstance(value, GlobalLayout):
        return value.placement.type, value.layout.sbp, value.layout.devices, value.layout.hierarchy
    if isinstance(value, Spec):
        return tuple(value.shape), value.dtype.name
    if isinstance(value, dtype):
        return value.name
    return value if value is None or isinstance(value, (int, str)) else type(value).__name__
