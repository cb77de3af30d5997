"""GlobalLayout: the placement and sbp of a global tensor. Equal layouts are the same object."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.core import extensions
from flowedu.core.eager.dispatch import GlobalLayout
from flowedu.core.sbp.names import Sbps, as_sbp, of_text, placement, sbp
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.sbp import Layout, find_misfit
from flowedu.errors import layouts as errors

_known: dict[tuple, GlobalLayout] = {}


def remember(table: dict, key: tuple, value: Any) -> Any:
    """Store a value in a cache, which is cleared first if it is full, and return the value."""
    if len(table) >= 4096:
        table.clear()
    table[key] = value
    return value


def layout_of(p: placement, sbps: tuple[sbp, ...]) -> GlobalLayout:
    """Return the GlobalLayout of a checked placement and one checked sbp per axis of its grid."""
    key = (p, tuple(s.text for s in sbps))
    global_layout = _known.get(key)
    if global_layout is None:
        whole = None
        if set(key[1]) != {"B"}:
            whole = layout_of(p, (of_text("B"),) * len(sbps))
        layout = Layout(key[1], p.devices, tuple(p.hierarchy))
        global_layout = _known.setdefault(key, GlobalLayout(p, sbps, layout, whole))
    return global_layout


def with_texts(global_layout: GlobalLayout, texts: Sequence[str]) -> GlobalLayout:
    """Return the layout with the same placement and these SBP texts."""
    return layout_of(global_layout.placement, tuple(map(of_text, texts)))


def make_layout(p: placement, sbps: Sbps, shape: Sequence[int], what: str) -> GlobalLayout:
    """Check a user's placement and sbp for a logical shape, and return their GlobalLayout."""
    check_placement(p, what)
    sbps = as_sbp(sbps, len(p.hierarchy), what)
    check_fits(p, sbps, shape, what)
    return layout_of(p, sbps)


def check_placement(p: placement, what: str) -> None:
    if not isinstance(p, placement):
        raise errors.not_a_placement(what, p)
    if p.type == "cuda":
        extensions.rank_gpus.check(p, what)
    size = current().size
    if max(p.devices) >= size:
        raise errors.world_error(p, size)


def check_fits(p: placement, sbps: tuple[sbp, ...], shape: Sequence[int], what: str) -> None:
    """Raise an ArgumentError unless every split axis exists and every device gets elements."""
    misfit = find_misfit(tuple(s.text for s in sbps), shape, tuple(p.hierarchy), alone=True)
    if misfit is None:
        return
    axis, least, n = misfit
    if least is None:
        raise errors.axis_error(what, axis, shape, f"an axis of {tuple(shape)}", "flow.sbp.split(0)"
                                if shape else "flow.sbp.broadcast: the tensor has no axis")
    raise errors.short_axis(what, axis, n, least, shape, sbps)
