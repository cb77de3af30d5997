"""Text of print(graph), in OneFlow 0.9's layout.

It lists modules with their parameters and buffers; after the first call also inputs, outputs, and operators.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from flowedu.core.graph.ir import GraphValue, Node
from flowedu.core.sbp.sbp import pretty
from flowedu.core.trace.blocks import ModuleBlock
from flowedu.show.meta import line, meta, output_name
from flowedu.show.plan import aligned
from flowedu.show.ranks import text
from flowedu.tensor.devices.device import device_of


class Where:
    """Placements and layouts of a compiled graph's values, as operator lines show them."""

    def __init__(self, compiled):
        self.spread = None if compiled is None else compiled.spread
        self.type = "cpu" if compiled is None or not compiled.tracer.placing.place else "cuda"

    def placement(self, *values: GraphValue) -> str:
        layouts = {} if self.spread is None else self.spread.inferred.layouts
        layout = next((layouts[v][0] for v in values if v in layouts), None)
        ranks = layout and np.array(layout.devices).reshape(layout.hierarchy).tolist()
        return f'placement=(flowedu.placement(type="{self.type}", ranks={ranks or [0]}))'

    def meta(self, value: GraphValue) -> str:
        layouts = {} if self.spread is None else self.spread.inferred.layouts
        sbp = ", ".join(map(pretty, layouts[value][0].sbp)) if value in layouts else None
        shape = f"({value.shape[0]})" if len(value.shape) == 1 else str(value.shape)
        return f"sbp=({sbp or 'B'}), size={shape}, dtype=({value.dtype!r})"


def describe(graph, stacks: bool = False) -> str:
    """Return the text of print(graph). stacks: add the line of user code to each operator."""
    compiled = graph._compiled
    lines = [repr(graph.config)]
    if compiled is not None:
        lines += [line("INPUT", n, t) for n, t in compiled.inputs]
    used = set() if compiled is None else {id(t) for t in compiled.tracer.variables.values()}
    owned: dict = {}
    where = Where(compiled)
    if compiled is not None:
        for o in compiled.operators:
            owned.setdefault(id(o.block) if o.block else None, []).append(o)
    for block in graph._blocks.values():
        lines += _block(block, compiled, used, owned, stacks, where)
    if compiled is not None:
        lines += [f"(OPERATOR: {n}() -> ({n}/out:{where.meta(v)}), {where.placement(v)})"
                  for n, v in compiled.graph.inputs.items()]
        lines += [_operator(o, stacks, where) for o in owned.get(None, [])]
        lines += [f"(OPERATOR: {n}({_lbn(v)}:{where.meta(v)}) -> ({n}/out:{where.meta(v)}), "
                  f"{where.placement(v)})"
                  for (n, _), v in zip([o for o in compiled.outputs if o[1] is not None], compiled.fetched)]
        lines += [line("OUTPUT", n, t) for n, t in compiled.outputs]
    return f"(GRAPH:{graph.name}:{graph.class_name}): (\n{_indented(lines)}\n)"


def _block(block: Any, compiled, used: set[int], owned: dict, stacks: bool,
           where: Where) -> list[str]:
    module, inner = block.origin, list(block.inputs)
    for kind, table in (("PARAMETER", module._parameters), ("BUFFER", module._buffers)):
        for key, t in table.items():
            if t is not None:
                text = meta(t)
                if id(t) in used and t.requires_grad:
                    text = text.replace("requires_grad=True", "grad_fn=<accumulate_grad>")
                inner.append(f"({kind}:{block.path}.{key}:{text}): ()")
    for child in block.children.values():
        inner += _block(child, compiled, used, owned, stacks, where)
    inner += block.outputs
    operators = (_with_variables(block, owned.get(id(block), []), stacks, where) if compiled is not None
                 else [])
    inner.append(_parenthesised(f"({block.handle_repr})", operators))
    return [_parenthesised(f"(MODULE:{block.path}:{module._shallow_repr()})", inner)]


def _with_variables(block: ModuleBlock, operators: list, stacks: bool, where: Where) -> list[str]:
    """List the block's operators in order, with each variable where it is first used."""
    table, lines, seen = {o.node: o for o in operators}, [], set()
    for item in block.nodes:
        if isinstance(item, GraphValue):
            lines.append(f"(OPERATOR: {item.name}() -> (out:{where.meta(item)}), {where.placement(item)})")
        elif item in table:
            seen.add(item)
            lines.append(_operator(table[item], stacks, where))
    return lines + [_operator(o, stacks, where) for o in operators if o.node not in seen]


def _operator(o, stacks: bool, where: Where) -> str:
    node: Node = o.node
    inputs = ", ".join(f"{_lbn(v)}:({where.meta(v)})" for v in o.inputs)
    outputs = ", ".join(f"{node.name}/{output_name(node, i)}:({where.meta(v)})"
                        for i, v in enumerate(node.outputs))
    line = f", location=(Python Stack[-1]: {node.line})" if stacks and node.line else ""
    return (f"(OPERATOR: {node.name}({inputs}) -> ({outputs}), "
            f"{where.placement(*node.outputs, *o.inputs)}{line})")


def _lbn(value: GraphValue) -> str:
    """Return the logical name of a value, such as `model-matmul-0/out_0`."""
    return (f"{value.node.name}/{output_name(value.node, value.index)}" if value.node is not None
            else f"{value.name}/out")


def _parenthesised(head: str, inner: Iterable[str]) -> str:
    inner = list(inner)
    return f"{head}: (\n{_indented(inner)}\n)" if inner else f"{head}: ()"


def _indented(lines: Iterable[str]) -> str:
    return "\n".join("  " + line for text in lines for line in text.split("\n"))


# ---- compiler report and timing
def report(compiled, times: Sequence[str]) -> str:
    """Describe passes and memory of a compiled graph. times: lines about the duration of the first call."""
    if compiled.spread is not None:
        return "\n".join([*aligned([*compiled.spread.report, *times]), text(compiled.spread)])
    plan = compiled.program.plan
    saved = 100 * (1 - plan.arena / plan.sum_bytes) if plan.sum_bytes else 0.0
    where = [f"device {device_of(compiled.program.place)}"] if compiled.program.place else []
    memory = (f"memory {plan.arena / 1e6:.2f} MB for {len(plan.buffers)} buffers; without sharing "
               f"{plan.sum_bytes / 1e6:.2f} MB ({saved:.0f} % saved), at least {plan.bound_bytes / 1e6:.2f} "
               f"MB")
    return "\n".join(aligned([*plan.report, *where, memory, *times]))


def profile(compiled, args: tuple, kwargs: dict, repeats: int = 5) -> str:
    """Return a table of the slowest calls, with the shortest time of each call in several runs.

    Variables do not change.
    """
    from flowedu.show import recording  # imports distributed/, which graphs on one device do not need
    measure = recording.profile if compiled.spread is None else recording.ranks_profile
    timings = measure(compiled.program, compiled.bind(args, kwargs), repeats)
    lines = [f"{'call':32s} {'op':24s} {'us':>10s} {'share':>7s}"]
    lines += [f"{t.name[:32]:32s} {t.op[:24]:24s} {t.seconds * 1e6:10.1f} {t.seconds / timings.seconds:7.1%}"
              for t in sorted(timings, key=lambda t: -t.seconds)[:30]]
    return "\n".join([*lines, f"{len(timings)} calls, {timings.seconds * 1e3:.3f} ms"])


def timeline(compiled, args: tuple, kwargs: dict, repeats: int = 10):
    """Return a Trace of a compiled graph (show/trace.py)."""
    from flowedu.show import recording
    measure = recording.timeline if compiled.spread is None else recording.ranks_timeline
    return measure(compiled.program, compiled.bind(args, kwargs), repeats)
