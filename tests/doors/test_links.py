"""Links on every page of the repository lead to existing files and headings."""
import os
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest

from flowedu_course import course
from flowedu_course.blocks import slug

ROOT = Path(__file__).parents[2]
TRACKED = subprocess.run(["git", "ls-files", "-z", "*.md"], cwd=ROOT, capture_output=True).stdout
PAGES = (sorted(ROOT / os.fsdecode(p) for p in TRACKED.split(b"\0") if p)
         or sorted(ROOT.glob("chapters/**/*.md")))
FENCED = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def headings(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return {slug(t) for t in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def broken(page: Path) -> list[str]:
    found = []
    for link in LINK.findall(FENCED.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"\w+:", link):
            continue
        name, _, anchor = link.partition("#")
        file = (page.parent / os.fsdecode(unquote_to_bytes(name))).resolve() if name else page
        if not file.exists() or anchor and file.suffix == ".md" and anchor not in headings(file):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    assert broken(page) == []


def test_broken_links_are_found(tmp_path):
    (tmp_path / "b.md").write_text("# One\n```\n# no heading\n```\n")
    (tmp_path / "a.md").write_text("[x](b.md) [x](b.md#one) [x](c.md) [x](b.md#two) [x](b.md#no-heading) "
                                   "`[x](d.md)`\n")
    assert broken(tmp_path / "a.md") == ["c.md", "b.md#two", "b.md#no-heading"]


def test_links_are_urls(tmp_path):
    """Escaped names are decoded; in CommonMark, a link ends at a space or an unpaired bracket."""
    (tmp_path / os.fsdecode("a b'ü).md".encode())).write_text("# One\n", encoding="utf-8")
    (tmp_path / "a.md").write_text("[x](a%20b%27%C3%BC%29.md#one) [x](a%20b.md)\n", encoding="utf-8")
    assert broken(tmp_path / "a.md") == ["a%20b.md"]


def plans() -> list[list[list[str]]]:
    """Return the rows of the two plans in the syllabus."""
    parts = re.split(r"^## ", (ROOT / "chapters/syllabus.md").read_text(encoding="utf-8"),
                     flags=re.MULTILINE)[1:3]
    found = [[r.split("|")[1:-1] for r in part.splitlines() if re.match(r"\| \d", r)] for part in parts]
    assert [len(rows) for rows in found] == [7, 14]
    return found


def chapters_of(row: list[str]) -> frozenset[int]:
    return frozenset(int(n) for n in re.findall(r"(?:^|\[|\s)(\d)(?=[:\]\s]|$)", row[1]))


def test_hours_are_those_of_the_list():
    """The hours of a chapter, summed over its weeks, match the list; the plan of 7 weeks leaves some out."""
    hours = {c.number: c.hours for c in course.chapters()}
    for rows, exactly in zip(plans(), (False, True)):
        for n in hours:
            weeks = [row for row in rows if n in chapters_of(row)]
            about = {m for row in weeks for m in chapters_of(row)}
            spent = sum(int(row[4]) for row in rows if chapters_of(row) & about)
            wanted = sum(hours[m] for m in about)
            assert (spent == wanted if exactly else 0.6 * wanted <= spent <= wanted
                    or not weeks), (n, spent, wanted)


def test_sections_that_the_syllabus_names_are_those_of_the_page():
    """Quoted section names (`to "Reading the plan"`) are headings of a page that the row links or of its
    chapter's README.
    """
    folders = {p.name[1]: p for p in (ROOT / "chapters").glob("0*_*")}
    lost = []
    for row in sum(plans(), []):
        text = " ".join(row)
        pages = [ROOT / "chapters" / link.partition("#")[0] for link in LINK.findall(text)]
        pages += [f / "README.md" for n, f in folders.items() if int(n) in chapters_of(row)]
        there = set().union(*map(headings, pages))
        lost += [(row[0], t) for t in re.findall(r'"([^"]*)"', text) if slug(t) not in there]
    assert lost == []
