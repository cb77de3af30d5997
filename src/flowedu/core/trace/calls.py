"""The arguments and results of calls of a compiled graph."""
from __future__ import annotations

from flowedu.core.eager.arrays import copy_of
from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.devices import device_name
from flowedu.core.trace import io
from flowedu.core.values.spec import Spec
from flowedu.errors import DeviceError, GraphError


def check_arguments(compiled, args: tuple, kwargs: dict) -> tuple:
    """Check arguments against the first call, and return their tensors, made contiguous."""
    inputs = io.leaves(f"_{compiled.owner.name}_input", args, kwargs)
    if len(inputs) != len(compiled.specs):
        raise GraphError(f"nn.Graph {compiled.owner.name}: Number of inputs and NNGraph::inputs_op_names mismatch",
                         expected=f"{len(compiled.specs)} inputs: {', '.join(n for n, _ in compiled.specs)}",
                         got=f"{len(inputs)} inputs", fix="call the graph as in its first call")
    arrays, place = [], compiled.tracer.placing.place
    for (name, x), (expected, spec) in zip(inputs, compiled.specs):
        if name != expected:
            raise GraphError(f"nn.Graph {compiled.owner.name}: the inputs have other names, or another order, than before",
                             expected=f"{expected}, as in the first call", got=name,
                             fix="the same keyword arguments, and dicts with the same keys in the same order")
        if spec is None and x is None:
            continue
        if spec is None or not isinstance(x, Tensor) or x.spec != spec:
            raise GraphError(
                "nn.Graph ONLY accepts static inputs tensor meta, please check whether your input tensor meta each "
                "step is the same as the input of first call graph", expected=f"{name}: {_describe(spec, place)}",
                got=f"{name}: {_describe(x.spec, x._device) if isinstance(x, Tensor) else type(x).__name__}",
                fix=_suggest_fix(x, spec))
        if x.global_layout is not None and compiled.spread is None:
            raise GraphError(f"nn.Graph {compiled.owner.name}: {name} is a global tensor",
                             expected="a local one, as in the first call", got=f"{x.global_layout.placement}",
                             fix="x.to_local(), or another graph for global tensors")
        if x.global_layout is None and x._device != place:
            raise DeviceError(f"nn.Graph {compiled.owner.name}: {name} is on another device than the graph",
                              expected=device_name(place), got=device_name(x._device), fix="move it, or make another graph")
        arrays.append(x if x.global_layout is not None or x._is_row_major() else copy_of(x.detach()))
    return tuple(arrays)


def restore_containers(compiled, out: list):
    """Return the outputs in the containers that `build` returned. Repeated values are copied."""
    taken: set[int] = set()

    def leaf(name, position):
        if position is None:
            return None
        i = compiled.where[position]
        y = out[i].clone() if i in taken else out[i]
        taken.add(i)
        return y

    tree, _ = io.map_leaves("", compiled.tree, {}, leaf)
    return tree[0] if compiled.single else tree


def _describe(spec: Spec | None, place: int) -> str:
    where = device_name(place) if place else "cpu:0"
    return "None" if spec is None else f"shape={spec.shape}, dtype={spec.dtype!r}, device={where}"


def _suggest_fix(x, spec: Spec | None) -> str:
    if spec is not None and not isinstance(x, Tensor):
        return f"pass a tensor of {spec}"
    if spec is not None and x.shape == spec.shape:
        return f"x.to(flow.{spec.dtype.name}), or make another graph for {x.dtype.name}"
    return "use batches of one size (DataLoader(..., drop_last=True)), or make another graph for this size"
