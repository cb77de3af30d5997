"""Changes to an nn.Graph over global tensors before layout inference: ZeRO, pipelines, and the search.

distributed/graph/view.py calls `prepared` if the configuration of the graph enables one of them.
"""
from __future__ import annotations

from collections.abc import Mapping

from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.sbp.ranks import world
from flowedu.core.sbp.sbp import Layout, place_of
from flowedu.core.values.place import Place
from flowedu.distributed.auto.search import automatic, trained
from flowedu.distributed.graph.infer import HINT
from flowedu.distributed.layouts import lay_at
from flowedu.distributed.pipeline import one_forward_one_backward
from flowedu.distributed.zero import zero


def prepared(view) -> dict:
    """Apply ZeRO, the pipeline order, and the search to view.graph, as its configuration requires.

    Set view.global_layouts to the new layouts of variables and inputs, and view.found to the result of the
    search. Return the arguments of an Inference of the graph.
    """
    graph, config, passes = view.graph, view.owner.config, view.tracer.passes
    alone = _split(view) if config.zero_stage else set()
    sources = {v: global_layout.layout for v, global_layout in view.global_layouts.items()}
    if config.accumulation > 1:
        one_forward_one_backward(graph, passes, places(graph, sources))
    ways: dict = {}
    if config.auto_parallel:
        sources, ways = _searched(view, sources, alone)
    return {"sources": sources, "unshared": alone, "ways": ways}


def _split(view) -> set[Node]:
    """Insert the casts of ZeRO around the parameters that are split."""
    split, tracer, graph = {}, view.tracer, view.graph
    for name, t in tracer.variables.items():
        home, value = tracer.placing.homes.get(id(t)), graph.variables.get(name)
        if home is not None and value is not None and home is not t.global_layout:
            split[value] = t.global_layout.layout
            view.global_layouts[value] = home
    return zero(graph, split, view.owner.config.zero_stage, tracer.passes)


def _searched(view, sources: dict[GraphValue, Layout], alone: set[Node]) -> tuple[dict, dict]:
    """Return the layouts and signatures with the lowest total cost.

    Parameters split by ZeRO keep their layout.
    """
    graph, config, free = view.graph, view.owner.config, {}
    if config.auto_parameters and not config.zero_stage:
        free = {w: states for w, states in trained(graph).items() if w in view.global_layouts}
    view.found = automatic(graph, world(), sources, free, unshared=alone, ratio=config.auto_ratio)
    for v, at in view.found.best.sources.items():
        if v in view.global_layouts and at != view.global_layouts[v].layout:
            view.global_layouts[v] = lay_at(at)
    return view.found.best.sources, view.found.best.ways


def places(graph: Graph, sources: Mapping[GraphValue, Layout]) -> dict[Node, Place | None]:
    """Return the placement of every node, found without signatures; None for nodes without a placement."""
    at: dict[GraphValue, Place] = {v: place_of(x) for v, x in sources.items()}
    found: dict[Node, Place | None] = {}
    for node in graph.nodes:
        place = None if node.placement is None else place_of(node.placement)
        if node.op is HINT:
            there = node.attrs[HINT.attr_index["place"]]
            place = place if there is None else place_of(there)
        if place is None:
            place = next((at[x] for x in node.inputs if x in at), None)
        found[node] = place
        if place is not None:
            at.update(dict.fromkeys(node.outputs, place))
    return found
