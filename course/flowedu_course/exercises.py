"""Checks of exercises: `python -m flowedu_course.exercises chapters/01_blob [NAME ...] [--solutions]`.

A chapter has three files. exercises.py has functions that end in `raise NotImplementedError("your turn")`.
checks.py has a function `check_NAME` for each of them, which is called with the reader's NAME and raises
`Wrong` with a hint. solutions.py has the answers.
"""
from __future__ import annotations

import argparse
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np


class Wrong(AssertionError):
    """A wrong answer; the message has a hint."""

    def __init__(self, problem: str, hint: str = ""):
        super().__init__(problem + (f"\n  hint: {hint}" if hint else ""))


class Unjudged(Exception):
    """An answer cannot be judged on this machine. The message explains what is missing and how to get it."""


class Result(NamedTuple):
    """The result of one exercise; state is "right", "wrong", "open", or "unjudged"."""

    name: str
    state: str
    text: str


def expect(call: str, got, want, hint: str) -> None:
    """Raise Wrong unless `got` equals `want`; numbers and arrays are compared up to rounding."""
    if _same(got, want):
        return
    raise Wrong(f"{call}\n  gives     {got!r}\n  should be {want!r}\n  hint: {hint}")


def _same(got, want) -> bool:
    if isinstance(want, (float, np.ndarray)):
        try:
            got = np.asarray(got, np.float64)
        except (TypeError, ValueError):
            return False
        return got.shape == np.shape(want) and np.allclose(got, want, rtol=1e-5, atol=1e-7)
    return type(got) is type(want) and got == want


def load(path: Path) -> ModuleType:
    """Load a Python file as a module."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(chapter: Path, answers: str = "exercises.py", only: tuple[str, ...] = ()) -> Iterator[Result]:
    """Yield the results of a chapter's checks in the order of checks.py."""
    module = load(chapter / answers)
    checks = {n[6:]: f for n, f in vars(load(chapter / "checks.py")).items() if n.startswith("check_")}
    for name, check in checks.items():
        if not only or name in only:
            yield one(name, check, getattr(module, name, None), chapter / answers)


def one(name: str, check: Callable, answer: Callable | None, path: Path) -> Result:
    """Check one answer."""
    if answer is None:
        return Result(name, "wrong", f"{path.name} has no {name}: keep the names of the answers")
    try:
        check(answer)
    except NotImplementedError as error:
        if str(error) == "your turn":
            return Result(name, "open", (inspect.getdoc(answer) or "").split("\n")[0])
        return Result(name, "wrong", _where(error, path))
    except Wrong as error:
        return Result(name, "wrong", str(error))
    except Unjudged as error:
        return Result(name, "unjudged", str(error))
    except Exception as error:              # the reader's code may raise anything
        return Result(name, "wrong", _where(error, path))
    return Result(name, "right", "")


def _where(error: Exception, path: Path) -> str:
    """Return the error and the line of the reader's file that raised it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(path)]
    line = f"\n  at {path.name}:{frames[-1].lineno}: {frames[-1].line}" if frames else ""
    return f"{type(error).__name__}: {error}{line}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m flowedu_course.exercises",
                                     description="Check a chapter's exercises.")
    parser.add_argument("chapter", type=Path, help="a folder such as chapters/01_blob")
    parser.add_argument("names", nargs="*", help="only these exercises")
    parser.add_argument("--solutions", action="store_true", help="check solutions.py instead of exercises.py")
    options = parser.parse_args(arguments)
    if not (options.chapter / "checks.py").exists():
        print(f"no exercises in {options.chapter}")
        return 2
    known = [n for n in vars(load(options.chapter / "checks.py")) if n.startswith("check_")]
    if unknown := [n for n in options.names if f"check_{n}" not in known]:
        print(f"no exercise {unknown[0]}; available: " + ", ".join(n[6:] for n in known))
        return 2
    marks = {"right": "ok  ", "wrong": "no  ", "open": "todo", "unjudged": "?   "}
    results = []
    for r in run(options.chapter, "solutions.py" if options.solutions else "exercises.py",
                 tuple(options.names)):
        results.append(r)
        print(f"{marks[r.state]}  {r.name}" + (f": {r.text}" if r.text else "").replace("\n", "\n      "))
    right = sum(r.state == "right" for r in results)
    print(f"{right} of {len(results)} right" + ("" if right < len(results) or not results else ": well done"))
    return 0 if results and right == len(results) else 1


if __name__ == "__main__":
    # The imported module, whose Wrong the checks raise; this copy is __main__.
    from flowedu_course import exercises
    sys.exit(exercises.main(sys.argv[1:]))
