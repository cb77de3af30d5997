"""Figures of chapter 6: the routes of boxing.md, and the bar charts of plans.md."""
from collections.abc import Sequence
from pathlib import Path

import flowedu as flow


def routes() -> dict:
    """Return {file name: Route}. This needs four devices."""
    split, broadcast, partial = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
    two, three = flow.placement("cpu", [0, 1]), flow.placement("cpu", [1, 2, 3])
    grid = flow.placement("cpu", [[0, 1], [2, 3]])
    return {
        "all_to_all.svg": flow.boxing.route((6, 6), src=(two, split(0)), sbp=split(1)),
        "all_reduce.svg": flow.boxing.route((6, 6), src=(two, partial), sbp=broadcast),
        "grid.svg": flow.boxing.route((8, 8), src=(grid, (partial, split(0))), sbp=(split(0), broadcast)),
        "other_devices.svg": flow.boxing.route((6, 6), three, split(0), src=(two, partial)),
    }


def draw_routes(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, route in routes().items():
        route.draw(folder / name)
    return [folder / name for name in routes()]


PARTS = {"parameters": "#2a6f97", "states": "#61a5c2", "activations": "#f4a259"}


def draw_plans(found: Sequence[tuple], path: Path) -> Path:
    """Draw two bar charts for each network, next to each other.

    Args:
        found: (title, names of plans, bytes in a step, {part: bytes} of the fullest device) of each network.
    """
    import matplotlib
    from matplotlib.figure import Figure

    style = {"svg.fonttype": "none", "svg.hashsalt": "chapter 6", "font.size": 10,
             "font.family": "sans-serif"}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(10, 3.4 * len(found)), layout="constrained", facecolor="white")
        lines = figure.subplots(len(found), 2, squeeze=False)
        for (left, right), (title, names, moved, memory) in zip(lines, found):
            at = range(len(names))
            bars = left.barh(at, [n / 1e6 for n in moved], color="#7a5195")
            left.bar_label(bars, [f"{n / 1e6:.2f}" for n in moved], padding=3)
            left.set(title="MB moved in a step", yticks=at, yticklabels=names)
            left.invert_yaxis()
            start = [0.0] * len(names)
            for part, color in PARTS.items():
                sizes = [m[part] / 1e6 for m in memory]
                bars = right.barh(at, sizes, left=start, color=color, label=part)
                start = [a + b for a, b in zip(start, sizes)]
            right.bar_label(bars, [f"{n:.2f}" for n in start], padding=3)
            right.set(title="MB on the fullest device", yticks=at, yticklabels=[""] * len(names))
            right.invert_yaxis()
            for axes in (left, right):
                axes.margins(x=0.2)
                axes.xaxis.set_visible(False)                # the bars have labels
                axes.spines[["top", "right", "bottom"]].set_visible(False)
            left.set_ylabel(title.split(" (")[0].partition(" on ")[0], fontweight="bold")
        lines[0, 1].legend(loc="lower right", frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None, "Creator": None})
    return path
