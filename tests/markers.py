"""Which tests compare with PyTorch: those that import it, or whose helpers in the same file do."""
import ast
import functools
from pathlib import Path


def imports_torch(node: ast.AST) -> bool:
    """Whether the code imports torch, or asks pytest to skip without it."""
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
    """The names of the functions of a file that need PyTorch; all of them when the file itself imports it."""
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
