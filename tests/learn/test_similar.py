"""Equal and nearly equal submissions: other names do not hide a copy, and own work is no pair."""
import csv
import os

import pytest

from flowedu_course import course
from flowedu_course.handout import stub
from flowedu_course.teach import similar, stubs

PLACE, SUMS, TURNS = course.find("4.3"), course.find("8.3"), course.find("6.11")
ONE = """
def place(buffers):
    \"\"\"Place the largest buffers first.\"\"\"
    placed, size = [], 0
    for b in sorted(buffers, key=lambda b: -b.nbytes):
        if not b.in_arena:
            continue
        at = 0
        for other in sorted(placed, key=lambda o: o.offset):      # the gaps, from the left
            if other.first <= b.last and b.first <= other.last and at + rounded(b.nbytes) > other.offset:
                at = max(at, other.offset + rounded(other.nbytes))
        b.offset = at
        placed.append(b)
        size = max(size, at + rounded(b.nbytes))
    return size
"""
RENAMED = ONE
for old, new in (("placed", "done"), ("other", "q"), ("at ", "where "), ("(at", "(where"),
                 (" at\n", " where\n"), ("# the gaps, from the left", ""),
                 ('"""Place the largest buffers first."""', "# mine")):
    RENAMED = RENAMED.replace(old, new)
CHANGED = RENAMED.replace("    return size", "    size = max(size, 0)\n    return size")
OWN = """
def place(buffers):
    free, top = [], 0
    events = sorted((b for b in buffers if b.in_arena), key=lambda b: (b.first, b.last))
    for b in events:
        need = rounded(b.nbytes)
        fits = [f for f in free if f[1] >= need and f[2] < b.first]
        if fits:
            best = min(fits, key=lambda f: f[1])
            free.remove(best)
            b.offset = best[0]
        else:
            b.offset, top = top, top + need
        free.append((b.offset, need, b.last))
    return top
"""


def pairs(tmp_path, texts, hole=PLACE, least=0.9):
    for name, text in texts.items():
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name / hole.file).write_text(text, encoding="utf-8")
    return {(p.first, p.second): (p.alike, p.reason) for p in similar.pairs(tmp_path, [hole], least)}


def test_copies_are_found_and_own_work_is_not(tmp_path):
    found = pairs(tmp_path, {"ann": ONE, "bob": RENAMED, "cem": CHANGED, "dan": OWN})
    assert {*found} == {("ann", "bob"), ("ann", "cem"), ("bob", "cem")}
    assert found["ann", "bob"] == (1.0, "the same code with other names or comments")
    assert 0.9 <= found["ann", "cem"][0] < 1 and found["ann", "cem"][1] == "nearly the same code"
    assert similar.pairs(tmp_path, [PLACE], 0.9)[0].alike == 1.0 and len(pairs(tmp_path, {}, least=1.0)) == 1


def test_the_same_text_and_one_file_are_named_even_if_short(tmp_path):
    text = "def place(buffers):\n    return 0\n"
    assert pairs(tmp_path, {"ann": text, "bob": text.replace("buffers", "b")}) == {}
    assert pairs(tmp_path, {"bob": text})["ann", "bob"] == (1.0, "the same text")
    (tmp_path / "cem").mkdir()
    os.link(tmp_path / "ann" / PLACE.file, tmp_path / "cem" / PLACE.file)
    assert pairs(tmp_path, {})["ann", "cem"] == (1.0, "one file (a hard link)")


@pytest.mark.parametrize("hole", [PLACE, TURNS, SUMS], ids=lambda h: h.id)
def test_the_initial_code_and_the_librarys_code_are_no_pairs(tmp_path, hole):
    own = stubs.library(hole)
    for text in (stub(hole), own):
        assert pairs(tmp_path, {"ann": text, "bob": text}, hole) == {}


def test_kernels_and_broken_files_are_compared_by_their_words(tmp_path):
    own = stubs.library(SUMS).replace("0", "1")
    renamed = own.replace("inner", "columns") + "\n# mine\n"
    assert pairs(tmp_path, {"ann": own, "bob": renamed}, SUMS) == {
        ("ann", "bob"): (1.0, "the same code with other names or comments")}
    broken = ONE.replace("for b in sorted(", "for b in sorted((")
    assert ("cem", "dan") in pairs(tmp_path, {"cem": broken, "dan": broken.replace("placed", "done") + "\n"})


def test_the_command_writes_a_table(tmp_path, capsys):
    pairs(tmp_path / "class", {"ann": ONE, "=bob": RENAMED, "dan": OWN})
    out = tmp_path / "similar.csv"
    assert similar.main([str(tmp_path / "class"), "4", "--out", str(out)]) == 0
    assert "4.3   100%  =bob  ann" in capsys.readouterr().out
    with out.open(newline="", encoding="utf-8") as f:
        rows = [*csv.DictReader(f)]
    assert [[*r.values()] for r in rows] == [["4.3", "'=bob", "ann", "1.00", similar.RENAMED]]
    assert similar.main([str(tmp_path / "nobody"), "4"]) == 2
    assert similar.main([str(tmp_path), "4", "--alike", "2"]) == 2
