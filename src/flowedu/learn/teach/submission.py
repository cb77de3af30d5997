"""Submission of a student: the files of a folder. Only their text is read."""
from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from flowedu.learn import course, source

LARGEST = 1 << 20
KINDS = (".py", ".pyx", ".cu")


def taken(folder: Path, to: Path, holes: Iterable) -> dict[str, str]:
    """Copy the answers into a folder of their own; {hole: why it has none}. Links are not followed: they could lead to
    answers."""
    to.mkdir(parents=True, exist_ok=True)
    for old in to.iterdir():
        old.unlink()
    missing = {}
    inner = folder / "work"
    folder = inner if os.path.isdir(inner) and not os.path.islink(inner) else folder
    for hole in holes:
        try:
            data = _content(folder / hole.file)
            text = data.decode()
            (to / hole.file).write_text(text, encoding="utf-8")
        except FileNotFoundError:
            missing[hole.id] = f"not handed in: there is no {hole.file}"
        except UnicodeDecodeError:
            missing[hole.id] = f"{hole.file} is no text"
        except (OSError, ValueError) as error:
            missing[hole.id] = f"{hole.file}: {_told(error)}"
    return missing


def _told(error: OSError | ValueError) -> str:
    if getattr(error, "errno", 0) == errno.ELOOP:
        return "this is a link, and links are not followed: hand in the file itself"
    return getattr(error, "strerror", None) or str(error)


def _content(file: Path) -> bytes:
    fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as f:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("this is no file")
        if about.st_size > LARGEST:
            raise ValueError(f"{about.st_size >> 20} MB; at most {LARGEST >> 20}")
        return f.read(LARGEST)


def hints(folder: Path, hole) -> int:
    """How many the student took, if the folder says so."""
    try:
        n = json.loads(_content(folder / ".course.json"))["holes"][hole.id]["hints"]
        return n if type(n) is int and 0 <= n <= len(hole.hints) else 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def key(work: Path, holes: Iterable, seed: int) -> str:
    """Changes with the answers, the exercises, what judges them, and the seed: a grade with this key stands."""
    h = hashlib.sha256(str(seed).encode())
    holes = list(holes)
    files = [work / x.file for x in holes] + [source.file_of(x.module) for x in holes]
    files += [x.folder / "chapter.toml" for x in holes] + sorted(Path(course.__file__).parent.rglob("*.py"))
    for file in files:
        h.update(f"\0{file.name}\0".encode())
        if file.exists():
            h.update(file.read_bytes())
    return h.hexdigest()
