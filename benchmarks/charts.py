"""Charts of the results of run.py and scale.py. The same data give the same file, without a date."""
from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from kept import write

# Peers by the first word of their names, in colors that color-blind readers can distinguish. "NumPy" in rows
# of ranks in threads is not a peer: it only adds arrays in one thread.
PEERS = {"torch": ("PyTorch", "#ee4c2c"), "onnxruntime": ("onnxruntime", "#0072b2"),
         "OpenVINO": ("OpenVINO", "#8e5bd0"),
         "numpy": ("NumPy", "#2a9d5c"), "Pillow": ("Pillow by hand", "#b08900"),
         "mpi4py": ("mpi4py", "#00a0b0")}
KINDS = (("one op", r"^eager "), ("training", r"training step|LeNet.*devices|by hand in NumPy|autocast"),
         ("inference", r"inference"), ("pictures", r"^data"), ("between ranks", r"ranks"))
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
SIZE = re.compile(r" (\d+ (?:KB|MB))$")
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "flowedu", "font.size": 9, "font.family": "sans-serif",
         "axes.spines.top": False, "axes.spines.right": False}
LINES = ("#1f77b4", "#d95f02", "#2a9d5c", "#8e5bd0", "#b08900", "#c2185b", "#00a0b0", "#7f7f7f")


def drawn(figure, path: Path) -> Path:
    """Write the figure as SVG without a date and a creator."""
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return write(path, "\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n")


def version() -> str:
    """Return the version of matplotlib, because other versions may use another layout."""
    try:
        import matplotlib
    except ImportError:
        raise SystemExit(
            "a picture needs matplotlib: pip install matplotlib, or make -s .venv/stamps/plot") from None
    return f"matplotlib {matplotlib.__version__}"


# ---- ratios
class Point(NamedTuple):
    """A measured ratio. threads: 0 for rows of ranks. size: label of the point, or ""."""

    kind: str
    line: str
    size: str
    threads: int
    peer: str
    ratio: float


def known(peer: str) -> str:
    """Return the first word of the name if it is another library's, else "" for a variant of flowedu."""
    word = peer.replace(",", " ").split()[0]
    return word if word in PEERS else ""


def points(rows: dict) -> list[Point]:
    """Return a point for each row with a peer, ordered by kind: least time of the fastest peer / ours."""
    found = []
    for name, by in rows.items():
        kind = next((k for k, words in KINDS if re.search(words, name)), "other")
        size = SIZE.search(name)
        for threads, row in sorted(by.items(), key=lambda item: int(item[0])):
            peers = [p for p in row["times"] if known(p)]
            if peers:
                best = min(peers, key=lambda p: row["times"][p][0])
                found.append(Point(kind, SIZE.sub("", name), size[1] if size else "", int(threads),
                                   known(best), row["times"][best][0] / row["times"]["flowedu"][0]))
    order = [k for k, _ in KINDS] + ["other"]
    return sorted(found, key=lambda p: order.index(p.kind))


def draw_ratios(found: dict, path: Path) -> Path:
    """Draw one line per row: time of the fastest peer / our time. Sizes of one call share a line."""
    version()
    import matplotlib
    from matplotlib.figure import Figure

    lines: dict[tuple[str, str], list[Point]] = {}
    for p in points(found["rows"]):
        lines.setdefault((p.kind, p.line), []).append(p)
    if not lines:
        raise SystemExit(f"{path}: nothing to draw: no row that was measured has a peer")
    ratios = [p.ratio for mine in lines.values() for p in mine]
    kinds = len({kind for kind, _ in lines})
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10, 0.21 * (len(lines) + 1.2 * kinds) + 1.6), layout="constrained",
                        facecolor="white")
        axes = figure.subplots()
        _scale(axes, min(0.5, min(ratios) / 1.3), max(4, max(ratios) * 1.6))
        y, before, at = 0.0, None, []
        for (kind, _), mine in lines.items():
            if kind != before:
                axes.text(0, y, kind, fontweight="bold", va="center", ha="right",
                          transform=axes.get_yaxis_transform())
                y, before = y + 1.2, kind
            _dots(axes, y, mine)
            at.append(y)
            y += 1
        axes.set_yticks(at, [line for _, line in lines])
        axes.set_ylim(y, -1)
        used = {p.peer for mine in lines.values() for p in mine}
        _legend(axes, [PEERS[word] for word in PEERS if word in used])
        axes.set_title(_when(found), fontsize=8, color="#616e7c", loc="right")
        return drawn(figure, path)


def _scale(axes, low: float, high: float) -> None:
    """Set up a logarithmic axis of ratios with a line at 1 and a tint below 1, where flowedu is slower."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
    axes.set(xscale="log", xlim=(low, high), axisbelow=True)
    axes.axvspan(low, 1, color="#f6d4df", alpha=0.35, linewidth=0)
    axes.axvline(1, color="#1f2933", linewidth=1.2)
    axes.xaxis.set_major_locator(FixedLocator([t for t in TICKS if low <= t <= high]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axes.grid(axis="x", color="#e4e8ec", linewidth=0.7)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("the fastest peer's time / ours (right of 1: flowedu is faster); filled: 2 threads or "
                    "ranks, open: 1")


def _dots(axes, y: float, mine: list[Point]) -> None:
    """Draw the points of a line and the ratios as text: for each size, or with the most threads."""
    low, high = min(p.ratio for p in mine), max(p.ratio for p in mine)
    axes.hlines(y, min(1, low), max(1, high), color="#c9d1d9", linewidth=1, zorder=1)
    for p in mine:
        color = PEERS[p.peer][1]
        inside = "white" if p.threads == 1 else color
        axes.plot(p.ratio, y, "o", markersize=6, color=color, markerfacecolor=inside, zorder=2)
    if mine[0].size:
        said = ", ".join(f"{p.size} {p.ratio:.2g}" for p in mine)
    else:
        said = f"{max(mine, key=lambda p: p.threads).ratio:.2f}"
    left = high < 1 and not mine[0].size                        # else it crosses the line at 1
    axes.annotate(said, (low if left else high, y), (-7 if left else 7, 0), textcoords="offset points",
                  va="center", ha="right" if left else "left", fontsize=7.5, color="#3d4852")


def _legend(axes, peers: Iterable[tuple[str, str]]) -> None:
    from matplotlib.lines import Line2D
    marks = [Line2D([], [], marker="o", linestyle="", color=color, label=name) for name, color in peers]
    axes.legend(handles=marks, title="fastest peer", loc="upper right", frameon=True, edgecolor="#c9d1d9",
                fontsize=8)


def _when(found: dict) -> str:
    dates = sorted({row["date"] for by in found["rows"].values() for row in by.values()})
    quick = any(row["quick"] for by in found["rows"].values() for row in by.values())
    days = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    return f"{found['machine']}, {days}" + (", few rounds (--quick)" if quick else "")


# ---- growth with a size
def draw_scale(found: dict, path: Path) -> Path:
    """Draw a plot for each kind of size with all its curves. Rows with many quantities have their own."""
    version()
    import matplotlib
    from matplotlib.figure import Figure

    axes_of: dict[tuple[str, bool], list[dict]] = {}
    many = Counter((c["axis"], c["row"]) for c in found["curves"])
    for curve in found["curves"]:
        key = curve["axis"], curve["row"]
        axes_of.setdefault((": ".join(key) if many[key] > 3 else key[0], curve["unit"] == "bytes"),
                           []).append(curve)
    kinds = list(dict.fromkeys(axis for axis, _ in axes_of))
    with matplotlib.rc_context({**STYLE, "font.size": 8}):
        rows = len(kinds) + bool(found.get("devices"))
        figure = Figure(figsize=(11, 3.1 * max(rows, 1)), layout="constrained", facecolor="white")
        for line, kind in zip(figure.subplots(max(rows, 1), 2, squeeze=False), [*kinds, "devices"]):
            if kind == "devices":
                _devices(line, found["devices"])
                continue
            for axes, bytes_ in zip(line, (False, True)):
                curves = axes_of.get((kind, bytes_), [])
                row = kind.partition(": ")[2]
                for color, curve in zip(LINES * 3, curves):
                    _curve(axes, curve, color, row)
                axes.set(xscale="log", yscale="log", xlabel=kind, ylabel="bytes" if bytes_ else "seconds")
                axes.set_visible(bool(curves))
                if curves:
                    axes.legend(fontsize=6, frameon=False)
                axes.grid(color="#e4e8ec", linewidth=0.6)
        return drawn(figure, path)


def _curve(axes, curve: dict, color: str, row: str) -> None:
    """Draw one curve. row: the row of the whole plot, or "" if the plot has several."""
    points = [(n, v) for n, v in zip(curve["sizes"], curve["values"]) if v > 0]
    grows = "" if curve["exponent"] is None else f": n^{curve['exponent']:.2f}"
    style = "o--" if curve["worse"] else "o-"
    label = curve["quantity"] if row else f"{curve['row']}, {curve['quantity']}"
    label += grows + (" (worse)" if curve["worse"] else "")
    if points:
        axes.plot(*zip(*points), style, color=color, markersize=3, linewidth=1, label=label)


def _devices(line, devices: dict) -> None:
    """Draw seconds and bytes over the number of devices: predictions as lines, measurements as crosses."""
    for axes, what in zip(line, ("seconds", "memory")):
        for color, (plan, by) in zip(LINES, devices["predicted"].items()):
            points = [(int(k), found[what]) for k, found in by.items()]
            axes.plot(*zip(*points), "o-", color=color, markersize=3, linewidth=1, label=plan)
            if plan in devices["measured"]:
                axes.plot(2, devices["measured"][plan][what], "x", color=color, markersize=6)
        axes.plot(1, devices["alone"][what], "kx", markersize=6, label="measured")
        axes.set(xscale="log", yscale="log", xlabel="devices", ylabel="seconds" if what == "seconds"
                 else "bytes")
        axes.grid(color="#e4e8ec", linewidth=0.6)
        axes.legend(fontsize=6, frameon=False)
