"""A route in words, beside what the other ways would have cost."""
from __future__ import annotations

from flowedu.core.sbp.boxing.algebra import ANY, via
from flowedu.core.sbp.boxing.geometry import merged
from flowedu.core.sbp.boxing.primitives import DIRECT, PRIMITIVES, route, stops
from flowedu.core.sbp.sbp import Layout
from flowedu.core.values.spec import Spec


def explain_route(src: Layout, dst: Layout, spec: Spec, most: int = 6) -> str:
    """The route, and what the other ways would have cost.

    Args:
        most: how many other ways to list, the cheapest first.
    """
    best = route(src, dst, spec)
    a, b = merged(src.plain, spec.shape), merged(dst.plain, spec.shape)
    others: dict[str, int] = {}
    if not best.hops:
        return best.describe()
    direct = [p.boxing.best(a, b, spec, ANY) for p in PRIMITIVES]
    through = [via(lambda *_, m=m: [m], DIRECT, DIRECT).best(a, b, spec, ANY) for m in stops(a, b, spec)]
    for r in direct + through:
        if r is not None and len(r.hops) and r.hops != best.hops:
            others.setdefault(f"{r.name}" + (f" (via {r.hops[0].dst})" if len(r.hops) > 1 else ""), r.bytes)
    text = best.describe() + f"\n  the value has {spec.nbytes} bytes: {spec}"
    if others:
        text += "\nother ways:" + "".join(f"\n  {n} bytes: {name}" for name, n in
                                          sorted(others.items(), key=lambda t: t[1])[:most])
    return text
