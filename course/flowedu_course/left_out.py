"""Reasons to leave out blocks of lessons or demos in a student's tree: open exercises, wrong answers."""
from __future__ import annotations

import json
import os
import re
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path


class LeftOut(Exception):
    """A block does not run; the message is the reason."""


def turn(said: str) -> str:
    """Return the open exercise named in the output of a process, or ""."""
    match = re.search(r"(?:NotImplementedError:|#error) (\d+\.\d+): your turn\b", said)
    return match[1] if match else ""


def needs(hole: str) -> str:
    return f"it needs exercise {hole}, which is open"


def describe_code() -> str:
    """Return a line that tells the student's answers, those of solutions/, and open exercises apart."""
    from flowedu.swap import RUNNING, SKIPPED
    from flowedu_course import course
    from flowedu_course.language import spans, tr

    handed = [f for f in set(RUNNING.values()) if f.parent.name == course.SOLUTIONS]
    theirs = [f.name.partition("_")[0] for f in handed]
    yours = [f.name.partition("_")[0] for f in set(RUNNING.values()) if f not in handed]
    still = [h.id for h in course.holes() if h.withheld and not h.is_hunt and h.id not in yours + theirs]
    said = [tr("yours: {ids}", ids=spans(yours))] * bool(yours)
    said += [tr("from solutions/: {ids}", ids=spans(theirs))] * bool(theirs)
    said += [tr("open: {ids}", ids=spans(still))] * bool(still)
    said.append(tr("all else is the library's") if said else tr("all of it the library's"))
    skipped = "".join(f"; not {file.name}: {why}" for file, why in SKIPPED.items())
    return "; ".join(said) + skipped


def recorded(page: Path) -> list[str | None]:
    """Return the outputs of a page's Python blocks that came with a student's tree, or []."""
    file = page.with_name("recorded.json")
    outputs = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return outputs.get(page.stem.removesuffix(".zh"), [])


def students() -> bool:
    """Return True in a student's tree, where right answers may print other plans than the page."""
    from flowedu_course import course
    return bool(course.student(course.HOME))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def opened(error: BaseException | None) -> str:
    """Return the open exercise that caused an error, or ""."""
    # Stderr of a subprocess.
    return next(filter(None, (turn(f"{type(e).__name__}: {e}\n{getattr(e, 'stderr', '')}")
                              for e in _causes(error))), "")


def spoilt(error: BaseException) -> str:
    """Return a sentence about the line of an answer that raised an error, or ""."""
    work = os.environ.get("FLOWEDU_HOLES", "")
    for e in _causes(error):
        for f in reversed(traceback.extract_tb(e.__traceback__) if work else []):
            if Path(f.filename).parent == Path(work):
                return (f"your {Path(f.filename).name}, line {f.lineno}, raises {type(e).__name__}: "
                        f"{_first(e)}")
    return ""


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


def why_not(error: Exception, unmade: Mapping[str, str], expected: str) -> str:
    """Return the reason to leave out a block that raised an error, or "" if the lesson itself is wrong."""
    if hole := opened(error):
        return needs(hole)
    lacking = next((unmade[e.name] for e in _causes(error) if isinstance(e, NameError) and e.name in unmade),
                   "")
    if lacking or type(error).__name__ == expected or not students():
        return lacking
    return spoilt(error) or f"{type(error).__name__}: {_first(error)}; it runs with the library's code"
