"""Laws of chapter 2: gradient rules must also run while a graph is built (chapter 4), without methods of values."""
from __future__ import annotations

import functools

from flowedu.core.graph.ir import Graph
from flowedu.core.ops.record import parameters
from flowedu.core.values.dtype import float32
from flowedu.core.values.spec import Spec
from flowedu_course.laws import SMALLEST, chapter2, holds, pair

TITLE = "it also works while a graph is built"


def _check(f, shapes, want, words):
    """Call f with graph values as keyword arguments. Return the lines of a failure, or None."""
    graph = Graph("drawn")
    given = {name: graph.input(name, Spec(s, float32)) for name, s in shapes.items()}
    said = f"{SMALLEST}{words}, while a graph is built"
    with graph.building():
        try:
            got = f(**given)
        except AttributeError as error:
            return [said, f"  yours           {str(error).splitlines()[0]}"[:98],
                    "  graph values have no methods: call the ops, which accept tensors and graph values"]
    return None if tuple(got.shape) == want else [said, *pair("should be", tuple(got.shape), want)]


@holds(TITLE, lambda rng, size: None, cases=1)
def slopes(case, yours):
    for name, f in yours.items():
        lines = _check(f, dict.fromkeys(parameters(f), (3,)), (3,), f"{name}({', '.join(parameters(f))})")
        if lines:
            return lines
    return None


@holds(TITLE, chapter2.draw_product, chapter2.smaller_products, cases=20, told=chapter2.describe_product)
def matmul(case, yours):
    m, _, n, batch, ta, tb, _ = case
    a, b, _ = chapter2.make_product(case)
    plain = {"transpose_a": ta, "transpose_b": tb, "a_shape": a.shape, "b_shape": b.shape}
    shapes = {"dy": (*batch, m, n), "a": a.shape, "b": b.shape}
    for name, v in (("da", a), ("db", b)):
        names = parameters(yours[name])
        f = functools.partial(yours[name], **{p: plain[p] for p in names if p in plain})
        lines = _check(lambda f=f, **given: _last_two(f(**given)), {p: shapes[p] for p in names
                                                                    if p in shapes},
                       v.shape[-2:], f"{name} of {chapter2.describe_product(case)}")
        if lines:
            return lines
    return None


def _last_two(got):
    """Return an object with only the last two axes of the shape; the library sums leading batch axes."""
    return type("matrix", (), {"shape": tuple(got.shape)[-2:]})


@holds(TITLE, chapter2.draw_stretched, chapter2.smaller_stretched, cases=20, told=chapter2.describe_stretched)
def unbroadcast(case, yours):
    s, big = case
    return _check(lambda grad: yours(grad, s), {"grad": big}, s, chapter2.describe_stretched(case))
