"""README.md is short, and its figures, commands, image, and terminal extract are true."""
import re
import subprocess
import sys
from pathlib import Path

import pytest

import flowedu as flow
from common import HANGS
from flowedu_course import course
from flowedu_course.teach import wrong

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh.md").read_text(encoding="utf-8")
MOST_LINES = 190
PACKAGE = ROOT / "src" / "flowedu"


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_the_first_page_is_short(page):
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_every_chapter_has_a_row_with_its_hours():
    for chapter in course.chapters():
        row, = re.findall(rf"^\| {chapter.number} \|.*\|$", README, re.MULTILINE)
        assert f"(chapters/{chapter.folder.name}/README.md)" in row
        assert f"| {chapter.hours} | `chapter-{chapter.number}` |" in row


def test_counts_of_exercises_and_milestones():
    chapters = course.chapters()
    exercises = sum(len(c.exercises) for c in chapters)
    assert set(map(int, re.findall(r"(\d+)\s+exercises", README))) == {exercises}
    hunts = sum(len(c.hunts) for c in chapters)
    assert set(map(int, re.findall(r"(\d+)\s+fault\s+hunts", README))) == {hunts}
    assert f"{hunts} 道找错练习" in CHINESE
    assert set(map(int, re.findall(r"(\d+)\s+milestones", README))) == {sum(c.milestone is not None
                                                                          for c in chapters)}


def test_the_map_names_folders():
    for path in re.findall(r"^\| ((?:`\w+/`(?:, )?)+) \|", README, re.MULTILINE):
        assert all((PACKAGE / name).is_dir() for name in re.findall(r"`(\w+/)`", path)), path


def test_the_terminal_extract_matches_the_output_of_check(tmp_path):
    hole = next(h for h in course.holes() if h.id == "4.3")
    answer = next(a for a in wrong.answers(hole) if a.name == "4.3_ends_meet")
    (tmp_path / "4.3_place.py").write_text(answer.text, encoding="utf-8")
    done = subprocess.run([sys.executable, "-m", "flowedu_course", "check", "4.3", "--work", str(tmp_path)],
                          cwd=ROOT, capture_output=True, encoding="utf-8", timeout=HANGS)
    extract = re.search(r"```text\n\$ make check EX=4\.3\n(.*?)```", README, re.DOTALL)[1]
    assert done.returncode == 1 and done.stdout == extract


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_speed_rows_are_those_of_the_speed_page():
    """Each ratio in README.md appears in the row of docs/speed.md whose name has the same words."""

    def words(name):
        return {*re.findall(r"[\w×-]+", name)} - {"training", "step", "inference"}

    table = re.search(r"\| \| fastest peer \| ratio \|\n\|[-|]+\|\n((?:\|.*\n)+)", README)[1]
    page = [cells(line) for line in (ROOT / "docs" / "speed.md").read_text(encoding="utf-8").splitlines()
            if "|" in line]
    rows = [cells(line) for line in table.splitlines()]
    assert len(rows) == 5
    for name, _, ratio in rows:
        row, = (r for r in page if words(r[0]) == words(name) and any(c.startswith(f"{ratio} (") for c in r))
        assert len(row) > 2


def test_the_image_is_drawn_by_the_library(tmp_path, world):
    world(4)
    devices = flow.placement("cpu", [0, 1, 2, 3])
    route = flow.boxing.route((8, 8), devices, flow.sbp.split(1), src=(devices, flow.sbp.partial_sum))
    route.draw(str(tmp_path / "drawn.svg"))
    drawn = (tmp_path / "drawn.svg").read_text(encoding="utf-8")
    assert drawn == (ROOT / "docs" / "pictures" / "reduce_scatter.svg").read_text(encoding="utf-8")
