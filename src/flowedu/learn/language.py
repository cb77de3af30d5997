"""Texts for students in their own language: Chinese where the first that is set of FLOWEDU_LANG, LC_ALL, LC_MESSAGES and
LANG begins with zh, else English.

Sources have the English, which is the key of one table, and what has no entry stays English. chapters/zh.toml holds what
commands and laws say; chapters/*/chapter.zh.toml the texts of exercises, each with the fingerprint of the English that it
was made from: where that was changed since, the English is shown.
"""
from __future__ import annotations

import functools
import os
import re
import sys
import tomllib
import unicodedata
from hashlib import sha256
from locale import getpreferredencoding
from pathlib import Path

from flowedu.learn.blocks import headings, slug
from flowedu.learn.source import HOME

SETTINGS = ("FLOWEDU_LANG", "LC_ALL", "LC_MESSAGES", "LANG")
HOLE = re.compile(r"\{(\w+)\}")                    # in a text: what is filled in


def language() -> str:
    """"zh" or "en"; English, too, where Chinese letters could not be written."""
    asked = next(filter(None, map(os.environ.get, SETTINGS)), "")
    writes = (getpreferredencoding(False), getattr(sys.stdout, "encoding", None) or "utf-8")
    return "zh" if asked.lower().startswith("zh") and all("utf" in e.lower() for e in writes) else "en"


def tr(text: str, into: str = "", **values: object) -> str:
    """A text in the reader's language (or in this one), with values filled in. Without values it may also be a line that
    was made of a text of the table: what was filled in is found in it, and translated in its turn."""
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
    """An exercise's number, and its title up to the colon."""
    return f"{hole.id} {re.split('[:：]', tr(hole.title))[0].strip()}"


def page(hole) -> str:
    """Where to read of an exercise: the page in the reader's language, at the same heading, where there is one."""
    path, _, anchor = hole.page.partition("#")
    english, chinese = HOME / path, (HOME / path).with_suffix(".zh.md")
    if language() == "en" or not chinese.exists():
        return hole.page
    at = [slug(title) for title in headings(english.read_text(encoding="utf-8"))].index(anchor)
    return f"{Path(path).with_suffix('.zh.md')}#{slug(headings(chinese.read_text(encoding='utf-8'))[at])}"


@functools.cache
def _common() -> dict[str, dict[str, str]]:
    """The sections of chapters/zh.toml."""
    file = HOME / "chapters" / "zh.toml"
    return _read(file) if file.exists() else {}


@functools.cache
def table() -> dict[str, str]:
    """{English: Chinese}."""
    found: dict[str, str] = {}
    for section in _common().values():
        found |= section
    for file in sorted(HOME.glob("chapters/*/chapter.zh.toml")):
        if file.with_name("chapter.toml").exists():
            found |= _of_chapter(_read(file.with_name("chapter.toml")), _read(file))
    return found


def _of_chapter(english: dict, chinese: dict) -> dict[str, str]:
    rows, found = {row["id"]: row for row in english.get("hole", [])}, {english["title"]: chinese["title"]}
    if "milestone" in english:
        found[english["milestone"]["title"]] = chinese["milestone"]
    for row in chinese.get("hole", []):
        theirs = rows.get(row["id"])
        if theirs is not None and row["made_from"] == fingerprint(theirs):
            found |= {theirs[k]: row[k] for k in ("title", "task", "example") if k in row}
            found |= zip(theirs["hints"], row["hints"])
    return found


def fingerprint(row: dict) -> str:
    """Of an exercise's English."""
    texts = (row["title"], row["task"], row.get("example", ""), *row["hints"])
    return sha256("\n".join(" ".join(t.split()) for t in texts).encode()).hexdigest()[:12]


@functools.cache
def _patterns() -> list[tuple[re.Pattern, str]]:
    """The section of lines, as patterns; those that say most come first."""
    lines = sorted(_common().get("lines", {}).items(), key=lambda row: -len(HOLE.sub("", row[0])))
    parts = [(HOLE.split(text), chinese) for text, chinese in lines]
    return [(re.compile("".join(f"(?P<{t}>.*)" if i % 2 else re.escape(t) for i, t in enumerate(split))), chinese)
            for split, chinese in parts]


def _read(file: Path) -> dict:
    return tomllib.loads(file.read_text(encoding="utf-8"))


# ---- columns of a terminal: a Chinese letter takes two
def columns(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def padded(text: str, width: int) -> str:
    """With blanks behind it, up to so many columns."""
    return text + " " * (width - columns(text))


def cut(text: str, width: int = 100) -> str:
    """What fits into so many columns."""
    text = text[:width]                                # a letter takes one at least
    while columns(text) > width:
        text = text[:-1]
    return text
