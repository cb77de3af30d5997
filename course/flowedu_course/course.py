"""Chapters and their holes, read from chapters/*/chapter.toml and validated, and a student's progress.

A hole is a function of the library, or a field of a record, that a student writes. It is identified by file
and qualified name, so the library's source has no markers.
"""
from __future__ import annotations

import contextlib
import copy
import functools
import importlib.util
import json
import re
import tomllib
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any

from flowedu.errors import ArgumentError
from flowedu.errors.files import write_text
from flowedu_course.source import names_at_hand

HOME = Path(__file__).resolve().parents[2]         # root of the checkout
KINDS = ("law", "target", "kernel", "hunt")
# Ending of a kernel's work file, by language.
ENDINGS = {"kernel": ".pyx", "cuda": ".cu", "formula": ".h"}
# Folder of a student's tree for answers that were handed out later.
SOLUTIONS = "solutions"
# Values that are the same for all fault hunts.
OF_HUNTS = {"module": "flowedu_course.answers", "objects": [], "points": 0, "lines": 2}


@dataclass(frozen=True)
class Hole:
    """An exercise.

    Attributes:
        objects: dotted paths below the module: `place`, or `sigmoid.grad.x` for a field of a record.
        kind: an answer to a "law" is right or wrong, and the stub raises. An answer to a "target" can earn
            stars, and the stub is right but wasteful. A "kernel" is a small file that is compiled alone
            (kernels.py). The object of a kernel is, for example, kernel:softmax (Cython) or
            cuda:matmul_shared (CUDA C). Its module is the path of the file with the answer. The stub of
            a "hunt" is a program or a CUDA kernel with one fault. An answer may change `lines` lines.
        parts: the functions in a kernel's file that are the answer (empty: the whole file).
        plain: file with a right function that uses another method than the answer. It replaces the answer in
            a student's tree if the library needs the function.
        needs: exercises whose functions its laws run.
        half: rule for half of a target's points, written like the rule of a star. An answer that obeys the laws
            but not this rule counts as open, like the stub.
        uses: names that the answer needs, each as "name(parameters): meaning".
        together: True if grading judges it in the answer's own process, because its values cannot be sent.
    """

    id: str
    title: str
    module: str
    objects: tuple[str, ...]
    kind: str
    task: str
    lines: int
    minutes: int
    points: int
    laws: tuple[str, ...]
    hints: tuple[str, ...]
    why: str
    folder: Path
    names: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    half: str = ""
    stars: tuple[str, ...] = ()
    stub: str = ""
    plain: str = ""
    example: str = ""
    parts: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    together: bool = False

    @property
    def chapter(self) -> int:
        return int(self.id.partition(".")[0])

    @property
    def is_hunt(self) -> bool:
        return self.kind == "hunt"

    @property
    def is_compiled(self) -> bool:
        """True if the answer is written in Cython or C."""
        return self.language != "python"

    @property
    def is_separate(self) -> bool:
        """True if the answer is a file of its own, False if it replaces functions of the library."""
        return self.kind in ("kernel", "hunt")

    @property
    def functions(self) -> tuple[str, ...]:
        """The names of the functions in the work file, one per object."""
        return self.names or tuple(o.rpartition(":")[2].rpartition(".")[2] for o in self.objects)

    @property
    def language(self) -> str:
        """The language: "kernel" (Cython), "cuda", "formula" (a line of C), or "python"."""
        language, colon, _ = "".join(self.objects[:1]).partition(":")
        return language if colon else "python"

    @property
    def ending(self) -> str:
        return ENDINGS.get(self.language, ".py")

    @property
    def file(self) -> str:
        return f"{self.id}_{re.sub(r'[^A-Za-z0-9]+', '_', self.title.partition(':')[0]).strip('_')}{self.ending}"

    @property
    def about(self) -> str:
        if self.is_hunt:
            return f"change at most {self.lines} lines, {self.minutes} minutes"
        return f"about {self.lines} line{'s' if self.lines > 1 else ''}, {self.minutes} minutes"

    @property
    def short(self) -> str:
        return f"{self.id} {self.title.partition(':')[0].strip()}"

    @property
    def page(self) -> str:
        """The page to read, relative to the repository."""
        return f"{self.folder.parent.name}/{self.folder.name}/{self.why}"

    @property
    def source(self) -> Path:
        """The library's file that contains the answer, or the stub if the answer is a separate file."""
        return self.folder / self.stub if self.is_separate else file_of(self.module)

    @property
    def answer_file(self) -> Path:
        """The file of a separate answer, which a student's tree does not have."""
        return self.folder / "answers" / self.file if self.is_hunt else file_of(self.module)

    def figures(self) -> dict:
        """Return the values that its stars compare with, which a student's tree has in student.json."""
        return self._handed("figures") or {}

    @property
    def at_hand(self) -> list[str]:
        """The names in scope that the library's answer uses. A student's tree has them in student.json."""
        known = self._handed("at_hand")
        if known is None:
            known = ([] if self.is_separate else names_at_hand(self.source.read_text(encoding="utf-8"),
                                                                    self.objects))
        return known

    @property
    def first(self) -> list[str]:
        """The exercises in `needs` that are open in this tree and must be done before."""
        return [id for id in self.needs if id in student(self.folder.parents[1]).get("open", ())]

    @property
    def solution(self) -> Path | None:
        """The file of the answer if it was handed out to this student's tree, else None."""
        file = self.folder.parents[1] / SOLUTIONS / self.file
        return file if file.is_file() else None

    @property
    def withheld(self) -> bool:
        """True if this tree was handed out without the library's answer."""
        given = student(self.folder.parents[1]).get("open", ())
        return self.id in given and not (self.is_separate and _has_answer(self.answer_file))

    def _handed(self, what: str) -> Any:
        return student(self.folder.parents[1]).get(what, {}).get(self.id)


def file_of(module: str) -> Path:
    """Return the file of a module: a dotted name, or a path (with a slash) relative to the checkout."""
    if "/" in module:
        return HOME / module
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise ArgumentError(f"there is no module {module}", got=module)
    return Path(spec.origin)


def _has_answer(file: Path) -> bool:
    """Return True if a tree has the library's kernel. A student's tree has an #error in place of some."""
    return file.exists() and not file.read_text(encoding="utf-8").startswith("#error")


@dataclass(frozen=True)
class Milestone:
    """A chapter's milestone program: its title, the holes it needs, and its seconds on two busy cores."""

    title: str
    needs: tuple[str, ...]
    seconds: int


def student(home: Path) -> dict:
    """Return the contents of student.json (see `make student-tree`), or {} in the library's own tree."""
    file = home / "student.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


@dataclass
class Chapter:
    number: int
    title: str
    hours: float
    folder: Path
    demo_seconds: float = 0
    fast: str = ""                                 # the exercise that stands for the chapter in a short course
    holes: list[Hole] = field(default_factory=list)
    milestone: Milestone | None = None

    @property
    def exercises(self) -> list[Hole]:
        """The holes that have points: all but the fault hunts."""
        return [h for h in self.holes if not h.is_hunt]

    @property
    def hunts(self) -> list[Hole]:
        return [h for h in self.holes if h.is_hunt]


def chapters(home: Path | None = None) -> list[Chapter]:
    """Return all chapters with exercises, in order. Raises ArgumentError if a chapter.toml is invalid."""
    found = []
    for file in sorted(Path(home or HOME, "chapters").glob("[0-9]*/chapter.toml")):
        try:
            table = _table(file.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise ArgumentError(f"{file}: invalid TOML", expected="see chapters/01_blob/chapter.toml",
                                got=str(error)) from None
        c = Chapter(int(file.parent.name[:2]), table["title"], table["hours"], file.parent,
                    table.get("demo_seconds", 0), table.get("fast", ""))
        c.holes = [_hole(row, file) for row in table.get("hole", [])]
        if "milestone" in table:
            c.milestone = Milestone(**{k: tuple(v) if isinstance(v, list) else v
                                       for k, v in table["milestone"].items()})
        found.append(c)
    return found


@functools.lru_cache(32)                      # most lookups read the same files again
def _table(text: str) -> dict:
    return tomllib.loads(text)


def _hole(row: dict, file: Path) -> Hole:
    known = {name: f for name, f in Hole.__dataclass_fields__.items() if name != "folder"}
    row = {**OF_HUNTS, **row} if row.get("kind") == "hunt" else row
    missing = [name for name, f in known.items() if f.default is MISSING and name not in row]
    unknown = [k for k in row if k not in known]
    if missing or unknown or row["kind"] not in KINDS:
        raise ArgumentError(f"{file}: hole {row.get('id', '?')} is not complete",
                            expected=", ".join(sorted(known)),
                            got=f"missing {sorted(missing)}, unknown {sorted(unknown)}, kind "
                            f"{row.get('kind')!r}")
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
    return Hole(**values, folder=file.parent)


def holes(home: Path | None = None) -> list[Hole]:
    return [h for c in chapters(home) for h in c.holes]


def fast_track(home: Path | None = None) -> list[Hole]:
    """Return one exercise per chapter, for a short course."""
    return [h for c in chapters(home) for h in c.holes if h.id == c.fast]


def find(id: str, home: Path | None = None) -> Hole:
    """Return the hole with this number. Raises ArgumentError if it does not exist."""
    there = holes(home)
    for h in there:
        if id in (h.id, h.functions[0]):
            return h
    chapter = id.partition(".")[0]
    expected = ", ".join(h.id for h in there if h.id.partition(".")[0] == chapter) or "a number such as 4.3"
    raise ArgumentError(f"there is no exercise {id}", expected=expected, got=id,
                        fix="`make list` lists them")


# ---- progress
VERSION, STATES = 1, ("open", "wrong", "right")
EMPTY = {"state": "open", "stars": 0, "hints": 0, "seconds": 0.0, "checks": 0, "hash": ""}


class Progress:
    """A student's progress, in work/.course.json.

    The file is replaced as a whole; a damaged one is kept as a copy.
    """

    def __init__(self, work: Path):
        self.work, self.file = work, work / ".course.json"
        self.rows: dict[str, dict[str, Any]] = {}
        self.read: dict[str, dict[str, Any]] = {}  # the rows as read from the file
        self.note = ""
        try:
            self.rows = self._read_rows()
            self.read = copy.deepcopy(self.rows)
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError, AttributeError):
            aside = self.file.with_suffix(".broken")
            self.file.replace(aside)
            self.note = (f"{self.file} could not be read: it is now {aside.name}; finished exercises are "
                         f"checked again")

    def row(self, id: str) -> dict[str, Any]:
        return self.rows.setdefault(id, dict(EMPTY))

    def _read_rows(self) -> dict[str, dict[str, Any]]:
        """Read the rows of the file. Raises OSError, or other errors for another format or version."""
        data = json.loads(self.file.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            raise ValueError(data["version"])
        rows = {k: {**EMPTY, **v} for k, v in data["holes"].items()}
        if any(type(row[k]) is not type(v) and (type(row[k]), type(v)) != (int, float)
               for row in rows.values() for k, v in EMPTY.items()) or any(r["state"] not in STATES
                                                                          for r in rows.values()):
            raise ValueError("a row has a value of the wrong type")
        return rows

    def save(self) -> None:
        """Write the changed rows to the file, and keep rows that another check wrote in the meantime.

        Raises OSError, for example if the disk is full; the old file is then unchanged.
        """
        changed = {k: v for k, v in self.rows.items() if v != self.read.get(k, EMPTY)}
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            self.rows = {**self.rows, **self._read_rows(), **changed}
        write_text(self.file, json.dumps({"version": VERSION, "holes": self.rows}, indent=1))
        self.read = copy.deepcopy(self.rows)
