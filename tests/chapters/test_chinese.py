"""Chinese pages say what the English ones do: the same code, drawings, tables, headings and links, each names the other, and
none is older than its English page but those that LAG lists.

A Chinese page ends with the fingerprint of the English words it was made from. Who changes those words changes the Chinese,
too, and the fingerprint (the failure says which); or names the page in LAG, for somebody who writes Chinese.
"""
import re
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from flowedu.learn.authors import slug

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("chapters/*/*.zh.md")), *sorted(ROOT.glob("*.zh.md"))]
FIRST = ["01_blob/README", "02_ops/README", "02_ops/gradients", "03_layers/README", "04_job_functions/README",
         "05_nn_graph/README", "06_sbp/README", "07_tensor_buffer/README", "08_kernels/README"]     # of these there is one
LAG: dict[str, str] = {}                           # {page from the root: what its Chinese does not say yet}
MOST = 3                                           # pages that may lag at a time
ENGLISH_ALONE: dict[str, set[int]] = {}            # {page from the root: numbers of its tables that Chinese only links to}
MADE_FROM = re.compile(r"^<!-- made from ([0-9a-f]{12}) -->$", re.MULTILINE)


def name_of(page):
    return str(page.relative_to(ROOT))


def english(page):
    return page.with_name(page.name.replace(".zh.md", ".md"))


def parts(page, without=()):
    """(blocks of code, drawings that stand indented, headings' levels, tables, the text that is left). without: numbers of
    tables that are left out."""
    blocks, rest, inside = [], [], None
    for line in MADE_FROM.sub("", page.read_text(encoding="utf-8")).splitlines():
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
    text, tables = "\n".join(line for line in rest if not line.startswith("    ")) + "\n", []
    for number, table in enumerate(re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)):
        if number in without:
            text = text.replace(table, "")
        else:
            tables.append([(row.count("|"), sorted(re.findall(r"\d+(?:[.,]\d+)*", row))) for row in table.splitlines()])
    return blocks, drawn, levels, tables, text


def both(page):
    """The parts of the Chinese and of the English page."""
    return parts(page), parts(english(page), ENGLISH_ALONE.get(name_of(page), ()))


def words(text):
    """An English page's own, as a fingerprint: without code, which another test compares, and however lines end."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^\[中文\]\(.*$", "", text, flags=re.MULTILINE)
    return sha256(" ".join(text.split()).encode()).hexdigest()[:12]


def anchors(page):
    return {slug(m) for m in re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)}


def links(text):
    """How often each file is linked to, in whichever language; not the links between languages."""
    found = re.findall(r"\[([^\]]*)\]\(([^)\s]+)\)", text)
    return Counter(target.partition("#")[0].replace(".zh.md", ".md") for said, target in found if said not in ("English", "中文"))


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
    assert links(ours) == links(theirs)
    turns = ["\n".join(line for line in t.splitlines() if line.startswith("> ")) for t in (ours, theirs)]
    exercises = [re.findall(r"(?<![\d.])\d\.\d+(?![\d.])", t) for t in turns]
    assert exercises[0] == exercises[1] and (exercises[0] or page.parent == ROOT)
    prose = [p for p in re.split(r"\n\s*\n", ours) if not p.startswith(("|", "[English]"))]
    assert all(re.search("[\u4e00-\u9fff]", p) for p in prose if p.strip())
    assert not re.search(r"[\u4e00-\u9fff][,;:?!](\s|$)", ours), "a comma of the other alphabet"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_it_is_as_new_as_the_english_page(page):
    said, now = MADE_FROM.findall(page.read_text(encoding="utf-8")), words(english(page).read_text(encoding="utf-8"))
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
    for a, b in (("Two", "Too"), ("3", "4"), ("| a | 1 |", ""), ("# A", "## A")):
        assert words(page.replace(a, b)) != words(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
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
