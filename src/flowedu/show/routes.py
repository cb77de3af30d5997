"""Text of a route and of its hops."""
from __future__ import annotations

from itertools import groupby

from flowedu.core.sbp.boxing.algebra import Hop, Route
from flowedu.core.sbp.sbp import pretty
from flowedu.core.values.place import format_devices
from flowedu.show.device_groups import SINGLE, count_messages, describe_messages, make_rows, possible_groups


def describe(route: Route) -> str:
    """Format a route: its path, bytes, and messages. With many devices, messages are those between groups."""
    devices = sorted({d for h in route.hops for at in (h.src, h.dst) for d in at.devices})
    rows = make_rows(devices, possible_groups(route)[0]) if len(devices) > SINGLE else []
    lines = [f"{route.src} -> {route.dst}: {route.name}, {route.bytes} bytes"]
    for h in route.hops:
        lines.append(f"  {h}")
        if rows:
            lines += [f"    {describe_messages(rows[p], rows[q], count, f'{nbytes:,} bytes')}"
                      for (p, q), (count, nbytes) in count_messages(h, rows).items()]
            continue
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
