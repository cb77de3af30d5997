"""Table of a graph's ops with the bytes that boxing moves for each."""
from __future__ import annotations

from flowedu.core.values.place import format_devices


def describe(inferred) -> str:
    """Format an Inference (distributed/graph/infer.py): one row per op, then the values boxed for it."""
    table = [("op", "devices", "signature", "bytes moved")]
    totals: dict[str, int] = {}
    for r in inferred.rows:
        if r.op == "(fetch)" and not r.bytes:
            continue
        table.append((f"{r.name} ({r.op})" if r.op != "(fetch)" else f"{r.name} (fetch)",
                      format_devices(r.devices), r.signature, f"{r.bytes:,}" if r.bytes else "-"))
        for b in r.boxed:
            for h in b.route.hops:
                totals[h.name] = totals.get(h.name, 0) + h.bytes
            if b.route.bytes:
                table.append((f"  {b.value.name}: {b.route.src} -> {b.route.dst}", "", b.route.name,
                              f"{b.route.bytes:,}"))
    widths = [max(len(line[i]) for line in table) for i in range(3)]
    lines = ["  ".join([*(c.ljust(w) for c, w in zip(line, widths)), line[3].rjust(12)]).rstrip()
             for line in table]
    summary = ", ".join(f"{name} {n:,}" for name, n in sorted(totals.items(), key=lambda t: -t[1]) if n)
    return "\n".join([f"{inferred.graph.name} on {len(inferred.everywhere.devices)} devices", *lines,
                      f"moved in one run: {inferred.bytes:,} bytes" + (f" ({summary})" if summary else "")])
