"""`make syllabus`: for any number of weeks, links and headings exist, hours match `make list`, and nothing is
due before its prerequisites and its section.
"""
import dataclasses
import os
import re

import pytest
from test_links import broken

from common import few
from flowedu.errors import ArgumentError
from flowedu_course import course
from flowedu_course.teach import syllabus

CHAPTERS = course.chapters()
WEEKS = few(range(1, syllabus.MOST + 1), lambda n: n in (1, 7, 14, 16))


def in_minutes(text: str) -> int:
    hours, minutes = re.fullmatch(r"(?:(\d+) h )?(\d+) min", text).groups()
    return 60 * int(hours or 0) + int(minutes)


@pytest.mark.parametrize("many", WEEKS)
def test_links_hours_and_points(many, tmp_path):
    page = tmp_path / "some where" / "syllabus.md"
    page.parent.mkdir()
    page.write_text(text := syllabus.write_page(CHAPTERS, many, page.parent), encoding="utf-8")
    assert text.count("](") > 60 and broken(page) == []
    total = 60 * sum(c.hours for c in CHAPTERS)
    weekly = [in_minutes(t) for t in re.findall(r"^## Week \d+: (.*)$", text, re.MULTILINE)]
    assert len(weekly) == many and sum(weekly) == total
    rows = [line.split(" | ") for line in text.splitlines() if re.match(r"\| \d+\.\d+ ", line)]
    assert sorted(row[0].split()[1] for row in rows) == sorted(h.id for c in CHAPTERS for h in c.exercises)
    reading = sum(in_minutes(t) for t in re.findall(r"^- read .*\(([^()]*)\)$", text, re.MULTILINE))
    assert (reading + sum(int(row[1]) for row in rows) == total and sum(int(row[2]) for row in rows) == 100
            * len(CHAPTERS))
    assert all(abs(n - total / many) <= 90 for n in weekly)
    assert all(f"`make milestone-{c.number}`" in text for c in CHAPTERS)


@pytest.mark.parametrize("name", ["a b'ü", "50%20", "a(b", "a)b", "a#b?", "[a]", "日本"])
def test_links_to_a_folder_of_any_name(name, tmp_path):
    page = tmp_path / os.fsdecode(name.encode()) / "page.md"
    page.parent.mkdir()
    page.write_text("# One\n", encoding="utf-8")
    start = tmp_path / "start.md"
    start.write_text(syllabus.link(page, "x", tmp_path, "one") + syllabus.link(page, "y", tmp_path),
                     encoding="utf-8")
    assert len(re.findall(r"\]\(", start.read_text(encoding="utf-8"))) == 2 and broken(start) == []
    page.unlink()
    assert len(broken(start)) == 2


@pytest.mark.parametrize("many", WEEKS)
def test_nothing_is_due_before_its_prerequisites(many):
    rows = [item for week in syllabus.weeks(CHAPTERS, many) for item in week]
    done, read = set(), set()
    for item in rows:
        if isinstance(item, course.Hole):
            assert set(item.needs) <= done and syllabus._read(item) in read, item.id
            done.add(item.id)
        elif isinstance(item, course.Chapter):
            assert set(item.milestone.needs) <= done
        else:
            read.add((item.page.name, syllabus.slug(item.title)))


def test_each_chapter_takes_the_hours_of_the_list():
    for c in CHAPTERS:
        rows = list(syllabus.items(c))
        assert sum(map(syllabus.minutes, rows)) == 60 * c.hours and min(map(syllabus.minutes, rows)) >= 0
        pages, further = syllabus.pages(c)
        assert pages[0].name == "README.md" and not {*pages} & {*further}
        assert {*pages, *further} == {p for p in c.folder.glob("*.md") if ".zh." not in p.name}


def test_impossible_plans_are_refused():
    first = CHAPTERS[0]
    for many in (0, 17):
        with pytest.raises(ArgumentError, match=f"{many} weeks"):
            syllabus.weeks(CHAPTERS, many)
    short = dataclasses.replace(first, hours=1)
    with pytest.raises(ArgumentError, match="take longer"):
        list(syllabus.items(short))
    circle = [dataclasses.replace(first.holes[0], needs=("1.2",)),
              dataclasses.replace(first.holes[1], needs=("1.1",))]
    with pytest.raises(ArgumentError, match="is missing, or its needs form a cycle"):
        list(syllabus.items(dataclasses.replace(first, holes=circle)))


def test_the_command_prints_and_writes_the_plan(tmp_path, capsys):
    out = tmp_path / "deep" / "plan.md"
    assert syllabus.main(["3", "1-2", "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert capsys.readouterr().out == text and "14 exercises in 3 weeks" in text and "4.3" not in text
    # Prerequisites are listed, even of chapters that were not requested.
    assert syllabus.main(["2", "4", "--out", str(out)]) == 0 and "(1.1)" in out.read_text("utf-8")
    capsys.readouterr()
    for arguments, said in ((["x"], "WEEKS"), (["17"], "1 to 16"), (["7", "99"], "no chapter 99"),
                            (["7", "--out", str(tmp_path)], "OUT=")):
        assert syllabus.main(arguments) == 2 and said in capsys.readouterr().err
