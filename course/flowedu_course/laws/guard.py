"""The functions of an answer as laws call them: their results are plain, and they change no argument."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from flowedu_course.laws import Rejected

LITTLE = ((int, int.__pos__), (float, float.__pos__), (str, str.__str__))


def guarded(f: Callable) -> Callable:
    """Return f with plain results. It raises Rejected if f changes a list or an array that it is given."""
    @functools.wraps(f)
    def call(*args: Any, **named: Any) -> Any:
        given = [(a, a.copy()) for a in (*args, *named.values()) if type(a) in (list, np.ndarray)]
        result = plain(f(*args, **named))
        for now, before in given:
            if not _is_same(now, before):
                what = "a list" if isinstance(now, list) else "an array"
                raise Rejected([f"  yours           changes {what} that it is given",
                                "  do not change an argument, because the caller still reads it"])
        return result
    return call


def plain(value: Any) -> Any:
    """Return a value with plain lists, tuples, dicts, numbers, and texts in place of those of subclasses."""
    if isinstance(value, (list, tuple)) and not hasattr(type(value), "_fields"):
        kind = list if isinstance(value, list) else tuple
        return kind([plain(x) for x in kind.__iter__(value)])
    if isinstance(value, dict):
        return {plain(k): plain(v) for k, v in dict.items(value)}
    if type(value) is bool:
        return value
    return next((copy(value) for kind, copy in LITTLE if isinstance(value, kind)), value)


def make_plain(graph: Any) -> None:
    """Give a graph plain lists of nodes and outputs, after an answer changed it."""
    graph.nodes, graph.outputs = list(plain(graph.nodes)), list(plain(graph.outputs))
    for node in graph.nodes:
        node.inputs, node.outputs = tuple(plain(node.inputs)), tuple(plain(node.outputs))


def _is_same(now: Any, before: Any) -> bool:
    if isinstance(now, list):
        return len(now) == len(before) and all(a is b for a, b in zip(now, before))
    return now.shape == before.shape and now.dtype == before.dtype and now.tobytes() == before.tobytes()
