"""Readings and deadlines of each week: `make syllabus WEEKS=7 [CH=1-4] [OUT=build/syllabus.md]`.

    python -m flowedu_course.teach.syllabus 7 1-4 --out build/syllabus.md

`make list` shows the hours of a chapter. They are the minutes of its exercises plus the time for its pages,
which is shared out by length. Sections are in the order of the pages. Each exercise comes after its section
and after the exercises that it runs. The weeks are about equally long.
"""
from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from flowedu.errors import ArgumentError
from flowedu_course import course
from flowedu_course.blocks import slug
from flowedu_course.teach.commands import report_errors
from flowedu_course.teach.report import put
from flowedu_course.teach.submission import select_holes

MOST = 16                                          # weeks
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


class Section(NamedTuple):
    """A part of a page below a heading of level 2. The first section includes the text before it."""

    page: Path
    title: str
    words: int
    last: bool
    minutes: int = 0


def title(page: Path) -> str:
    """Return the heading of a page."""
    first = next(t for t in page.read_text(encoding="utf-8").splitlines() if t.startswith("# "))
    return first.removeprefix("# ")


def sections(page: Path) -> list[Section]:
    """Return the sections of a page in order; a page without headings is one section."""
    text = page.read_text(encoding="utf-8")
    # a comment is not a heading
    code = FENCED.sub(lambda m: " ".join("w" for _ in m[0].split()), text)
    intro, *parts = re.split(r"^## ", code, flags=re.MULTILINE)
    if not parts:
        return [Section(page, "", len(intro.split()), True)]
    result = [Section(page, p.partition("\n")[0].strip(), len(p.split()), n == len(parts))
              for n, p in enumerate(parts, 1)]
    return [result[0]._replace(words=result[0].words + len(intro.split())), *result[1:]]


def pages(chapter: course.Chapter) -> tuple[list[Path], list[Path]]:
    """Return (pages to read, optional pages), in order; pages of exercises are never optional."""
    named = list(dict.fromkeys(h.why.partition("#")[0] for h in chapter.exercises))
    all_pages = [p for p in sorted(chapter.folder.glob("*.md")) if not p.name.endswith(".zh.md")]
    second = lambda p: re.search(r"second reading", p.read_text(encoding="utf-8")[:600], re.IGNORECASE)
    first = [p for p in all_pages if p.name == "README.md" or p.name in named or not second(p)]
    place = {"README.md": -1, **{n: i for i, n in enumerate(named) if n != "README.md"}}
    return (sorted(first, key=lambda p: place.get(p.name, len(named))),
            [p for p in all_pages if p not in first])


def shared(minutes: int, words: Sequence[int]) -> list[int]:
    """Split `minutes` into integers in proportion to `words`."""
    ends = [round(minutes * sum(words[:i]) / max(sum(words), 1)) for i in range(len(words) + 1)]
    return [b - a for a, b in zip(ends, ends[1:])]


def items(chapter: course.Chapter) -> Iterator:
    """Yield sections and exercises, and at the end the chapter for its milestone.

    Raises ArgumentError if the exercises take longer than the chapter.
    """
    left = round(60 * chapter.hours) - sum(h.minutes for h in chapter.exercises)
    if left < 0:
        raise ArgumentError(f"chapter {chapter.number}: its exercises take longer than its hours",
                            got=f"{chapter.hours:g} hours",
                            expected=f"at least {sum(h.minutes for h in chapter.exercises) / 60:.1f} hours in "
                            f"chapter.toml")
    parts = [s for p in pages(chapter)[0] for s in sections(p)]
    read, waiting, done = set(), chapter.exercises, set()
    for part, minutes in zip(parts, shared(left, [s.words for s in parts])):
        yield part._replace(minutes=minutes)
        read.add((part.page.name, slug(part.title)))
        while ready := next((h for h in waiting if _read(h) in read
                             and not {n for n in h.needs if n not in done}
                             & {w.id for w in waiting}), None):
            waiting.remove(ready)
            done.add(ready.id)
            yield ready
    if waiting:
        raise ArgumentError(f"{waiting[0].short}: its section is missing, or its needs form a cycle",
                            got=waiting[0].why, expected="a heading of a page, and needs without a cycle")
    if chapter.milestone is not None:
        yield chapter


def _read(hole) -> tuple[str, str]:
    """Return (page, section) to read before an exercise; a heading of level 3 counts as its section."""
    name, _, anchor = hole.why.partition("#")
    above = ""
    for level, text in re.findall(r"^(##+) (.*)$",
                                  FENCED.sub("", (hole.folder / name).read_text(encoding="utf-8")),
                                  re.MULTILINE):
        above = slug(text) if level == "##" else above
        if slug(text) == anchor:
            return name, above
    return name, anchor


def minutes(item) -> int:
    return 0 if isinstance(item, course.Chapter) else item.minutes


def shortened(chapter: course.Chapter) -> course.Chapter:
    """Return a chapter with its exercise of the fast track, and with the pages that this exercise needs."""
    only = replace(chapter, holes=[h for h in chapter.holes if h.id == chapter.fast], milestone=None)
    words = [sum(s.words for p in pages(c)[0] for s in sections(p)) for c in (chapter, only)]
    reading = 60 * chapter.hours - sum(h.minutes for h in chapter.exercises)
    only.hours = (reading * words[1] / words[0] + sum(h.minutes for h in only.holes)) / 60
    return only


def weeks(chapters: Iterable[course.Chapter], many: int) -> list[list]:
    """Return the items of each week. Raises ArgumentError unless there are 1 to MOST weeks."""
    if not 1 <= many <= MOST:
        raise ArgumentError(f"WEEKS is out of range: {many} weeks", expected=f"1 to {MOST} weeks",
                            got=str(many), fix="WEEKS=7")
    rows = [item for c in chapters for item in items(c)]
    total, at = max(sum(map(minutes, rows)), 1), 0.0
    result: list[list] = [[] for _ in range(many)]
    for item in rows:
        # Keep a milestone with the item before.
        middle = at + minutes(item) / 2 - (0 if minutes(item) else 0.5)
        result[min(int(middle / total * many), many - 1)].append(item)
        at += minutes(item)
    return result


# ---- the page
def clock(n: int) -> str:
    return f"{n // 60} h {n % 60:02d} min" if n >= 60 else f"{n} min"


def write_page(chapters: Sequence[course.Chapter], many: int, folder: Path) -> str:
    """Return the page, with links relative to `folder`."""
    plan = weeks(chapters, many)
    holes = [h for c in chapters for h in c.exercises]
    total = sum(minutes(i) for w in plan for i in w)
    weekly = [sum(map(minutes, w)) for w in plan]
    out = [f"# {len(holes)} exercises in {many} week{'s' if many > 1 else ''}", "",
           f"Written by `make syllabus WEEKS={many}`: {clock(total)} in all, {clock(min(weekly))} to "
           f"{clock(max(weekly))} a week,",
           "estimated as in `make list`: reading, trying, and the exercises, for a second-year student who",
           "knows Python and NumPy. Exercises follow the exercises that they need.", "",
           "| week | chapters | hours | exercises due | points |", "|---|---|---|---|---|"]
    for n, week in enumerate(plan, 1):
        due = [i for i in week if isinstance(i, course.Hole)]
        numbers = sorted({_chapter(i) for i in week})
        out.append(f"| {n} | {', '.join(map(str, numbers))} | {clock(weekly[n - 1])} | "
                   f"{', '.join(h.id for h in due) or '-'} | {sum(h.points for h in due)} |")
    out.append(f"| all | | {clock(total)} | {len(holes)} | {sum(h.points for h in holes)} |")
    given = {h.id for h in holes}
    for n, week in enumerate(plan, 1):
        out += ["", f"## Week {n}: {clock(weekly[n - 1])}", "", *_week(week, folder, given)]
    further = [(c, p) for c in chapters for p in pages(c)[1]]
    if further:
        out += ["", "## Further pages, without exercises", "", *(f"- {link(p, title(p), folder)}"
                                                                 for _, p in further)]
    return "\n".join(out) + "\n"


def _chapter(item) -> int:
    if isinstance(item, Section):
        return int(item.page.parent.name[:2])
    return item.number if isinstance(item, course.Chapter) else item.chapter


def link(page: Path, text: str, folder: Path, anchor: str = "") -> str:
    """Return a Markdown link from `folder` to a page; the path is a URL, so spaces, quotes and umlauts are escaped."""
    where = quote(os.fsencode(os.path.relpath(page, folder).replace(os.sep, "/")))
    return f"[{text}]({where}{'#' + anchor if anchor else ''})"


def _week(week: list, folder: Path, given: set[str]) -> Iterator[str]:
    parts = [i for i in week if isinstance(i, Section)]
    for page in dict.fromkeys(s.page for s in parts):
        some = [s for s in parts if s.page == page]
        first, last, span = some[0].title, some[-1].title, ""
        if sections(page)[0].title != first:
            span += " from " + link(page, first, folder, slug(first))
        if not some[-1].last:
            span += " to " + link(page, last, folder, slug(last)) + ", inclusive"
        yield f"- read {link(page, title(page), folder)}{span} ({clock(sum(s.minutes for s in some))})"
    due = [i for i in week if isinstance(i, course.Hole)]
    if due:
        yield from ("", "| exercise | minutes | points | read before | after |", "|---|---|---|---|---|")
    for h in due:
        page, _, anchor = h.why.partition("#")
        # In parentheses: not in the plan.
        before = ", ".join(n if n in given else f"({n})" for n in h.needs)
        yield (f"| {h.short} | {h.minutes} | {h.points} | {link(h.folder / page, page, folder, anchor)} | "
               f"{before} |")
    done = [i for i in week if isinstance(i, course.Chapter)]
    if done:
        yield ""
        yield from (f"- then `make milestone-{c.number}`: {c.milestone.title}" for c in done)
        yield from (f"- optional: the fault hunts {', '.join(h.id for h in c.hunts)} "
                    f"({clock(sum(h.minutes for h in c.hunts))})" for c in done if c.hunts)


@report_errors
def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu_course.teach.syllabus",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("weeks", help=f"1 to {MOST}")
    parser.add_argument("chapters", nargs="?", default="all", help='"4", "1-4", "fast" or "all"')
    parser.add_argument("--out", type=Path, default=Path("build/syllabus.md"))
    options = parser.parse_args(arguments)
    if not options.weeks.isdigit():
        raise ArgumentError("WEEKS is not a number", expected=f"1 to {MOST}", got=options.weeks,
                            fix="WEEKS=7")
    numbers = {h.chapter for h in select_holes(options.chapters)}
    some = [c for c in course.chapters() if c.number in numbers]
    if options.chapters == "fast":
        some = [shortened(c) for c in some]
    text = write_page(some, int(options.weeks), options.out.resolve().parent)
    try:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        put(options.out, text)
    except OSError as error:
        raise ArgumentError("the plan cannot be written", expected="a file that can be written",
                            got=f"{error.strerror}: {error.filename}", fix="OUT=build/plan.md") from None
    print(text, end="")
    print(f"\nwritten to {options.out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
