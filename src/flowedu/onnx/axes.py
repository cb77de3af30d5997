"""Models with inputs of any size: dynamic_axes of onnx.export.

A graph has fixed sizes. So the model is exported at two sizes, and the files are compared. Where they are the
same, the size does not matter. Where a Reshape differs in one number, that becomes -1 ("infer"); where a
shape or the end of a slice differs and is the size, it is read from the input when the model runs. Anything
else is refused.

The result is then compared with exports at other sizes, larger and smaller ones: a number that matches at two
sizes by coincidence, such as n // 2, is rejected as well.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from flowedu.errors import ArgumentError, UnsupportedError
from flowedu.tensor import Tensor
from flowedu.tensor.creation import arange, from_numpy

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

    def probes(self) -> list[list[dict[str, int]]]:
        """Sizes to compare at: of each list the first that the model takes. Several axes are tried in mixed sizes, too."""
        large: list[dict[str, int]] = [{}, {}, {}, {}]
        for i, (symbol, pair) in enumerate(self.of.items()):
            twice = 2 * max(pair) + 1 + 2 * i
            for sizes, n in zip(large, (max(twice, 33 + 2 * i), twice, max(pair) + 1 + i, max(2, min(pair) // 2 + i))):
                sizes[symbol] = n
        found = [large, [dict.fromkeys(self.of, n) for n in (1, 2, 3)]]
        for parity in (0, 1) if len(self.of) > 1 else ():
            found.append([{s: n if i % 2 == parity else 1 for i, (s, n) in enumerate(large[0].items())}])
        return found

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


def resized(args: tuple, kwargs: dict, names: Sequence[str], axes: dict[str, dict[int, str]],
            pick: Callable[[str, int, tuple[str, int]], int]) -> tuple:
    """(args, kwargs) with other sizes along the axes that have a name, by repeating elements.

    pick: (name of the axis, its size, (input, axis)) -> the other size.
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


Export = tuple[Any, dict[str, str]]            # an onnx.ModelProto, and {name of a node: the user's line}
Rules = dict[tuple[int, int], Any]             # {(node, input): a shape with -1, or numbers and names of sizes}


def merged(models: Sequence[Export], axes: dict[str, dict[int, str]], sizes: Sizes) -> tuple[Any, Rules]:
    """Return the first of two models of two sizes, freed from its size, and how its constants follow from the sizes.

    Raises:
        UnsupportedError: a constant does not follow.
    """
    import onnx

    (first, lines), (second, more) = models
    one, other = first.graph, second.graph
    numbers, others = _numbers(onnx, one), _numbers(onnx, other)
    new: list = []                                                    # nodes that read sizes
    rules: Rules = {}
    refused = _unlike(one, other, numbers, others)
    for k, (a, b) in enumerate(zip(one.node, other.node)) if not refused else ():
        for i, (x, y) in enumerate(zip(a.input, b.input)):
            if x not in numbers or _same(numbers[x], others[y]):
                continue
            pair, name = (numbers[x], others[y]), f"{a.name}_sizes_{i}"
            is_shape = i in SHAPES.get(a.op_type, ())
            rest = _rest(*pair) if is_shape and a.op_type == "Reshape" else None
            read = sizes.read(*pair) if is_shape else None
            if rest is not None:
                one.initializer.append(onnx.numpy_helper.from_array(rest, name))
                rules[k, i] = rest
            elif read is not None:
                _reading(onnx, one, new, read, sizes, name)
                rules[k, i] = read
            else:
                refused.append(a.name)
                continue
            a.input[i] = name
    if refused:
        raise _refusal(refused, {**more, **lines})
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


def _unlike(one, other, numbers: Mapping, others: Mapping) -> list[str]:
    """Names of the nodes of `one` that are other ones in `other`; constants may differ in their values."""
    found = []
    for a, b in zip(one.node, other.node):
        if a.op_type != b.op_type or list(a.attribute) != list(b.attribute) or len(a.input) != len(b.input) or any(
                (x in numbers) != (y in others) or x not in numbers and x != y for x, y in zip(a.input, b.input)):
            found.extend([a.name, b.name][:1 + (a.op_type != b.op_type)])
    if not found and len(one.node) != len(other.node):
        longer = max((one.node, other.node), key=len)
        found.append(longer[min(len(one.node), len(other.node))].name)
    return found


def check(probe: Export, base: Export, rules: Rules, sizes: Mapping[str, int]) -> None:
    """Compare an export at `sizes` with one at another size, `base`, whose constants `rules` replace.

    Raises:
        UnsupportedError: the model at these sizes is another one.
    """
    import onnx

    (model, lines), (other, more) = probe, base
    numbers, others = _numbers(onnx, model.graph), _numbers(onnx, other.graph)
    refused = _unlike(model.graph, other.graph, numbers, others)
    shapes: dict[str, list[int]] = {}
    for k, (a, b) in enumerate(zip(model.graph.node, other.graph.node)) if not refused else ():
        for i, (x, y) in enumerate(zip(a.input, b.input)):
            if x not in numbers:
                continue
            want = _constant(others[y], rules.get((k, i)), sizes, numbers[x])
            if _same(numbers[x], want):
                continue
            if a.op_type == "Slice" and i in (1, 2):             # bounds behind the end are those of the end
                shapes = shapes or _shapes(onnx, model)
                bound = np.array([shapes[a.input[0]][d] for d in numbers[a.input[3]]], np.int64)
                if _same(np.minimum(numbers[x], bound), np.minimum(want, bound)):
                    continue
            refused.append(a.name)
    if refused:
        raise _refusal(refused, {**more, **lines}, ", ".join(f"{name} = {n}" for name, n in sizes.items()))


def _constant(other: np.ndarray, rule, sizes: Mapping[str, int], value: np.ndarray) -> np.ndarray:
    """The constant at `sizes`; -1 in a shape fits the number in `value`."""
    if rule is None:
        return other
    if isinstance(rule, list):
        return np.array([sizes.get(n, n) for n in rule], np.int64)
    return np.where(rule == -1, value, rule) if rule.shape == value.shape else rule


def agrees(model, args: tuple, kwargs: dict, eager: Callable[[tuple, dict], list[Tensor] | None]) -> bool:
    """True if the file computes what the module computes, of these arguments times random numbers around 1."""
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
    except Exception:                              # the evaluator's own: it cannot run this model
        return False
    return len(got) == len(want) > 0 and all(a.shape == b.shape and np.allclose(
        a, b, rtol=1e-3, atol=1e-5 * max(1.0, np.abs(b).max(initial=0.0)), equal_nan=True) for a, b in zip(got, want))


def _shapes(onnx, model) -> dict[str, list[int]]:
    graph = onnx.shape_inference.infer_shapes(model).graph
    return {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
            for v in (*graph.input, *graph.value_info, *graph.output)} | {
            t.name: list(t.dims) for t in graph.initializer}


def _refusal(names: Sequence[str], lines: Mapping[str, str], at: str = "") -> UnsupportedError:
    return UnsupportedError(
        "onnx.export: dynamic_axes cannot be followed: its numbers depend on the size" + (f" (seen at {at})" if at else ""),
        expected="ops whose constants do not follow from the size", got=", ".join(names)[:200],
        at=next((lines[n] for n in names if n in lines), ""),
        fix="leave dynamic_axes out, and export once for each size, each to its own file")


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


def exported(export: Callable[[tuple, dict], Export], eager: Callable[[tuple, dict], list[Tensor] | None], args: tuple,
             kwargs: dict, names: Sequence[str], axes: dict[str, dict[int, str]]):
    """Return the model with free sizes.

    Args:
        export: (args, kwargs) -> the model of one size.
        eager: (args, kwargs) -> results of the module; None if it raises.

    Raises:
        UnsupportedError: the model is another one at another size, or takes no other sizes to compare at.
    """
    sizes = Sizes()
    first, base = (export(*resized(args, kwargs, names, axes, lambda *axis, i=i: sizes.pair(*axis)[i])) for i in range(2))
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
                # An axis of size 1 may be traced in another way, to the same end: a slice of all, a sum of one.
                if 1 not in probe.values() or not agrees(model, *call, eager):
                    raise
            checked = True
            break
    if not checked:
        raise UnsupportedError("onnx.export: dynamic_axes cannot be followed: the model takes no sizes to compare at",
                               expected="a model that takes a third size", got=str(sizes.of),
                               fix="leave dynamic_axes out, and export once for each size, each to its own file")
    return model
