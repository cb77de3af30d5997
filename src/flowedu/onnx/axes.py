"""ONNX models with inputs of any size: the argument dynamic_axes of onnx.export.

A graph has fixed sizes, so the model is exported at two sizes, and the two files are compared. Equal parts do
not depend on the size. If one number in the shape of a Reshape differs, it becomes -1 (inferred). If a number
in a shape or a bound of a slice differs and equals the size, the file reads it from the input at run time.
Any other difference raises UnsupportedError.

The result is then compared with exports at other sizes, both larger and smaller. This also rejects a number
that matches at two sizes by coincidence, such as n // 2.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flowedu.errors import ArgumentError, UnsupportedError
from flowedu.tensor import Tensor
from flowedu.tensor.construction.creation import arange, from_numpy

SHAPES = {"Reshape": (1,), "Expand": (1,), "Slice": (1, 2)}           # indices of the inputs that are sizes


class Sizes:
    """Two sizes for each named axis, for the two exports.

    They are the size in `args` and a smaller one, or two other sizes if the size in `args` is small.

    Attributes: of, {name: (size, size)}, all different; at, {name: (input, axis)}, where the size is read.
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

    def probes(self) -> list[list[dict[str, int]]]:
        """Return lists of sizes for the comparison.

        The first sizes of a list that the model accepts are used. If there are two or more axes, some lists
        combine large and small sizes.
        """
        large: list[dict[str, int]] = [{}, {}, {}, {}]
        for i, (symbol, pair) in enumerate(self.of.items()):
            twice = 2 * max(pair) + 1 + 2 * i
            for sizes, n in zip(large, (max(twice, 33 + 2 * i), twice, max(pair) + 1 + i,
                                        max(2, min(pair) // 2 + i))):
                sizes[symbol] = n
        candidates = [large, [dict.fromkeys(self.of, n) for n in (1, 2, 3)]]
        for parity in (0, 1) if len(self.of) > 1 else ():
            candidates.append([{s: n if i % 2 == parity else 1 for i, (s, n) in enumerate(large[0].items())}])
        return candidates

    def read(self, a: np.ndarray, b: np.ndarray) -> list[str | int] | None:
        """Return `a`, with names of sizes for elements that differ from `b`, or None if no size matches."""
        known = {pair: symbol for symbol, pair in self.of.items()}
        if a.shape != b.shape:
            return None
        sizes: list[Any] = [int(x) if x == y else known.get((int(x), int(y))) for x, y in zip(a, b)]
        return None if None in sizes else sizes


def symbols(axes: Mapping[str, Any], names: Sequence[str]) -> dict[str, dict[int, str]]:
    """Convert dynamic_axes from {name: [axis]} to {name: {axis: symbol}}. Raises ArgumentError."""
    result = {}
    for name, spec in axes.items():
        if names and name not in names:
            raise ArgumentError(f"onnx.export: dynamic_axes has {name!r}, which is no input and no output",
                                expected=", ".join(names), got=repr(name), fix=f"input_names=[{name!r}, ...]")
        result[name] = (dict(spec) if isinstance(spec, Mapping) else {axis: f"{name}_dynamic_axes_{axis}"
                                                                      for axis in spec})
    return result


def resized(args: tuple, kwargs: dict, names: Sequence[str], axes: dict[str, dict[int, str]],
            pick: Callable[[str, int, tuple[str, int]], int]) -> tuple[tuple, dict]:
    """Return (args, kwargs) with other sizes along the named axes, by repeating elements.

    pick: (name of the axis, its size, (input, axis)) -> the new size.
    """
    left = iter(names)

    def of(x):
        if not isinstance(x, Tensor):
            return x
        name = next(left)
        for axis, symbol in axes.get(name, {}).items():
            if not 0 <= axis < x.ndim:
                raise ArgumentError("onnx.export: dynamic_axes has a missing axis", got=str(axis),
                                    expected=f"0 to {x.ndim - 1}", fix="count axes from 0")
            size = pick(symbol, x.shape[axis], (name, axis))
            x = x.index_select(axis, arange(size) % x.shape[axis])
        return x

    return tuple(map(of, args)), {k: of(x) for k, x in kwargs.items()}


Export = tuple[Any, dict[str, str]]            # an onnx.ModelProto, and {name of a node: line of user code}
# {(node, input): a shape with -1, or numbers and names of sizes}
Rules = dict[tuple[int, int], Any]


def merged(models: Sequence[Export], axes: dict[str, dict[int, str]], sizes: Sizes) -> tuple[Any, Rules]:
    """Return the first of two exports with free sizes, and rules that compute the constants at other sizes.

    Raises:
        UnsupportedError: a constant cannot be computed from the sizes.
    """
    import onnx

    first, lines = models[0]
    second, more = models[1]
    one, other = first.graph, second.graph
    numbers, others = _numbers(onnx, one), _numbers(onnx, other)
    new: list = []                                                    # nodes that read sizes
    rules: Rules = {}
    rejected = _different_nodes(one, other, numbers, others)
    for k, (a, b) in enumerate(zip(one.node, other.node)) if not rejected else ():
        for i, (x, y) in enumerate(zip(a.input, b.input)):
            if x not in numbers or _same(numbers[x], others[y]):
                continue
            pair, name = (numbers[x], others[y]), f"{a.name}_sizes_{i}"
            is_shape = i in SHAPES.get(a.op_type, ())
            rest = _infer_shape(*pair) if is_shape and a.op_type == "Reshape" else None
            read = sizes.read(*pair) if is_shape else None
            if rest is not None:
                one.initializer.append(onnx.numpy_helper.from_array(rest, name))
                rules[k, i] = rest
            elif read is not None:
                _append_size_nodes(onnx, one, new, read, sizes, name)
                rules[k, i] = read
            else:
                rejected.append(a.name)
                continue
            a.input[i] = name
    if rejected:
        raise _dynamic_axes_error(rejected, {**more, **lines})
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
    onnx.checker.check_model(first, full_check=True)
    return first, rules


def _numbers(onnx, graph) -> dict[str, np.ndarray]:
    return {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}


def _different_nodes(one, other, numbers: Mapping, others: Mapping) -> list[str]:
    """Return the names of nodes that differ between the two graphs. Values of constants may differ."""
    names = []
    for a, b in zip(one.node, other.node):
        if (a.op_type != b.op_type or list(a.attribute) != list(b.attribute) or len(a.input) != len(b.input)
                or any((x in numbers) != (y in others) or x not in numbers and x != y
                       for x, y in zip(a.input, b.input))):
            names.extend([a.name, b.name][:1 + (a.op_type != b.op_type)])
    if not names and len(one.node) != len(other.node):
        longer = max((one.node, other.node), key=len)
        names.append(longer[min(len(one.node), len(other.node))].name)
    return names


def check(probe: Export, base: Export, rules: Rules, sizes: Mapping[str, int]) -> None:
    """Compare an export at `sizes` with `base`, an export at other sizes, by the rules for its constants.

    Raises:
        UnsupportedError: the nodes or the constants differ.
    """
    import onnx

    model, lines = probe
    other, more = base
    numbers, others = _numbers(onnx, model.graph), _numbers(onnx, other.graph)
    rejected = _different_nodes(model.graph, other.graph, numbers, others)
    shapes: dict[str, list[int]] = {}
    for k, (a, b) in enumerate(zip(model.graph.node, other.graph.node)) if not rejected else ():
        for i, (x, y) in enumerate(zip(a.input, b.input)):
            if x not in numbers:
                continue
            want = _constant(others[y], rules.get((k, i)), sizes, numbers[x])
            if _same(numbers[x], want):
                continue
            if a.op_type == "Slice" and i in (1, 2):             # bounds past the end mean the end
                shapes = shapes or _shapes(onnx, model)
                bound = np.array([shapes[a.input[0]][d] for d in numbers[a.input[3]]], np.int64)
                if _same(np.minimum(numbers[x], bound), np.minimum(want, bound)):
                    continue
            rejected.append(a.name)
    if rejected:
        raise _dynamic_axes_error(rejected, {**more, **lines}, ", ".join(f"{name} = {n}"
                                                                         for name, n in sizes.items()))


def _constant(other: np.ndarray, rule, sizes: Mapping[str, int], value: np.ndarray) -> np.ndarray:
    """Return the constant at `sizes`. A -1 in a shape matches any number in `value`."""
    if rule is None:
        return other
    if isinstance(rule, list):
        return np.array([sizes.get(n, n) for n in rule], np.int64)
    return np.where(rule == -1, value, rule) if rule.shape == value.shape else rule


def agrees(model, args: tuple, kwargs: dict, eager: Callable[[tuple, dict], list[Tensor] | None]) -> bool:
    """Return True if file and module agree on these arguments, multiplied by random numbers near 1."""
    from onnx.reference import ReferenceEvaluator

    rng = np.random.default_rng(0)

    def vary(x):
        if not isinstance(x, Tensor) or not x.dtype.is_floating_point:
            return x
        return x.detach() * from_numpy(rng.uniform(0.5, 1.5, tuple(x.shape))).to(x.dtype)

    args, kwargs = tuple(map(vary, args)), {k: vary(x) for k, x in kwargs.items()}
    try:
        want = [y.detach().numpy() for y in eager(args, kwargs) or ()]
        tensors = [x.numpy() for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        got = ReferenceEvaluator(model).run(None, dict(zip([x.name for x in model.graph.input], tensors)))
    except Exception:                              # the evaluator cannot run this model
        return False
    return len(got) == len(want) > 0 and all(a.shape == b.shape and np.allclose(
        a, b, rtol=1e-3, atol=1e-5 * max(1.0, np.abs(b).max(initial=0.0)), equal_nan=True)
                                             for a, b in zip(got, want))


def _shapes(onnx, model) -> dict[str, list[int]]:
    graph = onnx.shape_inference.infer_shapes(model).graph
    return {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
            for v in (*graph.input, *graph.value_info, *graph.output)} | {
            t.name: list(t.dims) for t in graph.initializer}


def _dynamic_axes_error(names: Sequence[str], lines: Mapping[str, str], at: str = "") -> UnsupportedError:
    return UnsupportedError(
        "onnx.export: dynamic_axes cannot be followed: its numbers depend on the size"
        + (f" (seen at {at})" if at else ""),
        expected="ops whose constants do not follow from the size", got=", ".join(names)[:200],
        at=next((lines[n] for n in names if n in lines), ""),
        fix="leave dynamic_axes out, and export once for each size, each to its own file")


def _append_size_nodes(onnx, graph, nodes: list, numbers: list[str | int], sizes: Sizes, name: str) -> None:
    """Append nodes that compute `name`, a vector. Names among `numbers` are sizes of inputs."""
    parts = []
    for k, n in enumerate(numbers):
        parts.append(f"{name}_{k}")
        if isinstance(n, int):
            graph.initializer.append(onnx.numpy_helper.from_array(np.array([n], np.int64), parts[-1]))
        else:
            source, axis = sizes.at[n]
            nodes.append(onnx.helper.make_node("Shape", [source], [parts[-1]], name=parts[-1], start=axis,
                                               end=axis + 1))
    nodes.append(onnx.helper.make_node("Concat", parts, [name], name=name, axis=0))


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _infer_shape(a: np.ndarray, b: np.ndarray) -> np.ndarray | None:
    """Return a shape with a -1 that fits both `a` and `b`, or None."""
    if a.shape != b.shape or np.count_nonzero(a != b) != 1 or not a.all() or not b.all():
        return None
    return np.where(a == b, a, -1)


def exported(export: Callable[[tuple, dict], Export], eager: Callable[[tuple, dict], list[Tensor] | None],
             args: tuple, kwargs: dict, names: Sequence[str], axes: dict[str, dict[int, str]]):
    """Return the ONNX model with free sizes.

    Args:
        export: (args, kwargs) -> the ONNX model at these sizes.
        eager: (args, kwargs) -> results of the module, or None if it raises.

    Raises:
        UnsupportedError: the model differs at another size, or accepts no other size to compare at.
    """
    sizes = Sizes()
    first, base = (export(*resized(args, kwargs, names, axes, lambda *axis, i=i: sizes.pair(*axis)[i]))
                   for i in range(2))
    model, rules = merged([first, base], axes, sizes)
    checked = not sizes.of
    for candidates in sizes.probes():
        for probe in candidates:
            call = resized(args, kwargs, names, axes, lambda symbol, *axis, probe=probe: probe[symbol])
            if any(n in sizes.of[symbol] for symbol, n in probe.items()) or eager(*call) is None:
                continue
            try:
                check(export(*call), base, rules, probe)
            except UnsupportedError:
                # An axis of size 1 may be traced to other nodes with the same result, such as a sum of one.
                if 1 not in probe.values() or not agrees(model, *call, eager):
                    raise
            checked = True
            break
    if not checked:
        raise UnsupportedError("onnx.export: dynamic_axes cannot be followed: the model takes no sizes to "
                               "compare at", expected="a model that takes a third size", got=str(sizes.of),
                               fix="leave dynamic_axes out, and export once for each size, each to its "
                               "own file")
    return model
