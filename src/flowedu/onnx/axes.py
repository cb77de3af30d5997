"""A model whose inputs may have other sizes: dynamic_axes of onnx.export.

A graph is of one size. So the model is exported twice, at two sizes, and the files are compared. Where they are the same,
the size does not matter. Where a Reshape differs in one number, that is -1, "the rest"; where a shape or the end of a slice
differs and is the size, it is read from the input when the model runs. Anything else is refused: what comes out is right at
both sizes.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flowedu.errors import ArgumentError, UnsupportedError
from flowedu.tensor import Tensor
from flowedu.tensor.creation import arange

SHAPES = {"Reshape": (1,), "Expand": (1,), "Slice": (1, 2)}           # which inputs of an op are sizes


class Sizes:
    """The two sizes of each axis that has a name: the given one and a smaller one, or two others where it is small.

    Attributes: of {name: (size, size)}, no two alike; at {name: (input, axis)}, where it is read.
    """

    def __init__(self):
        self.of: dict[str, tuple[int, int]] = {}
        self.at: dict[str, tuple[str, int]] = {}

    def pair(self, symbol: str, size: int, place: tuple[str, int]) -> tuple[int, int]:
        if symbol not in self.of:
            n = len(self.of)
            pair = (size, size - 1 - n) if size - 1 - n >= 3 else (5 + 6 * n, 7 + 6 * n)
            self.of[symbol], self.at[symbol] = pair, place
        return self.of[symbol]

    def read(self, a: np.ndarray, b: np.ndarray) -> list[str | int] | None:
        """Numbers that are a at the first sizes and b at the second, with names in their place; None: there are none."""
        known = {pair: symbol for symbol, pair in self.of.items()}
        found = [int(x) if x == y else known.get((int(x), int(y))) for x, y in zip(a, b)] if a.shape == b.shape else [None]
        return None if None in found else found


def symbols(axes: Mapping[str, Any], names: Sequence[str]) -> dict[str, dict[int, str]]:
    """dynamic_axes, {name: {axis: what it is called}} or {name: [axis]}, as the first. Raises ArgumentError."""
    found = {}
    for name, given in axes.items():
        if names and name not in names:
            raise ArgumentError(f"onnx.export: dynamic_axes has {name!r}, which is no input and no output",
                                expected=", ".join(names), got=repr(name), fix=f"input_names=[{name!r}, ...]")
        found[name] = dict(given) if isinstance(given, Mapping) else {axis: f"{name}_dynamic_axes_{axis}" for axis in given}
    return found


def resized(args: tuple, kwargs: dict, names: Sequence[str], axes: dict[str, dict[int, str]], sizes: Sizes,
            which: int) -> tuple:
    """(args, kwargs) with each axis that has a name of its size number `which`, by taking what is there again and again."""
    left = iter(names)

    def of(x):
        if not isinstance(x, Tensor):
            return x
        name = next(left)
        for axis, symbol in axes.get(name, {}).items():
            if not 0 <= axis < x.ndim:
                raise ArgumentError("onnx.export: dynamic_axes has an axis that is not there", got=str(axis),
                                    expected=f"0 to {x.ndim - 1}", fix="count axes from 0")
            size = sizes.pair(symbol, x.shape[axis], (name, axis))[which]
            x = x.index_select(axis, arange(size) % x.shape[axis])
        return x

    return tuple(map(of, args)), {k: of(x) for k, x in kwargs.items()}


def merged(models: Sequence, axes: dict[str, dict[int, str]], sizes: Sizes):
    """The first of two models of two sizes, freed from its size. Raises UnsupportedError."""
    import onnx

    one, other = (m.graph for m in models)
    numbers, others = ({t.name: onnx.numpy_helper.to_array(t) for t in g.initializer} for g in (one, other))
    new: list = []                                                    # nodes that read sizes
    refused = [] if len(one.node) == len(other.node) else ["the number of nodes"]
    for a, b in zip(one.node, other.node):
        if a.op_type != b.op_type or list(a.attribute) != list(b.attribute) or len(a.input) != len(b.input):
            refused.append(a.name)
            continue
        for i, (x, y) in enumerate(zip(a.input, b.input)):
            if (x in numbers) != (y in others) or x not in numbers and x != y:
                refused.append(a.name)
            elif x in numbers and not _same(numbers[x], others[y]):
                pair, name = (numbers[x], others[y]), f"{a.name}_sizes_{i}"
                is_shape = i in SHAPES.get(a.op_type, ())
                rest = _rest(*pair) if is_shape and a.op_type == "Reshape" else None
                read = sizes.read(*pair) if is_shape else None
                if rest is not None:
                    one.initializer.append(onnx.numpy_helper.from_array(rest, name))
                elif read is not None:
                    _reading(onnx, one, new, read, sizes, name)
                else:
                    refused.append(a.name)
                    continue
                a.input[i] = name
    if refused:
        raise UnsupportedError("onnx.export: dynamic_axes cannot be followed: its numbers depend on the size",
                               expected="ops that do not know the size", got=", ".join(refused)[:200],
                               fix="leave dynamic_axes out, and export once for each size, each to its own file")
    nodes = [*new, *one.node]
    del one.node[:]
    one.node.extend(nodes)
    used = {x for node in one.node for x in node.input}
    for t in [t for t in one.initializer if t.name not in used]:
        one.initializer.remove(t)
    for a, b in (*zip(one.input, other.input), *zip(one.output, other.output)):
        for axis, (d, e) in enumerate(zip(a.type.tensor_type.shape.dim, b.type.tensor_type.shape.dim)):
            if d.dim_value != e.dim_value:
                d.dim_param = axes.get(a.name, {}).get(axis, f"{a.name}_dynamic_axes_{axis}")
    onnx.checker.check_model(models[0], full_check=True)
    return models[0]


def _reading(onnx, graph, nodes: list, numbers: list[str | int], sizes: Sizes, name: str) -> None:
    """Append nodes whose result, `name`, are the numbers; names among them are sizes of inputs."""
    parts = []
    for k, n in enumerate(numbers):
        parts.append(f"{name}_{k}")
        if isinstance(n, int):
            graph.initializer.append(onnx.numpy_helper.from_array(np.array([n], np.int64), parts[-1]))
        else:
            source, axis = sizes.at[n]
            nodes.append(onnx.helper.make_node("Shape", [source], [parts[-1]], name=parts[-1], start=axis, end=axis + 1))
    nodes.append(onnx.helper.make_node("Concat", parts, [name], name=name, axis=0))


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _rest(a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """A shape that fits where a and b do; None: there is none."""
    if a.shape != b.shape or np.count_nonzero(a != b) != 1 or not a.all() or not b.all():
        return None
    return np.where(a == b, a, -1)


def exported(made: Callable[[tuple, dict], Any], args: tuple, kwargs: dict, names: Sequence[str],
             axes: dict[str, dict[int, str]]):
    """The model. made(args, kwargs): the one of a size."""
    sizes = Sizes()
    return merged([made(*resized(args, kwargs, names, axes, sizes, which)) for which in range(2)], axes, sizes)
