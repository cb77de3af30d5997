"""Reasons why a lesson's block or a demo's remainder does not run in a student's tree.

An exercise is open, or an answer is wrong.
"""
from __future__ import annotations

import os
import re
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path


class LeftOut(Exception):
    """Why a block does not run."""


def turn(said: str) -> str:
    """The open exercise that a process came to, by what it said; or ""."""
    found = re.search(r"NotImplementedError: (\d+\.\d+): your turn\b", said)
    return found[1] if found else ""


def needs(hole: str) -> str:
    return f"it needs exercise {hole}, which is open"


def students() -> bool:
    """Whether this is a student's tree: a plan may be another than the page's, and right."""
    from flowedu.learn import course
    return bool(course.student(course.HOME))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def opened(error: BaseException | None) -> str:
    """The open exercise that an error comes from, or ""."""
    return next(filter(None, (turn(f"{type(e).__name__}: {e}\n{getattr(e, 'stderr', '')}")      # of another process
                              for e in _causes(error))), "")


def spoilt(error: BaseException) -> str:
    """The line of an answer that an error comes from, or ""."""
    work = os.environ.get("FLOWEDU_HOLES", "")
    for e in _causes(error):
        for f in reversed(traceback.extract_tb(e.__traceback__) if work else []):
            if Path(f.filename).parent == Path(work):
                return f"your {Path(f.filename).name}, line {f.lineno}, raises {type(e).__name__}: {_first(e)}"
    return ""


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [""])[0]


def why_not(error: Exception, unmade: Mapping[str, str], expected: str) -> str:
    """Why a block is left out that ended so; "": it is not, the lesson is wrong."""
    if hole := opened(error):
        return needs(hole)
    lacking = next((unmade[e.name] for e in _causes(error) if isinstance(e, NameError) and e.name in unmade), "")
    if lacking or type(error).__name__ == expected or not students():
        return lacking
    return spoilt(error) or f"{type(error).__name__}: {_first(error)}; on the library's own lines it runs"
