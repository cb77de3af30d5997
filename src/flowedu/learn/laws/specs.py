"""Chapter 5: what simplify may take away. Reshapes, casts and identities of which some change nothing, and some do."""
from __future__ import annotations

from flowedu.learn.laws import Law, smaller_programs
from flowedu.learn.laws.plans import _text, run

OPS = {"neg": {}, "identity": {}, "rows": {"shape": (6,)}, "table": {"shape": (2, 3)}, "float64": {"dtype": "float64"},
       "float32": {"dtype": "float32"}}


def _chains(rng, size):
    """Nodes (name, (value,)) over a, of shape (2, 3); one or two values that are fetched."""
    nodes = tuple((rng.choice(list(OPS)), (rng.randint(max(0, i - 2), i),)) for i in range(rng.randint(1, 2 * size)))
    n = 1 + len(nodes)
    return nodes, tuple(sorted(rng.sample(range(1, n), rng.randint(1, min(2, n - 1)))))


def _graph(case):
    from flowedu.core.graph.ir import Graph
    from flowedu.core.ops.define import REGISTRY
    from flowedu.core.values.dtype import as_dtype, float32
    from flowedu.core.values.spec import Spec
    g = Graph("drawn")
    values = [g.input("a", Spec((2, 3), float32))]
    with g.building():
        for name, (i,) in case[0]:
            given = {k: as_dtype(v) if k == "dtype" else v for k, v in OPS[name].items()}
            op = REGISTRY["reshape" if "shape" in given else "cast" if "dtype" in given else name]
            values.append(op(values[i], **given))
    g.outputs = [values[i] for i in case[1]]
    return g


def _judged(case, yours):
    graph = _graph(case)
    before, want = graph.outputs, run(graph, {})[0]
    told = "; ".join(f"{n.outputs[0].name} = {n.op.name}({n.inputs[0].name}) of {_spec(n.outputs[0])}" for n in graph.nodes)
    said = [f"  smallest case   a of (2, 3) float32; {told}", f"  fetched         {', '.join(v.name for v in before)}"]
    yours(graph)
    try:
        got = run(graph, {})[0]
    except KeyError as error:
        return [*said, f"  yours           {_text(graph) or 'nothing'}",
                f"  {error.args[0].name} is read, and no node makes it"]
    for old, value, right in zip(before, got, want):
        if (value.shape, value.dtype) != (right.shape, right.dtype):
            return [*said, f"  yours           {_text(graph) or 'nothing'}",
                    f"  what was {old.name} is now of {value.shape} {value.dtype}, and should be of {_spec(old)}"]
        if (value != right).any():
            return [*said, f"  yours           {_text(graph) or 'nothing'}", f"  what was {old.name} has other values"]
    return None


def _spec(value):
    return f"{value.shape} {value.dtype.name}"


same_specs = Law("shapes and dtypes are as before", _chains, _judged, lambda case: smaller_programs(*case, first=1),
                 cases=100, told=lambda case: _text(_graph(case)))
