"""Wrong answers are stored as patches of right ones: each patch applies, and none is longer than the file it
produces.
"""
import random
import re
import shutil
from dataclasses import replace

import pytest

from common import few
from flowedu.errors import ArgumentError
from flowedu_course import authors, course, limits
from flowedu_course.runner import Runner
from flowedu_course.teach import wrong

HOLES = course.holes()
RIGHT = ["def f(x):", "    y = 0", "    for a in x:", "        y += a", "        y += 0", "    return y"]


# wrong answers of the course
def test_every_file_is_a_wrong_answer_of_one_hole():
    there = sorted(p for c in course.chapters() for p in c.folder.glob("wrong/*"))
    assert there == sorted(p for h in HOLES for p in wrong.files(h))
    assert all(re.fullmatch(r"\d\.h?\d+_[a-z0-9_]+", p.stem) for p in there)


@pytest.mark.parametrize("hole", HOLES, ids=lambda h: h.id)
def test_every_wrong_answer_is_stored_as_short_as_possible(hole):
    """Each applies, names a law of its exercise, differs from all right answers and from the others, and is
    stored as a whole file only if no patch is shorter.
    """
    right, seen = set(wrong.right(hole).values()), {}
    for answer in wrong.answers(hole):
        assert answer.law in hole.laws and answer.text not in right, answer.name
        assert seen.setdefault(answer.text, answer.name) == answer.name
        lines = answer.kept.read_text(encoding="utf-8").splitlines()
        assert (answer.kept.suffix != wrong.PATCH
                or len(lines) < len(answer.text.splitlines()) + 1), answer.name
        ending, text = wrong.shortest(hole, answer.law, answer.text)
        assert len(lines) <= len(text.splitlines()), f"{answer.kept.name} could be:\n{text}"


@pytest.mark.slow
@pytest.mark.parametrize("hole", few([h for h in HOLES if not h.is_compiled], lambda h: h.id in ("1.2", "2.8")),
                         ids=lambda h: h.id)
def test_every_wrong_answer_fails_for_another_seed(hole, tmp_path):
    """make check and a grade agree: fixed cases find a wrong answer, not only the cases that a seed draws."""
    for answer in wrong.answers(hole):
        verdict = limits.judged(hole, answer.put(tmp_path), course.HOME, seed=2027, seconds=30)
        assert (verdict.state, verdict.law) == ("wrong", answer.law), (answer.name, verdict)


# ---- applying
@pytest.mark.parametrize("patch, made", [
    (["-    y = 0", "+    y = 1"], {1: "    y = 1"}),
    (["         y += a", "-        y += 0"], {4: None}),
    (["+# first", " def f(x):"], {0: "# first\ndef f(x):"}),
    (["     return y", "", "+done"], None),            # an empty line belongs to the right answer
    (["-    y = 0", "@@", "-    return y", "+    return x"], {1: None, 5: "    return x"}),
    (["-    return y", "@@", "-    y = 0"], {1: None, 5: None}),
])
def test_a_patch_is_applied(patch, made):
    lines = [*RIGHT, ""] if made is None else RIGHT
    want = [*lines, "done"] if made is None else "\n".join(
        made.get(i, t) for i, t in enumerate(RIGHT) if made.get(i, t) is not None).split("\n")
    assert wrong.applied(lines, patch, "1.1_x.patch") == want and lines[:6] == RIGHT


@pytest.mark.parametrize("patch, words", [
    (["-    y = 2", "+    y = 1"], ("1.1_x.patch:2:", "occur 0 times", "exactly once", "y = 2")),
    (["-    y = 0 ", "+    y = 1"], ("occur 0 times",)),
    (["+    y = 1"], ("1.1_x.patch:2:", "occur 0 times")),
    (["-    y = 0", "@@"], ("occur 0 times",)),
    (["-    y = 0", "@@", "     y = 0", "-    for a in x:"], ("1.1_x.patch:4:", "an earlier hunk")),
    (["    y = 0", "+    y = 1"], ("1.1_x.patch:2:", "occur 0 times")),
    (["y = 0"], ("1.1_x.patch:2:", "begins with a space, - or +")),
    ([], ("1.1_x.patch:2:", "occur 0 times")),
])
def test_a_patch_that_does_not_apply_is_refused_with_its_line(patch, words):
    with pytest.raises(ArgumentError) as raised:
        wrong.applied(RIGHT, patch, "1.1_x.patch", 2)
    assert all(w in str(raised.value) for w in words), raised.value


def test_an_ambiguous_patch_is_refused():
    with pytest.raises(ArgumentError, match="1.1_x.patch:1:.*occur 2 times"):
        wrong.applied([*RIGHT, *RIGHT], ["-    y = 0"], "1.1_x.patch")


def test_generated_patches_apply():
    """Patches between random similar texts with many repeated lines apply."""
    rng = random.Random(0)
    for _ in range(500):
        old, new = ([rng.choice(("a", " b", "", "-", "@@")) for _ in range(rng.randint(1, 9))]
                    for _ in range(2))
        new = new if rng.random() < 0.3 else [*old[:3], *new[:2], *old[4:]]
        if old != new:
            assert wrong.applied(old, wrong.make_patch(old, new), "x") == new, (old, new)


# the author's tool and its messages
@pytest.fixture
def strides(tmp_path, monkeypatch):
    """Set up the first exercise in a separate folder."""
    hole = replace(course.find("1.1"), folder=tmp_path / "01_blob")
    shutil.copytree(course.find("1.1").folder, hole.folder)
    monkeypatch.setattr(course, "find", lambda id: hole)
    return hole


def test_an_author_edits_the_right_answer(strides, tmp_path, capsys):
    assert wrong.main(["1.1"]) == 0
    text = capsys.readouterr().out
    edited = tmp_path / "edited.py"
    edited.write_text(text.replace("step *= max(n, 1)", "step *= n"), encoding="utf-8")
    assert wrong.main(["1.1", "no_floor", "values.as_numpy", str(edited)]) == 0
    kept = strides.folder / "wrong" / "1.1_no_floor.patch"
    assert "make authors-check EX=1.1" in capsys.readouterr().out and kept in wrong.files(strides)
    assert [t[:1] for t in kept.read_text(encoding="utf-8").splitlines()] == ["#", "-", "+"]
    assert (wrong.main(["1.1", "no_floor"]) == 0 and capsys.readouterr().out
            == edited.read_text(encoding="utf-8"))
    edited.write_text("def row_major(shape):\n    return shape\n")                  # another algorithm
    assert wrong.main(["1.1", "same", "values.as_numpy", str(edited)]) == 0
    same = (strides.folder / "wrong" / "1.1_same.py").read_text("utf-8")
    assert same == "# values.as_numpy\n" + edited.read_text("utf-8")
    for arguments, words in ((["1.1", "x", "values.no", str(edited)], "has no law values.no"),
                             (["1.1", "nothing"], "has no wrong answer nothing"),
                             (["1.1", "x", "values.as_numpy", "nowhere.py"], "nowhere.py")):
        assert wrong.main(arguments) == 2 and words in capsys.readouterr().err


def test_authors_check_names_patches_that_no_longer_apply(strides, tmp_path):
    for kept in wrong.files(strides):
        kept.unlink()
    folder = strides.folder / "wrong"
    (folder / "1.1_drifted.patch").write_text("# values.as_numpy\n-    no such line\n+    another\n")
    (folder / "1.1_lost.patch").write_text("# values.as_numpy\n# against right/1.1_gone.py\n-    a\n")
    (folder / "1.1_alive.py").write_text("# values.as_numpy\n" + wrong.right(strides)[""], encoding="utf-8")
    found = "\n".join(authors.problems(strides, Runner(course.HOME, tmp_path / "work"), cases=5))
    assert ("1.1_drifted.patch:2: this hunk does not apply" in found
            and "1.1_lost.patch:2: there is no right answer" in found)
    assert "1.1_alive.py should fail values.as_numpy; got: right, law: none" in found
