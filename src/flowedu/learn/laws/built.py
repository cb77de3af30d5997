"""Laws of chapter 2: gradient rules must also run while a graph is built (chapter 4), on values without methods."""
from __future__ import annotations

import functools

from flowedu.learn.laws import Law, pair
from flowedu.learn.laws.gradients import _named, _product, _products, _smaller_products, _smaller_stretched, _stretched

TITLE = "a graph is built with it, too"


def _built(f, shapes, want, said):
    """The lines of a failure of f, which gets values of a graph by name."""
    from flowedu.core.graph.ir import Graph
    from flowedu.core.values.dtype import float32
    from flowedu.core.values.spec import Spec
    graph = Graph("drawn")
    given = {name: graph.input(name, Spec(s, float32)) for name, s in shapes.items()}
    said = f"  smallest case   {said}, while a graph is built"
    with graph.building():
        try:
            got = f(**given)
        except AttributeError as error:
            return [said, f"  yours           {str(error).splitlines()[0]}"[:98],
                    "  values of a graph have no methods: call the ops, which serve for both"]
    return None if tuple(got.shape) == want else [said, *pair("should be", tuple(got.shape), want)]


def _slopes_built(case, yours):
    from flowedu.core.ops.record import parameters
    for name, f in yours.items():
        lines = _built(f, dict.fromkeys(parameters(f), (3,)), (3,), f"{name}({', '.join(parameters(f))})")
        if lines:
            return lines
    return None


slopes = Law(TITLE, lambda rng, size: None, _slopes_built, cases=1)


def _matmul_built(case, yours):
    from flowedu.core.ops.record import parameters
    m, _, n, batch, ta, tb, _ = case
    a, b, _ = _product(case)
    plain = {"transpose_a": ta, "transpose_b": tb, "a_shape": a.shape, "b_shape": b.shape}
    shapes = {"dy": (*batch, m, n), "a": a.shape, "b": b.shape}
    for name, v in (("da", a), ("db", b)):
        names = parameters(yours[name])
        f = functools.partial(yours[name], **{p: plain[p] for p in names if p in plain})
        lines = _built(lambda f=f, **given: _last_two(f(**given)), {p: shapes[p] for p in names if p in shapes},
                       v.shape[-2:], f"{name} of {_named(case)}")
        if lines:
            return lines
    return None


def _last_two(got):
    """Batches in front are summed by the library."""
    return type("matrix", (), {"shape": tuple(got.shape)[-2:]})


matmul = Law(TITLE, _products, _matmul_built, _smaller_products, cases=20, told=_named)


def _unbroadcast_built(case, yours):
    s, big = case
    return _built(lambda grad: yours(grad, s), {"grad": big}, s, _stretch(case))


def _stretch(case):
    return f"grad {case[1]} of a value of shape {case[0]}"


unbroadcast = Law(TITLE, _stretched, _unbroadcast_built, _smaller_stretched, cases=20, told=_stretch)
