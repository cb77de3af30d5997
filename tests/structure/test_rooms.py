"""Rules for folders of core and its kernels: each lists its files in reading order; a lesson names each."""
import ast
import re
from pathlib import Path

import pytest

import flowedu

ROOT = Path(flowedu.__file__).parent
PAGES = {p: p.read_text(encoding="utf-8") for p in sorted((ROOT.parents[1] / "chapters").glob("*/*.md"))
         if not p.name.endswith(".zh.md")}
SOURCES = {".py", ".pyx", ".pxd", ".pxi", ".h"}
ROW = re.compile(r"^    ([\w.]+(?:/|\.\w+)(?:, [\w.]+\.\w+)?)  +(?:\((\d)\) )?\S", re.MULTILINE)
ROOMS = sorted(p.parent for folder in ("core", "_kernels/core") for p in (ROOT / folder).rglob("__init__.py"))
# Files of core/eager that a later chapter reads. Add no file here.
LATER = {"lazy.pxi": 4, "global.pxi": 6, "device.pxi": 8}


def contents(room: Path) -> set[str]:
    """Return the names of the files of a folder, and of its subfolders with a slash."""
    return {p.name + "/" * p.is_dir() for p in room.iterdir()
            if p.suffix in SOURCES and p.name != "__init__.py" or (p / "__init__.py").exists()}


def read_list(room: Path) -> list[tuple[str, int]]:
    """Return (file, chapter or 0 if the list has none), in the order of the list."""
    said = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8")), clean=False) or ""
    return [(name, int(chapter or 0)) for names, chapter in ROW.findall(said) for name in names.split(", ")]


def chapter_of(room: Path) -> int:
    """Return the chapter in the first line of __init__.py of the folder, or of a parent folder; else 9."""
    found = re.match(r'"""Chapter (\d):', (room / "__init__.py").read_text(encoding="utf-8"))
    return int(found[1]) if found else chapter_of(room.parent) if room.parent != ROOT else 9


def test_each_folder_of_core_names_its_chapter():
    assert [room.name for room in ROOMS if room.parent == ROOT / "core" and chapter_of(room) == 9] == []


def lessons_of(file: Path, pages: dict[Path, str]) -> list[int]:
    """Return the chapters whose pages name a file by its path, by folder and name, or by a unique name."""
    path = file.relative_to(ROOT.parent.parent).as_posix()
    folder = path.rpartition("/")[0]
    alone = len([*ROOT.rglob(file.name)]) == 1
    return sorted({int(page.parent.name[:2]) for page, text in pages.items()
                   if f"`{path}`" in text or f"`{file.name}`" in text and (alone or f"`{folder}/`" in text)})


def faults(room: Path, pages: dict[Path, str] = PAGES) -> list[str]:
    """Return the wrong and missing entries in the list of a folder."""
    rows, there = read_list(room), contents(room)
    names = [name for name, _ in rows]
    found = [f"{n}: named {names.count(n)} times" for n in sorted(there) if names.count(n) != 1]
    found += [f"{n}: not there" for n in names if n not in there]
    own = chapter_of(room)
    for name, later in rows:
        if name in there and not name.endswith("/"):
            first = re.match(r'(?:# |"""|/\* )Chapters? (\d)', (room / name).read_text(encoding="utf-8"))
            read = lessons_of(room / name, pages)
            if not read:
                found.append(f"{name}: no lesson names it")
            elif min(read) > (later or own):
                found.append(f"{name}: first named in chapter {min(read)}, listed in chapter {later or own}")
            if first and int(first[1]) > (later or own):
                found.append(f"{name}: its first line says chapter {first[1]}, its list {later or own}")
    return found


@pytest.mark.parametrize("room", ROOMS, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_folder_lists_its_files_and_lessons_name_them(room):
    assert faults(room) == []


def test_only_listed_files_are_read_in_a_later_chapter():
    assert {name: chapter for room in ROOMS for name, chapter in read_list(room) if chapter} == LATER
    assert len(ROOMS) > 12 and sum(len(read_list(room)) for room in ROOMS) > 120


def test_wrong_lists_are_found(tmp_path, monkeypatch):
    root = tmp_path / "src" / "flowedu"
    room = root / "core" / "ops"
    room.mkdir(parents=True)
    monkeypatch.setitem(globals(), "ROOT", root)
    files = {"twice.py": "", "left_out.pyx": "", "right.h": "", "unread.py": "", "six.py": "",
             "late.pxi": "# Chapter 6: later\n"}
    for name, text in files.items():
        (room / name).write_text(text, encoding="utf-8")
    (room / "__init__.py").write_text(
        '"""Chapter 2: ops.\n\n    twice.py   a\n    twice.py   b\n    right.h    c\n    gone.py    d\n    '
        'unread.py  e\n    late.pxi   f\n    six.py     g\n"""\n')
    pages = {Path("02_ops/README.md"): "`src/flowedu/core/ops/`: `twice.py`, `right.h`, `late.pxi`, "
             "`left_out.pyx`", Path("06_sbp/README.md"): "`src/flowedu/core/ops/six.py`"}
    assert faults(room, pages) == [
        "left_out.pyx: named 0 times", "twice.py: named 2 times", "gone.py: not there",
        "unread.py: no lesson names it",
        "late.pxi: its first line says chapter 6, its list 2",
        "six.py: first named in chapter 6, listed in chapter 2"]
