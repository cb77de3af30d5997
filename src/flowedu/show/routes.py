"""Text of a route, with the costs of the alternatives."""
from __future__ import annotations

from itertools import groupby

from flowedu.core.sbp.boxing.algebra import ANY, Hop, Route, via
from flowedu.core.sbp.boxing.primitives import DIRECT, PRIMITIVES, stops
from flowedu.core.sbp.boxing.primitives import route as route_of
from flowedu.core.sbp.sbp import Layout, pretty
from flowedu.core.values.place import format_devices
from flowedu.core.values.spec import Spec


def describe(route: Route) -> str:
    """Format a route: its path, bytes, and messages."""
    lines = [f"{route.src} -> {route.dst}: {route.name}, {route.bytes} bytes"]
    for h in route.hops:
        lines.append(f"  {h}")
        for sender, sent in groupby(sorted(h.messages()), key=lambda m: m[0]):
            lines.append(f"    device {sender} sends " + ", ".join(f"{n} to {to}" for _, to, n in sent))
    return "\n".join(lines)


def hop(h: Hop) -> str:
    """Format a hop: source, destination, primitive, and bytes."""
    if h.src.devices == h.dst.devices and h.src.hierarchy == h.dst.hierarchy:
        text = f"{pretty(h.src.sbp)} -> {h.dst}"
    elif len(h.src.hierarchy) == len(h.dst.hierarchy) == 1:
        devices = f"{format_devices(h.src.devices)} to {format_devices(h.dst.devices)}"
        text = f"{pretty(h.src.sbp)} -> {pretty(h.dst.sbp)} on {devices}"
    else:
        text = f"{h.src} -> {h.dst}"
    return f"{text}: {h.name}, {h.bytes} bytes"


def explain_route(src: Layout, dst: Layout, spec: Spec, most: int = 6) -> str:
    """Format the route from `src` to `dst`, and the bytes that other routes would move.

    Args:
        most: maximum number of other routes to list, cheapest first.
    """
    best = route_of(src, dst, spec)
    a, b = src.plain, dst.plain
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
