"""Count the lines of each folder for the table in ARCHITECTURE.md.

    python tools/sizes.py            write the table
    python tools/sizes.py --check    exit with 1 if a number is off by more than a tenth and 200 lines

Lines are all lines of Python, Cython, C, C++, and CUDA C that git tracks: code, comments, and blank lines.
"""
from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "flowedu"
PAGE = ROOT / "ARCHITECTURE.md"
SOURCES = {".py", ".pyx", ".pxd", ".pxi", ".h", ".hpp", ".cpp", ".cu"}
GROUPS = {
    "the core": ("core", "_kernels/core"),
    "names for users": ("tensor", "autograd", "nn", "optim", "utils", "distributed", "oneflow04",
                        "distributions", "vision", "models", "mock"),
    "internals": ("ops", "fast", "_kernels/ops", "_kernels/fast", "_kernels/cuda", "cuda", "saving",
                  "onnx", "show", "errors", "diagnostics", "swap"),
}
HEAD = "| group | folders of `src/flowedu/`, with lines | lines |\n|---|---|---|\n"
TABLE = re.compile(re.escape(HEAD) + r"(?:\|.*\n)+")


def count_lines(folder: str) -> int:
    """Return the number of lines of the sources in a folder and its subfolders."""
    command = ["git", "ls-files", "-z", folder]
    listed = subprocess.run(command, cwd=PACKAGE, capture_output=True, encoding="utf-8", check=True).stdout
    files = [PACKAGE / name for name in listed.split("\0") if Path(name).suffix in SOURCES]
    return sum(len(f.read_text(encoding="utf-8").splitlines()) for f in files if f.is_file())


def make_table() -> str:
    """Return the table in Markdown, with lines rounded to hundreds."""
    rows = []
    for group, folders in GROUPS.items():
        sizes = {folder: count_lines(folder) for folder in folders}
        cells = ", ".join(f"`{folder}/` {round(n, -2):,}" for folder, n in sizes.items())
        rows.append(f"| {group} | {cells} | {round(sum(sizes.values()), -2):,} |\n")
    return HEAD + "".join(rows)


def _read(table: str) -> dict[str, int]:
    """Return {folder: number of lines} of a table."""
    return {name: int(n.replace(",", "")) for name, n in re.findall(r"`([\w/]+)/` ([\d,]+)", table)}


def differences(stated: str, actual: str) -> list[str]:
    """Describe folders that only one table has, or whose lines differ by more than a tenth and 200 lines."""
    old, new = _read(stated), _read(actual)
    return [f"{name}: stated {old.get(name)}, counted {new.get(name)}" for name in sorted(
        old.keys() | new.keys())
            if name not in old or name not in new or abs(old[name] - new[name]) > max(200, new[name] / 10)]


def main() -> int:
    """Write or check the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true",
                        help="write nothing; exit with 1 if a folder is off by a tenth and 200 lines")
    options = parser.parse_args()
    text = PAGE.read_text(encoding="utf-8")
    table = make_table()
    stated, = TABLE.findall(text)
    if options.check:
        wrong = differences(stated, table)
        print("\n".join(wrong))
        return int(bool(wrong))
    PAGE.write_text(TABLE.sub(lambda _: table, text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
