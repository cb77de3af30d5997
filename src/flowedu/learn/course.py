"""Chapters and their holes: what chapters/*/chapter.toml says, checked.

A hole is a function of the library, or a field of a record, that a student writes anew. It is named by file and qualified
name; the library's source carries no marks.
"""
from __future__ import annotations

import functools
import json
import re
import tomllib
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any

from flowedu.errors import ArgumentError
from flowedu.learn.source import HOME, around, file_of, names_at_hand

KINDS = ("law", "target", "kernel")
ENDINGS = {"kernel": ".pyx", "cuda": ".cu", "formula": ".h"}       # of a kernel's work file, by what its object begins with
SOLUTIONS = "solutions"                            # in a student's tree the answers that were handed out since


@dataclass(frozen=True)
class Hole:
    """An exercise.

    objects: dotted paths below the module: `place`, or `sigmoid.grad.x` for a field of a record. kind: "law" is right or
    wrong, its stub raises; "target" is right from the beginning and wasteful, and has stars; "kernel" is a whole small file
    that is compiled alone (kernels.py): its object is kernel:softmax, of Cython, or cuda:matmul_shared, its module the path
    of the file with the answer, and `parts` are the functions of that file which are the answer (none: all of it). plain: a
    file whose function stands in a student's tree where the library cannot do without; right, by another way than the
    exercise's. needs: the exercises whose functions its laws run, on the way through the library. half: of a target, the
    rule, as stars are, for half of its points; what obeys the laws and misses it is still open, as the stub is. together:
    True if a grade judges it in the answer's own process, because its values cannot be sent to another one.
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
    together: bool = False

    @property
    def chapter(self) -> int:
        return int(self.id.partition(".")[0])

    @property
    def functions(self) -> tuple[str, ...]:
        """What the functions in the work file are called, one for each object."""
        return self.names or tuple(o.rpartition(":")[2].rpartition(".")[2] for o in self.objects)

    @property
    def language(self) -> str:
        """Of a kernel: "kernel" (Cython), "cuda" or "formula" (a line of C); else "python"."""
        return self.objects[0].partition(":")[0] if self.kind == "kernel" else "python"

    @property
    def ending(self) -> str:
        return ENDINGS.get(self.language, ".py")

    @property
    def file(self) -> str:
        return f"{self.id}_{re.sub(r'[^A-Za-z0-9]+', '_', self.title.partition(':')[0]).strip('_')}{self.ending}"

    @property
    def about(self) -> str:
        return f"about {self.lines} line{'s' if self.lines > 1 else ''}, {self.minutes} minutes"

    @property
    def short(self) -> str:
        return f"{self.id} {self.title.partition(':')[0].strip()}"

    @property
    def page(self) -> str:
        """Where to read, from the repository's root."""
        return f"{self.folder.parent.name}/{self.folder.name}/{self.why}"

    def figures(self) -> dict:
        """In a student's tree: what its stars are compared with."""
        return self._handed("figures") or {}

    @property
    def at_hand(self) -> list[str]:
        """The names that the file around an answer offers it: in a student's tree, which has not the lines they are read
        from, as they were written down."""
        known = self._handed("at_hand")
        if known is None:
            known = [] if self.kind == "kernel" else names_at_hand(around(self).read_text(encoding="utf-8"), self.objects)
        return known

    @property
    def first(self) -> list[str]:
        """Of its needs those that are open in this tree: to be done before."""
        return [id for id in self.needs if id in student(self.folder.parents[1]).get("open", ())]

    @property
    def solution(self) -> Path | None:
        """In a student's tree the answer that was handed out since."""
        file = self.folder.parents[1] / SOLUTIONS / self.file
        return file if file.is_file() else None

    @property
    def withheld(self) -> bool:
        """Whether this tree was handed out without the library's lines."""
        given = student(self.folder.parents[1]).get("open", ())
        return self.id in given and not (self.kind == "kernel" and file_of(self.module).exists())

    def _handed(self, what: str) -> Any:
        return student(self.folder.parents[1]).get(what, {}).get(self.id)


@dataclass(frozen=True)
class Milestone:
    """milestone.py of a chapter: what it shows, the holes it needs filled, how long it takes on two busy cores."""

    title: str
    needs: tuple[str, ...]
    seconds: int


def student(home: Path) -> dict:
    """What `make student-tree` wrote about a tree; empty in the library's own."""
    file = home / "student.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


@dataclass
class Chapter:
    number: int
    title: str
    hours: float
    folder: Path
    demo_seconds: float = 0
    holes: list[Hole] = field(default_factory=list)
    milestone: Milestone | None = None


def chapters(home: Path | None = None) -> list[Chapter]:
    """All chapters with exercises, in order. Raises ArgumentError: a chapter.toml is not what it should be."""
    found = []
    for file in sorted(Path(home or HOME, "chapters").glob("[0-9]*/chapter.toml")):
        try:
            table = _table(file.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise ArgumentError(f"{file}: this is no TOML", expected="see chapters/01_blob/chapter.toml",
                                got=str(error)) from None
        c = Chapter(int(file.parent.name[:2]), table["title"], table["hours"], file.parent, table.get("demo_seconds", 0))
        c.holes = [_hole(row, file) for row in table.get("hole", [])]
        if "milestone" in table:
            c.milestone = Milestone(**{k: tuple(v) if isinstance(v, list) else v for k, v in table["milestone"].items()})
        found.append(c)
    return found


@functools.lru_cache(32)                      # of all that asks for a hole, most have asked before
def _table(text: str) -> dict:
    return tomllib.loads(text)


def _hole(row: dict, file: Path) -> Hole:
    known = {name: f for name, f in Hole.__dataclass_fields__.items() if name != "folder"}
    missing = [name for name, f in known.items() if f.default is MISSING and name not in row]
    unknown = [k for k in row if k not in known]
    if missing or unknown or row["kind"] not in KINDS:
        raise ArgumentError(f"{file}: hole {row.get('id', '?')} is not complete", expected=", ".join(sorted(known)),
                            got=f"missing {sorted(missing)}, unknown {sorted(unknown)}, kind {row.get('kind')!r}")
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
    return Hole(**values, folder=file.parent)


def holes(home: Path | None = None) -> list[Hole]:
    return [h for c in chapters(home) for h in c.holes]


def find(id: str, home: Path | None = None) -> Hole:
    """The hole of this number. Raises ArgumentError: there is none."""
    there = holes(home)
    for h in there:
        if id in (h.id, h.functions[0]):
            return h
    raise ArgumentError(f"there is no exercise {id}", expected=", ".join(h.id for h in there), got=id,
                        fix="`make list` lists them")
