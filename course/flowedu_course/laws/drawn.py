"""Drawn graphs for the laws of passes: small ops, among them random ones, writes, side effects, and twins."""
from __future__ import annotations

import functools

import numpy as np

from flowedu.core.graph.ir import Graph
from flowedu.core.graph.rewrite import attributes
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.ops.record import Effects, Meaning, read
from flowedu.core.ops.view import constant
from flowedu.core.values.dtype import float32, int32
from flowedu.core.values.spec import Spec
from flowedu_course.laws.programs import fetched, join_calls

# Number of inputs. Values 0 and 1 are the inputs a and b. "low" and "high" are two results of one op, "told"
# has a side effect, and "again" differs from call to call.
OPS = {"add": 2, "mul": 2, "sub": 2, "neg": 1, "relu": 1, "identity": 1, "exp": 1, "dropout": 1, "update": 1,
       "sums": 1, "sums back": 1, "whole": 1, "low": 1, "high": 1, "told": 1, "again": 1, "per 0.0": 1,
       "per -0.0": 1}
# Calls of one op that differ only in an attribute.
TWINS = (("sums", "sums back"), ("per 0.0", "per -0.0"))


@functools.cache
def _own_ops():
    """Return {name: op} of ops that are not in the registry."""
    return {"halves": Op(read("halves(x) -> low, high"),
                         Meaning("a->a,a", lambda x: (np.minimum(x, 0), np.maximum(x, 0)))),
            "again": Op(read("again(x) -> y"), Meaning("a->a", lambda x: x), Effects(fresh=True)),
            "told": Op(read("told(x) ->"), Meaning("a->", lambda x: ()), Effects(fresh=True, effect=True))}


def draw_graph(rng, size):
    nodes = []
    for i in range(rng.randint(1, 3 * size)):
        name = rng.choice(list(OPS) if rng.random() < 0.6
                          else ["add", "mul", "sub", "sub", "neg", "identity", "sums"])
        if nodes and rng.random() < 0.4:
            name, ins = nodes[rng.randrange(len(nodes))]
            ins = ins[::-1] if rng.random() < 0.3 else ins                   # a - b is not b - a
            nodes.append((rng.choice(next((t for t in TWINS if name in t), (name,))), ins))
        else:
            nodes.append((name, tuple(rng.randrange(2 + i) for _ in range(OPS[name]))))
    n = 2 + len(nodes)
    outs = sorted(rng.sample(range(2, n), rng.randint(1, min(2, n - 2))))
    return tuple(nodes), tuple(outs)


def build_graph(case):
    """Return the graph of a case."""
    g = Graph("drawn")
    spec = Spec((3,), float32)
    values = [g.input("a", spec), g.input("b", spec)]
    state = None
    with g.building():
        for name, ins in case[0]:
            xs = tuple(values[i] for i in ins)
            if name == "update":
                if state is None:
                    state = g.variable("w", spec)
                REGISTRY["assign"](xs[0], state)
                values.append(xs[0])
            elif name == "dropout":
                # Equal seeds; a pass must not rely on them.
                mask = REGISTRY["random_mask_like"]
                mask = g.append(mask, xs, mask.complete({"rate": 0.5, "seed": 7}), reseed=False)[0]
                values.append(REGISTRY["dropout"](xs[0], mask, scale=2.0))
            elif name == "told":
                _own_ops()["told"].call(xs, ())
                values.append(xs[0])
            elif name in ("low", "high"):
                values.append(_own_ops()["halves"].call(xs, ())[name == "high"])
            elif name == "whole":
                values.append(REGISTRY["cast"](REGISTRY["cast"](xs[0], dtype=int32), dtype=float32))
            elif name == "again":
                values.append(_own_ops()["again"].call(xs, ()))
            elif name.startswith("per "):
                zero = constant(shape=(), value=float(name[4:]), dtype=float32)
                values.append(REGISTRY["div"](xs[0], zero))
            elif name in ("sums", "sums back"):
                values.append(REGISTRY["cumsum"](xs[0], axis=0, backwards=name == "sums back"))
            else:
                values.append(REGISTRY[name].call(xs, REGISTRY[name].complete({})))
    g.outputs = [values[i] for i in case[1]]
    return g


def text(graph):
    calls = [(", ".join(v.name for v in n.outputs) or ("w" if n.mutates else ""), n.op.name,
              ", ".join([v.name for v in n.inputs] or [str(attributes(n)["value"])])) for n in graph.nodes]
    return join_calls([f"{out} = {op}({given})" if out else f"{op}({given})" for out, op, given in calls])


def describe_graph(case):
    graph = build_graph(case)
    return [text(graph), fetched(graph)]
