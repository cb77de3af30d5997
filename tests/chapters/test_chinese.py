"""Chinese pages say what the English ones do: the same code, drawings, tables and headings, and each names the other."""
import re
from pathlib import Path

import pytest

from flowedu.learn.authors import slug

CHAPTERS = Path(__file__).parents[2] / "chapters"
PAGES = sorted(CHAPTERS.glob("*/*.zh.md"))
FIRST = ["01_blob/README", "02_ops/README", "02_ops/gradients", "03_layers/README",
         "04_job_functions/README", "05_nn_graph/README", "06_sbp/README",
         "07_tensor_buffer/README", "08_kernels/README"]                                # of these there is one


def english(page):
    return page.with_name(page.name.replace(".zh.md", ".md"))


def parts(page):
    """(blocks of code, drawings that stand indented, headings' levels, rows of tables, the text that is left)"""
    blocks, rest, inside = [], [], None
    for line in page.read_text(encoding="utf-8").splitlines():
        if inside is not None:
            inside.append(line)
            if line == "```":
                blocks.append("\n".join(inside))
                inside = None
        elif line.startswith("```"):
            inside = [line]
        else:
            rest.append(line)
    assert inside is None, f"{page}: a block has no end"
    drawn = [line for line in rest if line.startswith("    ")]
    levels = [len(m[1]) for line in rest if (m := re.match(r"(#+) ", line))]
    tables = [line.count("|") for line in rest if line.startswith("|")]
    return blocks, drawn, levels, tables, "\n".join(line for line in rest if not line.startswith("    "))


def anchors(page):
    return {slug(m) for m in re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)}


def test_the_chapters_are_there():
    assert {f"{name}.zh.md" for name in FIRST} <= {f"{p.parent.name}/{p.name}" for p in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_its_code_is_that_of_the_english_page(page):
    ours, theirs = parts(page), parts(english(page))
    assert ours[0] == theirs[0], "blocks of code differ"
    assert ours[1] == theirs[1], "drawings differ"
    assert ours[2] == theirs[2], "headings differ"
    assert ours[3] == theirs[3], "tables differ"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_it_says_as_much(page):
    """The same exercises, commands and names: a paragraph that was forgotten shows here. And it is Chinese."""
    ours, theirs = parts(page)[4], parts(english(page))[4]
    found = [set(re.findall(r"`[^`]+`", t.replace("\n> ", " ").replace("\n", " "))) for t in (ours, theirs)]
    assert found[0] == found[1]
    turns = ["\n".join(line for line in t.splitlines() if line.startswith("> ")) for t in (ours, theirs)]
    exercises = [re.findall(r"(?<![\d.])\d\.\d+(?![\d.])", t) for t in turns]
    assert exercises[0] == exercises[1] and exercises[0]
    prose = [p for p in re.split(r"\n\s*\n", ours) if not p.startswith(("|", "[English]"))]
    assert all(re.search("[\u4e00-\u9fff]", p) for p in prose if p.strip())
    assert not re.search(r"[\u4e00-\u9fff][,;:?!](\s|$)", ours), "a comma of the other alphabet"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_each_names_the_other(page):
    assert f"[English]({english(page).name})" in page.read_text(encoding="utf-8")
    assert f"[中文]({page.name})" in english(page).read_text(encoding="utf-8")
    for path in (page, english(page)):
        for target in re.findall(r"\]\(([^)\s]+)\)", parts(path)[4]):
            file, _, anchor = target.partition("#")
            there = path.parent / file if file else path
            assert "://" in target or there.exists(), f"{path}: {target}"
            assert not anchor or "://" in target or anchor in anchors(there), f"{path}: {target}"


def test_lines_are_not_too_long():
    for page in PAGES:
        assert max(len(line) for line in parts(page)[4].splitlines() if not line.startswith("|")) <= 124
