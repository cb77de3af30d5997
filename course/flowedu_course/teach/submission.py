"""Submissions of students: the folders of a class, and the files of one. Only their text is read."""
from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from flowedu.errors import ArgumentError
from flowedu_course import course

LARGEST = 1 << 20
# Names in the output folder that do not belong to students.
RESERVED = {"grades.csv", "leaderboard.txt", "leaderboard.html", "results.json", "junit.xml", "index.html",
            "key", "work", "canvas.csv", "moodle.csv", "similar.csv"}
# Bytes of a folder's name in the output, if it has to be escaped.
LONGEST = 120


def select_holes(which: str, home: Path = course.HOME) -> list:
    """Return the holes of "4", "1-4", "fast", or "all". Raises ArgumentError if no hole matches."""
    if which == "fast":
        return course.fast_track(home)
    first, _, last = which.partition("-")
    numbers = {c.number for c in course.chapters(home) if c.holes}
    if which != "all" and not (first.isdigit() and (last or first).isdigit() and
                               {int(first), int(last or first)} <= numbers):
        raise ArgumentError(f"there is no chapter {which} with exercises", got=which,
                            expected="all, fast, a range such as 1-4, or one of "
                            + ", ".join(map(str, sorted(numbers))))
    return [h for h in course.holes(home) if which == "all" or int(first) <= h.chapter <= int(last or first)]


def copy_answers(folder: Path, to: Path, holes: Iterable) -> dict[str, str]:
    """Copy the answers to a folder and return {hole: reason why it has none}.

    Links are not followed, because they could lead to the library's answers.
    """
    to.mkdir(parents=True, exist_ok=True)
    for old in to.iterdir():
        old.unlink()
    missing = {}
    folder = _inner(folder)
    for hole in holes:
        try:
            data = _content(folder / hole.file)
            text = data.decode()
            (to / hole.file).write_text(text, encoding="utf-8")
        except FileNotFoundError:
            missing[hole.id] = f"not handed in: there is no {hole.file}"
        except UnicodeDecodeError:
            missing[hole.id] = f"{hole.file} is not UTF-8 text"
        except (OSError, ValueError) as error:
            missing[hole.id] = f"{hole.file}: {_format_error(error)}"
    return missing


def _inner(folder: Path) -> Path:
    """Return the folder of the answers: work/, if the submission has it."""
    inner = folder / "work"
    return inner if os.path.isdir(inner) and not os.path.islink(inner) else folder


def read_file(folder: Path, hole) -> tuple[tuple[int, int], bytes]:
    """Return ((device, inode), contents) of an answer.

    Raises OSError or ValueError if it is not a plain file.
    """
    file = _inner(folder) / hole.file
    about = os.lstat(file)
    return (about.st_dev, about.st_ino), _content(file)


def _format_error(error: OSError | ValueError) -> str:
    if getattr(error, "errno", 0) == errno.ELOOP:
        return "this is a link, and links are not followed: hand in the file itself"
    return getattr(error, "strerror", None) or str(error)


def _content(file: Path) -> bytes:
    fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as f:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise ValueError("not a regular file")
        if about.st_size > LARGEST:
            raise ValueError(f"{about.st_size >> 20} MB; the limit is {LARGEST >> 20} MB")
        return f.read(LARGEST)


def hints(folder: Path, hole) -> int:
    """Return the number of hints that the student took, or 0 if the folder has no record of it."""
    try:
        n = json.loads(_content(folder / ".course.json"))["holes"][hole.id]["hints"]
        return n if type(n) is int and 0 <= n <= len(hole.hints) else 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def key(work: Path, holes: Iterable, seed: int) -> str:
    """Return a hash of the answers, exercises, judge, and seed; a grade with the same key is still valid."""
    h = hashlib.sha256(str(seed).encode())
    holes = list(holes)
    files = [work / x.file for x in holes] + [x.answer_file for x in holes] + [x.source for x in holes]
    files += [x.folder / "chapter.toml" for x in holes] + sorted(Path(course.__file__).parent.rglob("*.py"))
    for file in files:
        h.update(f"\0{file.name}\0".encode())
        if file.exists():
            h.update(file.read_bytes())
    return h.hexdigest()


# ---- a class
def students(folder: Path) -> list[Path]:
    """Return the folders of students. Raises ArgumentError if no folder is found."""
    others = find_ignored(folder)
    result = sorted(p for p in folder.iterdir() if p.is_dir() and p not in others)
    if not result:
        raise ArgumentError(f"{folder} has no submissions", expected="a folder for each student", got="none")
    return result


def find_ignored(folder: Path) -> dict[Path, str]:
    """Return {path: reason} of entries that are not graded. A plain file is not a submission."""
    reasons = {}
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            reasons[path] = "not graded: this is a link, and links are not followed"
        elif path.name.startswith(".") and path.is_dir():
            reasons[path] = "not graded: a folder whose name begins with a dot"
    return reasons


def label(name: str) -> str:
    """Return a folder's name as one line of plain text; different names give different texts."""
    return "".join(c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in name)


def output_name(name: str) -> str:
    """Return the name of a student's results folder.

    It is the student's name, escaped with % if a file system, a terminal, or this program could misread it.
    """
    plain = (name.isprintable() and name == name.strip(" .") and not set(name) & set("%/\\")
             and name not in RESERVED)
    if plain:
        return name
    data = os.fsencode(name)
    first, *rest = data
    escaped = f"%{first:02x}" + "".join(chr(b) if chr(b).isascii() and chr(b).isalnum() else f"%{b:02x}"
                                        for b in rest)
    if len(escaped) <= LONGEST:
        return escaped
    return f"{escaped[:LONGEST - 34]}%%{hashlib.sha256(data).hexdigest()[:32]}"
