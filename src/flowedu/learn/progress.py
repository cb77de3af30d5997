"""Progress of a student, in work/.course.json. The file is replaced as a whole; a damaged file is kept as a copy."""
from __future__ import annotations

import contextlib
import copy
import errno
import hashlib
import json
from pathlib import Path
from typing import Any

from flowedu.errors.files import write_text

# What to do when a file cannot be read or written.
FIXES = (((errno.ENOENT,), "it belongs to this tree: take it from the one that was handed out"),
         ((errno.EACCES, errno.EPERM, errno.EROFS), "you may not read or write there: change that, or WORK=another"),
         ((errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ELOOP), "move away what has that name, or WORK=another folder"),
         ((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "make room for it; the work files are as they were"))
VERSION, STATES = 1, ("open", "wrong", "right")
EMPTY = {"state": "open", "stars": 0, "hints": 0, "seconds": 0.0, "checks": 0, "hash": ""}


class Progress:
    def __init__(self, work: Path):
        self.work, self.file = work, work / ".course.json"
        self.rows: dict[str, dict[str, Any]] = {}
        self.read: dict[str, dict[str, Any]] = {}  # as they were in the file
        self.note = ""
        try:
            self.rows = self._found()
            self.read = copy.deepcopy(self.rows)
        except FileNotFoundError:
            pass
        except (ValueError, KeyError, TypeError, AttributeError):
            aside = self.file.with_suffix(".broken")
            self.file.replace(aside)
            self.note = f"{self.file} could not be read: it is now {aside.name}; finished exercises are checked again"

    def row(self, id: str) -> dict[str, Any]:
        return self.rows.setdefault(id, dict(EMPTY))

    def _found(self) -> dict[str, dict[str, Any]]:
        """What the file says. Raises OSError, or what a file of another kind or version makes of itself."""
        found = json.loads(self.file.read_text(encoding="utf-8"))
        if found["version"] != VERSION:
            raise ValueError(found["version"])
        rows = {k: {**EMPTY, **v} for k, v in found["holes"].items()}
        if any(type(row[k]) is not type(v) and (type(row[k]), type(v)) != (int, float)
               for row in rows.values() for k, v in EMPTY.items()) or any(r["state"] not in STATES for r in rows.values()):
            raise ValueError("a row is not as it was written")
        return rows

    def save(self) -> None:
        """What changed here goes into the file; what another check wrote there meanwhile stays.

        Raises OSError: the disk is full, say; the old file is as it was."""
        changed = {k: v for k, v in self.rows.items() if v != self.read.get(k, EMPTY)}
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            self.rows = {**self.rows, **self._found(), **changed}
        written(self.file, json.dumps({"version": VERSION, "holes": self.rows}, indent=1))
        self.read = copy.deepcopy(self.rows)


def written(file: Path, text: str) -> None:
    """A file with this text, or the one that was there. Raises OSError."""
    write_text(file, text)


def digest(*files: Path) -> str:
    h = hashlib.sha256()
    for f in files:
        h.update(f.read_bytes())
    return h.hexdigest()[:16]


def told_of(error: OSError, work: Path) -> str:
    """What the system says of a file, and what to do about it."""
    fix = next((text for codes, text in FIXES if error.errno in codes), "the work files are as they were")
    return f"{error.strerror}: {error.filename or work}; {fix}"
