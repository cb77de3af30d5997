"""List public functions and classes whose docstring has no `Args:` section, although they have parameters.

    python tools/check_args.py              print the number for each file
    python tools/check_args.py --show PATH  list the names of a file or folder below src/flowedu

The tool checks the names in tests/public_names.txt and the methods of Tensor. A function with several names
counts once. The parameters `self` and `name` (the name of an op in a job) do not count, nor do a decorator's
`*args` and `**kwargs`. Exception classes share the parameters of FlowError.
tests/structure/test_docstrings.py limits the number.
"""
from __future__ import annotations

import argparse
import inspect
import sys
from collections import Counter
from enum import EnumMeta
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book"))
import entries  # noqa: E402
import names  # noqa: E402

UNCOUNTED = {"self", "cls", "name", "args", "kwargs"}


class Undocumented(NamedTuple):
    """A public name without an `Args:` section, the file that defines it, and its parameters."""

    name: str
    file: str
    parameters: tuple[str, ...]


def read_parameters(x: object) -> tuple[str, ...]:
    """Return the names of the parameters that count, or () for an enum or an unknown signature."""
    if isinstance(x, EnumMeta):
        return ()
    try:
        parameters = inspect.signature(x).parameters
    except (ValueError, TypeError):
        return ()
    return tuple(name for name in parameters if name not in UNCOUNTED)


def find_undocumented() -> list[Undocumented]:
    """Return the public functions and classes with parameters and without an `Args:` section."""
    found = []
    for name in names.places():
        value = names.value(name)
        if entries.kind(value) not in ("function", "class") or names.originals().get(name, name) != name:
            continue
        if inspect.isclass(value) and issubclass(value, BaseException):
            continue
        parameters = read_parameters(value)
        if parameters and "Args:" not in entries.text(name, value):
            found.append(Undocumented(name, entries.source(value)[0], parameters))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="List public names without an Args section.")
    parser.add_argument("--show", metavar="PATH", help="list the names of a file or folder below src/flowedu")
    options = parser.parse_args()
    undocumented = find_undocumented()
    if options.show:
        folder = f"src/flowedu/{options.show}".rstrip("/")
        for name, file, parameters in undocumented:
            if file == folder or file.startswith(f"{folder}/"):
                print(f"{file}: {name}({', '.join(parameters)})")
        return 0
    for file, count in Counter(u.file for u in undocumented).most_common():
        print(f"{count:5}  {file}")
    print(f"{len(undocumented):5}  public names without an Args section")
    return 0


if __name__ == "__main__":
    sys.exit(main())
