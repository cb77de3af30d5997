"""Texts for students, in English or Chinese.

The first set variable among FLOWEDU_LANG, LC_ALL, LC_MESSAGES, and LANG selects the language: Chinese if its
value begins with zh, otherwise English. The English text in the source is the key of a translation table.
Texts without an entry stay English.
chapters/zh.toml has the output of commands and laws. chapters/*/chapter.zh.toml has the texts of exercises,
each with a fingerprint of its English original. If the original has changed, the English text is shown.
"""
from __future__ import annotations

import errno
import functools
import os
import re
import sys
import tomllib
import unicodedata
from collections.abc import Iterable
from hashlib import sha256
from locale import getpreferredencoding
from pathlib import Path

from flowedu_course.blocks import headings, slug
from flowedu_course.course import HOME

SETTINGS = ("FLOWEDU_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
HOLE = re.compile(r"\{(\w+)\}")                    # a placeholder in a text
# What to do when a file cannot be read or written.
FIXES = (((errno.ENOENT,), "the tree needs this file: copy it from the original tree"),
         ((errno.EACCES, errno.EPERM, errno.EROFS),
          "change the permissions, or use another folder: WORK=another"),
         ((errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ELOOP),
          "move the file or folder of that name, or use another folder: WORK=another"),
         ((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "free some disk space; the work files are unchanged"))


def language() -> str:
    """Return "zh" or "en". It is "en" if the encoding cannot represent Chinese."""
    asked = next(filter(None, map(os.environ.get, SETTINGS)), "")
    writes = (getpreferredencoding(False), getattr(sys.stdout, "encoding", None) or "utf-8")
    return "zh" if asked.lower().startswith("zh") and all("utf" in e.lower() for e in writes) else "en"


def tr(text: str, into: str = "", **values: object) -> str:
    """Return a text in the reader's language, or in language `into`, with values filled in.

    Without values, the text may also be a line with values filled in, which are then also translated.
    """
    chinese = (into or language()) == "zh"
    if values:
        known = table().get(text, text) if chinese else text
        return HOLE.sub(lambda m: str(values[m[1]]), known)
    return _line(text) if chinese else text


def _line(text: str) -> str:
    if (known := table().get(text)) is not None:
        return known
    for pattern, chinese in _patterns():
        if m := pattern.fullmatch(text):
            return HOLE.sub(lambda h, m=m: _line(m[h[1]]), chinese)
    return text


def short(hole) -> str:
    """Return an exercise's number and its title up to the colon."""
    return f"{hole.id} {re.split('[:：]', tr(hole.title))[0].strip()}"


def page(hole) -> str:
    """Return the page of an exercise, in the reader's language if it exists, with the same heading."""
    path, _, anchor = hole.page.partition("#")
    english, chinese = HOME / path, (HOME / path).with_suffix(".zh.md")
    if language() == "en" or not chinese.exists():
        return hole.page
    at = [slug(title) for title in headings(english.read_text(encoding="utf-8"))].index(anchor)
    return f"{Path(path).with_suffix('.zh.md')}#{slug(headings(chinese.read_text(encoding='utf-8'))[at])}"


@functools.cache
def _common() -> dict[str, dict[str, str]]:
    """Return the sections of chapters/zh.toml."""
    file = HOME / "chapters" / "zh.toml"
    return _read(file) if file.exists() else {}


@functools.cache
def table() -> dict[str, str]:
    """Return {English: Chinese}."""
    translations: dict[str, str] = {}
    for section in _common().values():
        translations |= section
    for file in sorted(HOME.glob("chapters/*/chapter.zh.toml")):
        if file.with_name("chapter.toml").exists():
            translations |= _of_chapter(_read(file.with_name("chapter.toml")), _read(file))
    return translations


def _of_chapter(english: dict, chinese: dict) -> dict[str, str]:
    rows, found = {row["id"]: row for row in english.get("hole", [])}, {english["title"]: chinese["title"]}
    if "milestone" in english:
        found[english["milestone"]["title"]] = chinese["milestone"]
    for row in chinese.get("hole", []):
        theirs = rows.get(row["id"])
        if theirs is not None and row["made_from"] == fingerprint(theirs):
            found |= {theirs[k]: row[k] for k in ("title", "task", "example") if k in row}
            for k in ("uses", "hints"):
                found |= zip(theirs.get(k, ()), row.get(k, ()))
    return found


def fingerprint(row: dict) -> str:
    """Return a hash of an exercise's English texts."""
    texts = (row["title"], row["task"], row.get("example", ""), *row.get("uses", ()), *row["hints"])
    return sha256("\n".join(" ".join(t.split()) for t in texts).encode()).hexdigest()[:12]


@functools.cache
def _patterns() -> list[tuple[re.Pattern, str]]:
    """Return the table's lines as (pattern, Chinese), those with the most fixed text first."""
    lines = sorted(_common().get("lines", {}).items(), key=lambda row: -len(HOLE.sub("", row[0])))
    parts = [(HOLE.split(text), chinese) for text, chinese in lines]
    return [(re.compile("".join(f"(?P<{t}>.*)" if i % 2 else re.escape(t) for i, t in enumerate(split))),
             chinese)
            for split, chinese in parts]


def _read(file: Path) -> dict:
    return tomllib.loads(file.read_text(encoding="utf-8"))


def describe_system_error(error: OSError, work: Path) -> str:
    """Return the system's message about a file, with a fix."""
    fix = next((text for codes, text in FIXES if error.errno in codes), "the work files are unchanged")
    return f"{error.strerror}: {error.filename or work}; {fix}"


def spans(ids: Iterable[str]) -> str:
    """Return numbers of exercises as "1.1-1.3, 2.2, 2.h1", in order. A span has at least three numbers."""
    there = sorted({(int(c), kind, int(n)) for c, kind, n in (re.split(r"\.(\D*)", id) for id in ids)})
    runs: list[list[tuple[int, str, int]]] = []
    for c, kind, n in there:
        if runs and runs[-1][-1] == (c, kind, n - 1):
            runs[-1].append((c, kind, n))
        else:
            runs.append([(c, kind, n)])
    names = [["{}.{}{}".format(*parts) for parts in run] for run in runs]
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(run) for run in names)


# ---- terminal columns; a Chinese character takes two
def columns(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def padded(text: str, width: int) -> str:
    """Pad a text with spaces to `width` columns."""
    return text + " " * (width - columns(text))


def cut(text: str, width: int = 100) -> str:
    """Cut a text to `width` columns."""
    text = text[:width]                                # each character takes at least one column
    while columns(text) > width:
        text = text[:-1]
    return text
