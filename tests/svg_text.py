"""Positions of the texts in an SVG file of flowedu, measured with DejaVu Sans as in a browser."""
import re
import xml.etree.ElementTree as ElementTree
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

SVG = "{http://www.w3.org/2000/svg}"


class Text(NamedTuple):
    text: str
    left: float
    top: float
    right: float
    bottom: float


@cache
def font(mono: bool):
    """Return DejaVu Sans, or its monospaced version, at 100 pixels."""
    import matplotlib
    from PIL import ImageFont
    name = "DejaVuSansMono.ttf" if mono else "DejaVuSans.ttf"
    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), 100)


def texts(root: ElementTree.Element) -> list[Text]:
    """Return all texts. A CSS rule of a class has the size as `font: 600 13px ...` or `font-size: 13px`."""
    sizes = {name: float(size) for rule in root.iter(SVG + "style")
             for name, size in re.findall(r"\.([\w-]+) *\{[^}]*?font[^}]*?([\d.]+)px", rule.text or "")}
    usual = re.search(r"text *\{[^}]*?font[^}]*?([\d.]+)px", "".join(rule.text or ""
                                                                     for rule in root.iter(SVG + "style")))
    found = []
    for e in root.iter(SVG + "text"):
        size = float(e.get("font-size") or sizes.get(e.get("class")) or (usual[1] if usual else 16))
        width = font("mono" in (e.get("font-family") or "")).getlength(e.text or "") * size / 100
        x, y = float(e.get("x")), float(e.get("y"))
        left = x - width * {"middle": 0.5, "end": 1}.get(e.get("text-anchor"), 0)
        if width:
            found.append(Text(e.text, left, y - 0.72 * size, left + width, y + 0.1 * size))
    return found


def misplaced(picture: Path | ElementTree.Element) -> list[str]:
    """Describe texts that leave the page or overlap. Returns [] for files of matplotlib."""
    root = ElementTree.parse(picture).getroot() if isinstance(picture, Path) else picture
    if not root.get("font-family"):
        return []
    _, _, w, h = map(float, root.get("viewBox").split())
    found = texts(root)
    bad = [f"leaves the page: {t}" for t in found if t.left < 0 or t.top < 0 or t.right > w or t.bottom > h]
    found.sort(key=lambda t: t.top)
    rows: list[list[Text]] = []
    for t in found:                                     # compare only close texts: large files have thousands
        if not rows or t.top > rows[-1][0].top + 30:
            rows.append([])
        rows[-1].append(t)
    near = [row + following for row, following in zip(rows, [*rows[1:], []])]
    bad += sorted({f"on each other: {a} {b}" for row in near for a, b in combinations(row, 2)
                   if min(a.right, b.right) > max(a.left, b.left) + 1
                   and min(a.bottom, b.bottom) > max(a.top, b.top) + 1})
    return bad
