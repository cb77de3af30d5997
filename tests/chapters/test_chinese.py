"""Chinese pages say what the English ones do: the same code, drawings, tables, headings and links; each names the other;
none is older than its English page but those that LAG lists.

A Chinese page ends with the fingerprint of the English words it was made from. Who changes those words changes the Chinese,
too, and the fingerprint (the failure says which); or names the page in LAG, for somebody who writes Chinese.
"""
import re
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from flowedu.learn.blocks import slug

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("chapters/*/*.zh.md")), *sorted(ROOT.glob("*.zh.md"))]
FIRST = ["01_blob/README", "02_ops/README", "02_ops/gradients", "03_layers/README", "04_job_functions/README",
         "05_nn_graph/README", "06_sbp/README", "07_tensor_buffer/README", "08_kernels/README"]     # of these there is one
LAG: dict[str, str] = {}                           # {page from the root: what its Chinese does not say yet}
MOST = 3                                           # pages that may lag at a time
# {page from the root: sections and tables of the English page that the Chinese only links to, by how they begin; a section
# with its Chinese heading}
ENGLISH_ALONE: dict[str, dict[str, str]] = {}
MADE_FROM = re.compile(r"^<!-- made from ([0-9a-f]{12}) -->$", re.MULTILINE)


def name_of(page):
    return str(page.relative_to(ROOT))


def english(page):
    return page.with_name(page.name.replace(".zh.md", ".md"))


def without(text, beginnings):
    """A page's text without these sections (what is under a heading, which stays) and tables."""
    for start in filter(None, beginnings):
        body = r"(?:(?!## ).*\n)*" if start.startswith("## ") else r".*\n(?:\|.*\n)*"
        text, many = re.subn(rf"^({re.escape(start)}{chr(10) if start[0] == '#' else ''}){body}",
                             r"\1\n" if start[0] == "#" else "", text, flags=re.MULTILINE)
        assert many == 1, f"there is no one place that begins with {start}"
    return text


def parts(text):
    """(blocks of code, drawings that stand indented, headings' levels, tables, the text that is left) of a page's text."""
    blocks, rest, inside = [], [], None
    for line in MADE_FROM.sub("", text).splitlines():
        if inside is not None:
            inside.append(line)
            if line == "```":
                blocks.append("\n".join(inside))
                inside = None
        elif line.startswith("```"):
            inside = [line]
        else:
            rest.append(line)
    assert inside is None, "a block has no end"
    drawn = [line for line in rest if line.startswith("    ")]
    levels = [len(m[1]) for line in rest if (m := re.match(r"(#+) ", line))]
    text = "\n".join(line for line in rest if not line.startswith("    ")) + "\n"
    tables = [[(row.count("|"), sorted(re.findall(r"\d+(?:[.,]\d+)*", row))) for row in table.splitlines()]
              for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)]
    return blocks, drawn, levels, tables, text


def read(page):
    """What is compared of a page of either language."""
    alone = ENGLISH_ALONE.get(name_of(page if page.name.endswith(".zh.md") else page.with_suffix(".zh.md")), {})
    return without(page.read_text(encoding="utf-8"), alone.values() if page.name.endswith(".zh.md") else alone)


def both(page):
    """The parts of the Chinese and of the English page."""
    return parts(read(page)), parts(read(english(page)))


def words(text):
    """An English page's own, as a fingerprint: without code, which another test compares, and however lines end."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^\[中文\]\(.*$", "", text, flags=re.MULTILINE)
    return sha256(" ".join(text.split()).encode()).hexdigest()[:12]


def anchors(page):
    return {slug(m) for m in re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)}


def links(text, page):
    """How often each other page is linked to, in whichever language."""
    found = (target.partition("#")[0].replace(".zh.md", ".md") for target in re.findall(r"\]\(([^)\s]+)\)", text))
    return Counter(file for file in found if file not in ("", english(page).name))


def test_the_chapters_are_there():
    assert {f"chapters/{name}.zh.md" for name in FIRST} <= {*map(name_of, PAGES)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_its_code_is_that_of_the_english_page(page):
    ours, theirs = both(page)
    assert ours[0] == theirs[0], "blocks of code differ"
    assert ours[1] == theirs[1], "drawings differ"
    assert ours[2] == theirs[2], "headings differ"
    assert ours[3] == theirs[3], "tables differ: columns, or numbers"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_it_says_as_much(page):
    """The same exercises, commands, names and links: a paragraph that was forgotten shows here. And it is Chinese."""
    ours, theirs = (p[4] for p in both(page))
    found = [set(re.findall(r"`[^`]+`", t.replace("\n> ", " ").replace("\n", " "))) for t in (ours, theirs)]
    assert found[0] == found[1]
    assert links(ours, page) == links(theirs, page)
    turns = ["\n".join(line for line in t.splitlines() if line.startswith("> ")) for t in (ours, theirs)]
    exercises = [re.findall(r"(?<![\d.])\d\.\d+(?![\d.])", t) for t in turns]
    assert exercises[0] == exercises[1] and (exercises[0] or page.parent == ROOT)
    prose = [p for p in re.split(r"\n\s*\n", ours) if not p.startswith(("|", "[English]")) and p != "# flowedu"]
    assert all(re.search("[\u4e00-\u9fff]", p) for p in prose if p.strip())
    assert not re.search(r"[\u4e00-\u9fff][,;:?!](\s|$)", ours), "a comma of the other alphabet"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_it_is_as_new_as_the_english_page(page):
    said, now = MADE_FROM.findall(page.read_text(encoding="utf-8")), words(read(english(page)))
    if name_of(page) in LAG:
        assert said and said != [now], f"{name_of(page)} does not lag: take it out of LAG"
    else:
        assert said == [now], (f"the words of {name_of(english(page))} changed: change {page.name}, which then ends with\n"
                               f"<!-- made from {now} -->\nor name it in LAG")


def test_few_pages_lag():
    assert len(LAG) <= MOST and {*LAG} <= {*map(name_of, PAGES)} and all(LAG.values())


def test_words_are_what_counts():
    """Neither code, nor where lines end, nor the link to the translation; any word, number or row of a table."""
    page = "# A page\n[中文](x.zh.md)\n\nTwo words\nand 3.\n\n```python\nx = 1\n```\n\n| a | 1 |\n"
    same = ("# A page\n\nTwo words and\n3.\n\n```python\ny\n```\n| a | 1 |", page.replace("x = 1", "x = 2"))
    assert {words(t) for t in same} == {words(page)}
    assert words(without(page + "## Z\n4\n\n## Y\n", ["## Z"])) == words(page + "## Z\n## Y\n")
    assert words(without(page, ["| a"])) == words(page.replace("| a | 1 |\n", ""))
    for a, b in (("Two", "Too"), ("3", "4"), ("| a | 1 |", ""), ("# A", "## A")):
        assert words(page.replace(a, b)) != words(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_names_the_other(page):
    assert f"[English]({english(page).name})" in page.read_text(encoding="utf-8")
    assert f"[中文]({page.name})" in english(page).read_text(encoding="utf-8")
    for path in (page, english(page)):
        for target in re.findall(r"\]\(([^)\s]+)\)", parts(path.read_text(encoding="utf-8"))[4]):
            file, _, anchor = target.partition("#")
            there = path.parent / file if file else path
            assert "://" in target or there.exists(), f"{path}: {target}"
            assert not anchor or "://" in target or anchor in anchors(there), f"{path}: {target}"


def test_lines_are_not_too_long():
    for page in PAGES:
        assert max(len(line) for line in parts(read(page))[4].splitlines() if not line.startswith("|")) <= 124
