"""Wrong answers in chapters/*/wrong: a right answer with a fault as a patch, or another algorithm as a file.

    # plans.aligned                         the law that finds it
    # against right/4.3_best_fit.py         without this line: against the library's answer
         for b in buffers:
    -        b.offset = rounded(end)
    +        b.offset = end

Lines begin as in any diff. `@@` separates hunks and has no line numbers, because they drift. The removed
lines of a hunk with the unchanged lines around them must occur exactly once in the right answer; otherwise
the patch does not apply.

    python -m flowedu_course.teach.wrong 4.3                                           the right answer, to start from
    python -m flowedu_course.teach.wrong 4.3 unrounded plans.aligned work/edited.py    writes wrong/4.3_unrounded.patch
    python -m flowedu_course.teach.wrong 4.3 unrounded                                 the answer that a patch makes
"""
from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from flowedu.errors import ArgumentError
from flowedu_course import course
from flowedu_course.teach import stubs
from flowedu_course.teach.commands import report_errors

PATCH, BETWEEN, AGAINST = ".patch", "@@", "against "
Change = tuple[int, int, int, int]      # first line and end in the old text, and in the new one
NOTE = {".py": "# ", ".pyx": "# ", ".cu": "// ", ".h": "// ", PATCH: "# "}


class Wrong(NamedTuple):
    """A wrong answer: its file, the law that must find it, and its text as a student would hand it in."""

    kept: Path
    law: str
    text: str
    ending: str

    @property
    def name(self) -> str:
        return self.kept.stem

    def put(self, folder: Path) -> Path:
        """Write the answer as a work file."""
        file = folder / (self.name + self.ending)
        file.write_text(self.text, encoding="utf-8")
        return file


def files(hole) -> list[Path]:
    """Return the files of a hole's wrong answers."""
    return sorted(p for p in (hole.folder / "wrong").glob(f"{hole.id}_*") if p.suffix in (hole.ending, PATCH))


def answers(hole) -> list[Wrong]:
    """Return a hole's wrong answers. Raises ArgumentError if a patch does not apply."""
    return [read(hole, file) for file in files(hole)]


def read(hole, file: Path) -> Wrong:
    """Read one wrong answer. Raises ArgumentError if its patch does not apply or names no right answer."""
    head, *rest = file.read_text(encoding="utf-8").splitlines()
    law = head.removeprefix(NOTE[file.suffix]).strip()
    if file.suffix == PATCH:
        where = rest.pop(0)[2 + len(AGAINST):].strip() if rest and rest[0].startswith("# " + AGAINST) else ""
        there = right(hole)
        if where not in there:
            raise ArgumentError(f"{file.name}:2: there is no right answer {where}",
                                expected=", ".join(filter(None, there)),
                                got=where, fix="delete this line to apply the patch to the library's code")
        rest = applied(there[where].splitlines(), rest, file.name, 3 if where else 2)
    return Wrong(file, law, "\n".join(rest) + "\n", hole.ending)


def right(hole) -> dict[str, str]:
    """Return the right answers that patches apply to: the library's under "", the others by name."""
    others = sorted((hole.folder / "right").glob(f"{hole.id}_*{hole.ending}"))
    return {"": stubs.library(hole), **{f"right/{file.name}": file.read_text(encoding="utf-8")
                                        for file in others}}


# ---- patches
def applied(lines: Sequence[str], patch: Sequence[str], name: str, first: int = 1) -> list[str]:
    """Return the lines with a patch applied.

    name and first: the patch's file, and the number of its first line there.

    Raises ArgumentError if a line begins with another sign, or if a hunk does not match exactly once.
    """
    hunks: list[list[tuple[int, str]]] = [[]]
    for number, line in enumerate(patch, first):
        if line == BETWEEN:
            hunks.append([])
        elif line[:1] not in ("", " ", "-", "+"):
            raise ArgumentError(f"{name}:{number}: a line of a patch begins with a space, - or +", got=line,
                                fix=f"put one before it; a line {BETWEEN} separates two hunks")
        else:
            hunks[-1].append((number, line or " "))            # editors strip trailing spaces
    places = []
    for hunk in hunks:
        old = [line[1:] for _, line in hunk if line[0] != "+"]
        at = ([i for i in range(len(lines) - len(old) + 1) if list(lines[i:i + len(old)]) == old] if old
              else [])
        if len(at) != 1:
            number, line = next((h for h in hunk if h[1][0] != "+"), (hunk or [(first, "")])[0])
            raise ArgumentError(f"{name}:{number}: this hunk does not apply: its old lines occur {len(at)} "
                                f"times in the right answer", expected="exactly once", got=line[1:].strip()
                                or "an empty line",
                                fix="make the patch again with python -m flowedu_course.teach.wrong, or "
                                "add lines around the change")
        places.append((at[0], at[0] + len(old), [line[1:] for _, line in hunk if line[0] != "-"], hunk[0][0]))
    out, last = [], 0
    for start, end, new, number in sorted(places):
        if start < last:
            raise ArgumentError(f"{name}:{number}: this hunk overlaps an earlier hunk",
                                got=lines[start].strip(), fix=f"join both hunks, without {BETWEEN}")
        out += [*lines[last:start], *new]
        last = end
    return [*out, *lines[last:]]


def make_patch(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the patch from `old` to `new`. Each hunk has just enough unchanged lines to be unique."""
    changes = [c[1:] for c in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
               if c[0] != "equal"]
    hunks: list[tuple[int, int]] = []              # ranges of `old` with context
    for start, end, _, _ in changes:
        start, end = _alone(old, start, end)
        while hunks and start <= hunks[-1][1]:     # adjacent hunks
            first, last = hunks.pop()
            start, end = min(first, start), max(last, end)
        hunks.append((start, end))

    patch: list[str] = []
    for old_start, old_end in hunks:
        new_start = old_start + _added_lines(c for c in changes if c[1] < old_start)
        new_end = old_end + _added_lines(c for c in changes if c[1] <= old_end)
        if patch:
            patch.append(BETWEEN)
        patch += _hunk_lines(old[old_start:old_end], new[new_start:new_end])
    return patch


def _added_lines(changes: Iterable[Change]) -> int:
    """Return the number of lines by which these changes make a text longer."""
    return sum((new_end - new_start) - (old_end - old_start)
               for old_start, old_end, new_start, new_end in changes)


def _hunk_lines(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """Return the lines of one hunk, with their signs. Unchanged empty lines have none."""
    lines: list[str] = []
    opcodes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    for kind, old_start, old_end, new_start, new_end in opcodes:
        if kind == "equal":
            lines += [" " + line if line else "" for line in old[old_start:old_end]]
        else:
            lines += ["-" + line for line in old[old_start:old_end]]
            lines += ["+" + line for line in new[new_start:new_end]]
    return lines


def _alone(lines: Sequence[str], start: int, end: int) -> tuple[int, int]:
    """Return the shortest range around these lines whose contents are unique."""
    for n in range(max(1, end - start), len(lines)):
        for at in range(max(0, end - n), min(start, len(lines) - n) + 1):
            part = lines[at:at + n]
            if sum(lines[i:i + n] == part for i in range(len(lines) - n + 1)) == 1:
                return at, at + n
    return 0, len(lines)


def shortest(hole, law: str, text: str) -> tuple[str, str]:
    """Return (file ending, text) of a wrong answer: the shortest patch, or the file if none is shorter."""
    best = [NOTE[hole.ending] + law, *text.splitlines()], hole.ending
    for where, own in right(hole).items():
        head = [f"# {law}", *[f"# {AGAINST}{where}"] * bool(where)]
        lines = head + make_patch(own.splitlines(), text.splitlines())
        best = min(best, (lines, PATCH), key=lambda b: len(b[0]))
    return best[1], "\n".join(best[0]) + "\n"


@report_errors
def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu_course.teach.wrong",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("exercise", help="the number of an exercise, such as 4.3")
    parser.add_argument("name", nargs="?", default="", help="a name for the mistake, such as all_rows")
    parser.add_argument("law", nargs="?", default="", help="the law that must reject it, as in chapter.toml")
    parser.add_argument("file", nargs="?", type=Path, help="the right answer, edited")
    options = parser.parse_args(arguments)
    hole = course.find(options.exercise)
    if options.file is None:
        print(_select_answer(hole, options.name), end="")
        return 0
    if options.law not in hole.laws:
        raise ArgumentError(f"{hole.id} has no law {options.law}", expected=", ".join(hole.laws),
                            got=options.law)
    ending, text = shortest(hole, options.law, options.file.read_text(encoding="utf-8"))
    kept = hole.folder / "wrong" / f"{hole.id}_{options.name}{ending}"
    kept.write_text(text, encoding="utf-8")
    print(f"{kept}: {len(text.splitlines())} lines; check that its law rejects it: "
          f"make authors-check EX={hole.id}")
    return 0


def _select_answer(hole, name: str) -> str:
    if not name:
        return right(hole)[""]
    by_name = {file.stem.partition("_")[2]: file for file in files(hole)}
    if name not in by_name:
        raise ArgumentError(f"{hole.id} has no wrong answer {name}", expected=", ".join(by_name), got=name)
    return read(hole, by_name[name]).text


if __name__ == "__main__":
    sys.exit(main())
