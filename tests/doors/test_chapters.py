"""A chapter as users run it: all its pages in one process, in both orders, and its demo."""
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import flowedu as flow
from common import HANGS
from flowedu_course.blocks import pages
from svg_text import misplaced

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted(p.parent for p in ROOT.glob("chapters/*/README.md"))
SHORT = ("02_ops",)                                                # demos shorter than 2 s
QUICK = ("01_blob", "03_layers", "07_tensor_buffer")               # lessons that take a few seconds
CUDA = "08_kernels"  # its demo is tested in tests/cuda/test_chapter8.py


def python(*arguments, cwd: Path, told: str = "") -> str:
    """Return the output of a program that succeeds and warns of nothing except the lines in `told`."""
    there = {**os.environ, "FLOWEDU_NUM_THREADS": "1", "PYTHONPATH": str(Path(flow.__file__).parents[1])}
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True,
                          encoding="utf-8", timeout=HANGS, cwd=cwd,
                          env=there)
    complaints = [line for line in done.stderr.splitlines() if line not in told]
    assert done.returncode == 0 and not complaints, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("chapter", [
    pytest.param(c, id=c.name, marks=[] if c.name in QUICK else [pytest.mark.slow]) for c in CHAPTERS])
def test_pages_of_a_chapter_run_in_either_order(chapter, tmp_path):
    """Run the pages in both orders in one process: no page depends on the state another page leaves."""
    found = pages(chapter)
    text = "".join(p.read_text(encoding="utf-8") for p in found)
    for asked, order in (([chapter], found), (found[::-1], found[::-1])):
        said = python("-m", "flowedu_course.lesson", *asked, cwd=tmp_path, told=text)
        assert re.findall(r"^(.+\.md): \d+ code blocks ran$", said, re.MULTILINE) == [str(p) for p in order]
    for picture in (tmp_path / "build").rglob("*.svg"):
        assert not misplaced(picture), picture


def not_blank(picture: Path) -> bool:
    if picture.suffix == ".svg":
        return sum(e.tag.endswith(("}rect", "}path", "}text"))
                   for e in ElementTree.parse(picture).getroot().iter()) > 10
    import matplotlib.image
    pixels = matplotlib.image.imread(picture)
    return min(pixels.shape[:2]) > 100 and pixels[..., :3].std() > 0.05


@pytest.mark.parametrize("chapter", [
    pytest.param(c, id=c.name, marks=[] if c.name in SHORT else [pytest.mark.slow]) for c in CHAPTERS
    if c.name != CUDA])
def test_a_demo_writes_the_images_that_it_names(chapter, tmp_path):
    demo = chapter / "demo.py"
    small = ["--quick", "--threads", "1"] if '"--quick"' in demo.read_text(encoding="utf-8") else []
    said = python(demo, *small, "--out", tmp_path / "out", cwd=tmp_path)
    assert len(said.splitlines()) >= 2
    named = {Path(p) for p in re.findall(r"[^\s,]+\.(?:svg|png)", said)}
    assert named and named >= {p for p in (tmp_path / "out").iterdir() if p.suffix in (".svg", ".png")
                               and not p.stem.endswith(("-all", "-parts"))}
    for picture in named:
        assert not_blank(picture), picture
        assert picture.suffix != ".svg" or not misplaced(picture), picture
