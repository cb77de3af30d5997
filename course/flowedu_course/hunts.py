"""Fault hunts: programs with one planted fault. An answer is the program with few changed lines.

Comments, empty lines, the notes at the top, and the part below `if __name__ == "__main__":` do not count.
"""
from __future__ import annotations

import difflib
import re

from flowedu_course.handout import NOTES
from flowedu_course.laws import Verdict, short

NOTES_OR_MAIN = re.compile(r'\A\s*""".*?"""|^if __name__ == .*', re.S | re.M)
SHOWN = 4                                          # changed lines in a report


def program_lines(ending: str, text: str) -> list[str]:
    """Return the lines of a program that count as changes if they differ."""
    pattern = NOTES_OR_MAIN if ending == ".py" else NOTES[ending]
    lines = [line.rstrip() for line in pattern.sub("", text).splitlines()]
    return [line for line in lines if line and not line.lstrip().startswith("#")]


def changed_lines(hole, text: str) -> list[str]:
    """Return the new lines of an answer, and "" for each line that was only removed."""
    handed_out = (hole.folder / hole.stub).read_text(encoding="utf-8")
    old, new = program_lines(hole.ending, handed_out), program_lines(hole.ending, text)
    changes: list[str] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            changes += [*new[c:d], *[""] * (b - a - (d - c))]
    return changes


def with_extra_line(hole) -> str:
    """Return the handed-out program with one more line, which has no effect."""
    text = (hole.folder / hole.stub).read_text(encoding="utf-8")
    if hole.ending == ".py":
        return text.replace("\nif __name__", "\nNOTHING = 0\nif __name__", 1)
    return text.replace("{\n", "{\n    int nothing = 0;\n", 1)


def judge_changes(hole, text: str) -> Verdict | None:
    """Return a verdict if no line has changed, or if too many have, else None."""
    changes = changed_lines(hole, text)
    if not changes:
        return Verdict("open")
    if len(changes) <= hole.lines:
        return None
    lines = [f"  changed         {short(line.strip()) or '(removed)'}" for line in changes[:SHOWN]]
    return Verdict("wrong", title=f"{len(changes)} lines changed; a repair changes at most {hole.lines}",
                   lines=lines)
