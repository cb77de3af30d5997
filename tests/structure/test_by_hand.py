"""docs/by_hand.md lists the parts that are written by hand although a library exists, with the reasons."""
import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "flowedu"
SOURCES = {".py", ".pyx", ".pxd", ".pxi", ".h", ".cpp", ".cu", ".js"}
TABLE = (ROOT / "docs" / "by_hand.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.splitlines() if line.startswith("| ")][1:]
# Who imports one of these reads a format, a terminal or a stream himself.
LOW = {"struct", "mmap", "termios", "select", "selectors", "html", "unicodedata"}


def places(cell: str) -> list[Path]:
    """The paths of a cell: below the package, or else below the repository."""
    return [next((p for p in (PACKAGE / w, ROOT / w) if p.exists()), ROOT / w) for w in re.findall(r"`([^`]+)`", cell)]


def lines(place: Path) -> int:
    files = [place] if place.is_file() else [p for p in place.rglob("*") if p.suffix in SOURCES]
    return sum(len(p.read_text(encoding="utf-8").splitlines()) for p in files)


def low(source: str) -> set[str]:
    """What of LOW a file imports."""
    nodes = [*ast.walk(ast.parse(source))]
    names = {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
    return LOW & {n.partition(".")[0] for n in names | {n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)}}


def test_there_is_a_table_and_each_row_says_why():
    assert len(ROWS) > 20 and all(len(row) == 5 and all(row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_is_of_files_that_are_there_and_of_about_that_length(row):
    found = places(row[1])
    assert found and not [p for p in found if not p.exists()]
    there, said = sum(map(lines, found)), int(row[2])
    assert abs(there - said) <= said / 3, f"{row[1]} has {there} lines by now, not {said}: change the row, or drop it"


def test_who_reads_bytes_or_a_terminal_himself_has_a_row():
    """core is the course, and cuda packs the arguments of kernels. (Others talk by libraries: mpi4py, protobuf, Pillow.)"""
    listed = [p for row in ROWS for p in places(row[1])]
    files = [p for p in (*PACKAGE.rglob("*.py"), *(ROOT / "book").glob("*.py"), *(ROOT / "tools").glob("*.py"))
             if not {"core", "cuda"} & {*p.relative_to(ROOT).parts[:3]}]
    lack = {str(p.relative_to(ROOT)): low(p.read_text("utf-8")) for p in files
            if not any(p.is_relative_to(q) for q in listed)}
    assert not {p: names for p, names in lack.items() if names}


def test_an_import_is_seen():
    assert low("def f():\n    from struct import pack\nimport html.parser") == {"struct", "html"} and not low("import io")
