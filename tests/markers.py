"""Marks that follow from the tests themselves.

torch_tests finds the tests that compare with PyTorch, because they or helpers in the same file import it.
repeated_combinations finds cases of one law that `make test` leaves out: combinations of parameters that add
no new value of a parameter, and two thirds of the cases of laws with very many.
"""
import ast
import functools
import zlib
from collections.abc import Iterable
from pathlib import Path

FEW = 24                        # cases of one function that always run
MANY = 96                       # of more cases than these, a third runs


def imports_torch(node: ast.AST) -> bool:
    """Return True if the code imports torch or calls pytest.importorskip with it."""
    for n in ast.walk(node):
        if isinstance(n, ast.Call) and getattr(n.func, "attr", getattr(n.func, "id", "")) == "importorskip":
            name = n.args[0].value if n.args and isinstance(n.args[0], ast.Constant) else ""
        elif isinstance(n, (ast.Import, ast.ImportFrom)):
            name = n.names[0].name if isinstance(n, ast.Import) else n.module or ""
        else:
            continue
        if name.split(".")[0] == "torch":
            return True
    return False


@functools.cache
def torch_tests(file: Path) -> frozenset[str]:
    """Return the names of the functions of a file that need PyTorch: all, if the file itself imports it."""
    if "torch" not in (text := file.read_text(encoding="utf-8")):
        return frozenset()
    top = ast.parse(text).body
    kinds = (ast.FunctionDef, ast.ClassDef)
    functions = {n.name: n for n in top if isinstance(n, kinds)}
    if any(imports_torch(n) for n in top if not isinstance(n, kinds)):
        return frozenset(functions)
    found = {name for name, node in functions.items() if imports_torch(node)}
    while more := {name for name, node in functions.items() if name not in found and any(
            isinstance(n, ast.Name) and n.id in found for n in ast.walk(node))}:
        found |= more
    return frozenset(found)


def repeated_combinations(items: Iterable, turn: int) -> list:
    """Return the cases of large families of tests that a quick run leaves out. `turn` varies which ones.

    A function with several `parametrize` marks and more than FEW cases runs for every combination. Of these,
    enough are left out that every value of every parameter runs once. If more than MANY cases remain, only a
    third of them runs.
    """
    families: dict[str, list] = {}
    for item in items:
        if hasattr(item, "callspec"):
            families.setdefault(item.nodeid.split("[")[0], []).append(item)

    repeated = []
    for family in families.values():
        if len(family) > FEW:
            seen: set[tuple[int, str]] = set()
            for item in sorted(family, key=lambda item: zlib.crc32(f"{turn} {item.nodeid}".encode())):
                values = set(enumerate(item.callspec._idlist))      # one id per `parametrize`
                if values <= seen:
                    repeated.append(item)
                seen |= values
            left_out = {id(item) for item in repeated}
            remaining = [item for item in family if id(item) not in left_out]
            if len(remaining) > MANY:
                repeated += [item for item in remaining if (zlib.crc32(item.nodeid.encode()) + turn) % 3]
    return repeated
