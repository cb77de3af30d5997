"""docs/by_hand.md lists the parts that are written by hand although a library exists, with the reasons."""
import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "flowedu"
SOURCES = {".py", ".pyx", ".pxd", ".pxi", ".h", ".cpp", ".cu", ".js"}
TABLE = (ROOT / "docs" / "by_hand.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.splitlines()
        if line.startswith("| ")][1:]
# A file that imports one of these modules parses a format, a terminal, or a stream by hand.
LOW = {"struct", "mmap", "termios", "select", "selectors", "html", "unicodedata"}


def places(cell: str) -> list[Path]:
    """Return the paths of a cell, relative to the package or, if missing there, to the repository."""
    return [next((p for p in (PACKAGE / w, ROOT / w) if p.exists()),
                 ROOT / w) for w in re.findall(r"`([^`]+)`", cell)]


def lines(place: Path) -> int:
    files = [place] if place.is_file() else [p for p in place.rglob("*") if p.suffix in SOURCES]
    return sum(len(p.read_text(encoding="utf-8").splitlines()) for p in files)


def low(source: str) -> set[str]:
    """Return the modules of LOW that a file imports."""
    nodes = [*ast.walk(ast.parse(source))]
    names = {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
    return LOW & {n.partition(".")[0] for n in names | {n.module or "" for n in nodes
                                                        if isinstance(n, ast.ImportFrom)}}


def test_each_row_of_the_table_has_a_reason():
    assert len(ROWS) > 20 and all(len(row) == 5 and all(row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_files_of_a_row_exist_and_have_about_the_stated_length(row):
    found = places(row[1])
    assert found and not [p for p in found if not p.exists()]
    there, said = sum(map(lines, found)), int(row[2])
    assert (abs(there
                - said) <= said
            / 3), f"{row[1]} has {there} lines by now, not {said}: change the row, or drop it"


def test_code_that_parses_bytes_or_terminals_is_listed():
    """core, which is the course, and cuda, which packs kernel arguments, are exempt."""
    listed = [p for row in ROWS for p in places(row[1])]
    files = [*PACKAGE.rglob("*.py"), *(ROOT / "course").rglob("*.py"), *(ROOT / "book").glob("*.py"),
             *(ROOT / "tools").glob("*.py")]
    files = [p for p in files
             if not {"core", "cuda"} & {*p.relative_to(ROOT).parts[:3]}]
    lack = {str(p.relative_to(ROOT)): low(p.read_text("utf-8")) for p in files
            if not any(p.is_relative_to(q) for q in listed)}
    assert not {p: names for p, names in lack.items() if names}


def test_low_level_imports_are_found():
    assert (low("def f():\n    from struct import pack\nimport html.parser") == {"struct", "html"}
            and not low("import io"))
