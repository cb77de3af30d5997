"""Lay: the placement and sbp of a global tensor, one object for each pair, so that equal ones are the same object."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowedu.core.eager.dispatch import Lay
from flowedu.core.sbp.names import as_sbp, of_text, placement, sbp, split, world_error
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.sbp import Layout, misfit
from flowedu.core.shelves import shelf
from flowedu.errors import ArgumentError, DTypeError

_known: dict[tuple, Lay] = {}


def kept(table: dict, key, value):
    """Enter what was worked out into a table that is asked again and again; a full one starts anew. Returns the value."""
    if len(table) >= 4096:
        table.clear()
    table[key] = value
    return value


def lay_of(p: placement, sbps: tuple[sbp, ...]) -> Lay:
    """The Lay of a placement and one sbp for each axis of its grid (both checked already)."""
    key = (p, tuple(s.text for s in sbps))
    lay = _known.get(key)
    if lay is None:
        whole = None
        if set(key[1]) != {"B"}:
            whole = lay_of(p, (of_text("B"),) * len(sbps))
        layout = Layout(key[1], p.devices, tuple(p.hierarchy))
        lay = _known.setdefault(key, Lay(p, sbps, layout, whole))
    return lay


def lay_at(layout: Layout) -> Lay:
    """The Lay whose layout this is."""
    ranks = np.array(layout.devices).reshape(layout.hierarchy).tolist()
    return lay_of(placement("cpu", ranks), tuple(map(of_text, layout.sbp)))


def with_texts(lay: Lay, texts: Sequence[str]) -> Lay:
    """The same placement with another sbp."""
    return lay_of(lay.placement, tuple(map(of_text, texts)))


def checked_lay(p, sbps, shape: Sequence[int], what: str) -> Lay:
    """The Lay a user asked for, for a tensor of this logical shape. Raises for what is no placement or sbp, for a rank the
    world does not have, an axis the shape does not have, and a split that would leave a device without elements."""
    check_placement(p, what)
    sbps = as_sbp(sbps, len(p.hierarchy), what)
    check_fits(p, sbps, shape, what)
    return lay_of(p, sbps)


def check_placement(p, what: str) -> None:
    if not isinstance(p, placement):
        raise DTypeError(f"{what}: placement is not a placement", expected="flow.placement(type, ranks)", got=repr(p),
                         fix='flow.placement("cpu", [0, 1])')
    if p.type == "cuda":
        shelf("GPUs of ranks").check(p, what)
    size = current().size
    if max(p.devices) >= size:
        raise world_error(p, size)


def check_fits(p: placement, sbps: tuple[sbp, ...], shape: Sequence[int], what: str) -> None:
    """Every split axis exists, and every device gets something."""
    found = misfit(tuple(s.text for s in sbps), shape, tuple(p.hierarchy), alone=True)
    if found is None:
        return
    axis, least, n = found
    if least is None:
        raise no_axis(what, axis, shape, f"an axis of {tuple(shape)}",
                      "flow.sbp.split(0)" if shape else "flow.sbp.broadcast: the tensor has no axis")
    raise ArgumentError(f"{what}: axis {axis} is too short to be split over {n} devices ({least} vs {n})",
                        expected=f"{n} elements or more", got=f"shape {tuple(shape)}, sbp {tuple(sbps)}",
                        fix="split another axis, or flow.sbp.broadcast")


def no_axis(what: str, axis: int, shape: Sequence[int], expected: str, fix: str = "flow.sbp.split(0)") -> ArgumentError:
    """A split of an axis that is not there."""
    return ArgumentError(f"{what}: Split axis out of range (expected to be in range of [0, {len(shape)}), but got {axis}!)",
                         expected=expected, got=repr(split(axis)), fix=fix)
