"""Report of the automatic choice, compared with the greedy one."""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from flowedu.core.sbp.sbp import pretty
from flowedu.distributed.auto.model import total_bytes


def describe(found, most: int = 20) -> str:
    """Return the totals of both choices, bytes by kind of message, and the variables and nodes that differ.

    The nodes are those with the largest difference in bytes.
    """
    greedy, best = found.greedy, found.best
    kinds = [_kinds(a.inferred) for a in (greedy, best)]
    names = sorted(kinds[0].keys() | kinds[1].keys(), key=lambda n: (-kinds[0][n] - kinds[1][n], n))
    how = "exactly" if found.exact else "in part"
    lines = [f"{found.unknowns} unknowns, solved {how}",
             *(f"{name}: {a.bytes:,} bytes, {a.work:,} of work done twice"
               for name, a in (("automatic", best), ("greedy", greedy))),
             *_columns([("bytes", "greedy", "automatic"),
                        *((n, f"{kinds[0][n]:,}", f"{kinds[1][n]:,}") for n in names),
                        ("all variables", *(f"{_variables(a):,}" for a in (greedy, best)))])]
    moved = [(v.name, pretty(greedy.sources[v].sbp), pretty(best.sources[v].sbp)) for v in found.moved]
    if moved:
        lines += ["what lies otherwise", *_columns([("", "greedy", "automatic"), *moved])]
    rows = [(a, b) for a, b in zip(greedy.inferred.rows, best.inferred.rows)
            if (a.reads, a.makes, a.bytes) != (b.reads, b.makes, b.bytes)]
    if rows:
        first = sorted(range(len(rows)), key=lambda i: (-abs(rows[i][0].bytes - rows[i][1].bytes), i))[:most]
        table = [(f"{a.name} ({a.op})", a.signature, f"{a.bytes:,}", b.signature, f"{b.bytes:,}")
                 for a, b in (rows[i] for i in sorted(first))]
        lines += ["what runs otherwise", *_columns([("", "greedy", "bytes", "automatic", "bytes"), *table])]
        if len(rows) > most:
            lines.append(f"  ... and {len(rows) - most} more")
    return "\n".join(lines)


def _kinds(inferred) -> Counter:
    """Return {kind of message: bytes}."""
    found: Counter = Counter()
    for r in inferred.rows:
        for b in r.boxed:
            for hop in b.route.hops:
                found[hop.name] += hop.bytes
    return Counter({n: k for n, k in found.items() if k})


def _variables(assignment) -> int:
    inferred = assignment.inferred
    return sum(total_bytes(v.spec, inferred.layout_of(v)) for v in inferred.graph.variables.values())


def _columns(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table)]
    return [("  " + "  ".join(c.rjust(w) if c.replace(",", "").isdigit() else c.ljust(w)
                              for c, w in zip(line, widths))).rstrip() for line in table]
