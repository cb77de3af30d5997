"""Chinese pages match the English ones: they have the same code, drawings, tables, headings, and links, each
links the other, and none is older than its English page except those in LAG.

A Chinese page ends with the fingerprint of the English text from which it was made. A change of the English
text needs a change of the Chinese text and the new fingerprint, which the failure prints, or an entry in LAG
for a later translation.
"""
import re
from collections import Counter
from hashlib import sha256
from pathlib import Path

import pytest

from flowedu_course.blocks import slug

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("chapters/*/*.zh.md")), *sorted(ROOT.glob("*.zh.md"))]
FIRST = ["01_blob/README", "02_ops/README", "02_ops/gradients", "03_layers/README", "04_job_functions/README",
         # pages with a translation
         "05_nn_graph/README", "06_sbp/README", "07_tensor_buffer/README", "08_kernels/README"]
LAG: dict[str, str] = {}                           # {page from the root: text that its Chinese version lacks}
MOST = 3                                           # pages that may be outdated at one time
# {page from the root: {beginning of an English section or table: beginning of the Chinese one}} for parts
# that the Chinese page only links to; a section has its Chinese heading.
ENGLISH_ALONE: dict[str, dict[str, str]] = {}
MADE_FROM = re.compile(r"^<!-- made from ([0-9a-f]{12}) -->$", re.MULTILINE)


def name_of(page):
    return str(page.relative_to(ROOT))


def english(page):
    return page.with_name(page.name.replace(".zh.md", ".md"))


def without(text, beginnings):
    """Remove these sections (the text under a heading, not the heading) and tables from a page's text."""
    for start in filter(None, beginnings):
        body = r"(?:(?!## ).*\n)*" if start.startswith("## ") else r".*\n(?:\|.*\n)*"
        text, many = re.subn(rf"^({re.escape(start)}{chr(10) if start[0] == '#' else ''}){body}",
                             r"\1\n" if start[0] == "#" else "", text, flags=re.MULTILINE)
        assert many == 1, f"there is no one place that begins with {start}"
    return text


def parts(text):
    """Return (code blocks, indented drawings, heading levels, tables, remaining text) of a page."""
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
    """Return the parts of a page that are compared between the languages."""
    alone = ENGLISH_ALONE.get(name_of(page if page.name.endswith(".zh.md") else page.with_suffix(".zh.md")),
                              {})
    return without(page.read_text(encoding="utf-8"), alone.values() if page.name.endswith(".zh.md")
                   else alone)


def both(page):
    """Return the parts of the Chinese and of the English page."""
    return parts(read(page)), parts(read(english(page)))


def words(text):
    """Return the fingerprint of an English page's text, without code (compared in another test) and
    independent of line breaks.
    """
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^\[中文\]\(.*$", "", text, flags=re.MULTILINE)
    return sha256(" ".join(text.split()).encode()).hexdigest()[:12]


def anchors(page):
    return {slug(m) for m in re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)}


def links(text, page):
    """Count the links to each other page in either language."""
    found = (target.partition("#")[0].replace(".zh.md", ".md")
             for target in re.findall(r"\]\(([^)\s]+)\)", text))
    return Counter(file for file in found if file not in ("", english(page).name))


def test_every_chapter_has_a_chinese_page():
    assert {f"chapters/{name}.zh.md" for name in FIRST} <= {*map(name_of, PAGES)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_matches_the_english_page(page):
    ours, theirs = both(page)
    assert ours[0] == theirs[0], "blocks of code differ"
    assert ours[1] == theirs[1], "drawings differ"
    assert ours[2] == theirs[2], "headings differ"
    assert ours[3] == theirs[3], "tables differ: columns, or numbers"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_names_and_links_match_the_english_page(page):
    """The same exercises, commands, names, and links: this finds a paragraph that was left out. The text must
    be Chinese.
    """
    ours, theirs = (p[4] for p in both(page))
    found = [set(re.findall(r"`[^`]+`", t.replace("\n> ", " ").replace("\n", " "))) for t in (ours, theirs)]
    assert found[0] == found[1]
    assert links(ours, page) == links(theirs, page)
    turns = ["\n".join(line for line in t.splitlines() if line.startswith("> ")) for t in (ours, theirs)]
    exercises = [re.findall(r"(?<![\d.])\d\.\d+(?![\d.])", t) for t in turns]
    assert exercises[0] == exercises[1] and (exercises[0] or page.parent == ROOT)
    prose = [p for p in re.split(r"\n\s*\n", ours) if not p.startswith(("|", "[English]"))
             and p != "# flowedu"]
    assert all(re.search("[\u4e00-\u9fff]", p) for p in prose if p.strip())
    assert not re.search(r"[\u4e00-\u9fff][,;:?!](\s|$)", ours), "a comma of the other alphabet"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_fingerprint_is_current(page):
    said, now = MADE_FROM.findall(page.read_text(encoding="utf-8")), words(read(english(page)))
    if name_of(page) in LAG:
        assert said and said != [now], f"{name_of(page)} does not lag: take it out of LAG"
    else:
        assert said == [now], (f"the words of {name_of(english(page))} changed: change {page.name}, which "
                               f"then ends with\n<!-- made from {now} -->\nor name it in LAG")


def test_few_pages_are_outdated():
    assert len(LAG) <= MOST and {*LAG} <= {*map(name_of, PAGES)} and all(LAG.values())


def test_the_fingerprint_depends_on_words_only():
    """Code, line breaks, and the link to the translation do not change the fingerprint; any word, number, or
    table row does.
    """
    page = "# A page\n[中文](x.zh.md)\n\nTwo words\nand 3.\n\n```python\nx = 1\n```\n\n| a | 1 |\n"
    same = ("# A page\n\nTwo words and\n3.\n\n```python\ny\n```\n| a | 1 |", page.replace("x = 1", "x = 2"))
    assert {words(t) for t in same} == {words(page)}
    assert words(without(page + "## Z\n4\n\n## Y\n", ["## Z"])) == words(page + "## Z\n## Y\n")
    assert words(without(page, ["| a"])) == words(page.replace("| a | 1 |\n", ""))
    for a, b in (("Two", "Too"), ("3", "4"), ("| a | 1 |", ""), ("# A", "## A")):
        assert words(page.replace(a, b)) != words(page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_two_pages_link_each_other(page):
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
