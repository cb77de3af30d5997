"""The import rule: a module imports only from its own row of this table or from rows above. Function-level imports count
too, unless listed as the way back that a front end needs."""
import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import flowedu

ROOT = Path(flowedu.__file__).parent
ROWS = [
    {"errors", "later"},
    {"blob", "typing", "_kernels", "core"},
    {"ops", "autograd", "device", "cuda", "tensor"},
    {"context", "frontend", "hints", "math", "array_ops", "index_ops", "matrix_ops", "shape_ops", "sort_ops",
     "random_ops", "linalg", "generations", "variables", "initializers", "regularizers", "conv_layers", "layers", "nn",
     "optim", "optimizer", "losses", "random", "data", "dynamic", "sysconfig", "custom", "saving", "utils"},
    {"graph"},
    {"dist"},
    {"job", "advanced", "deprecated", "unittest"},
    {"nn.graph", "vision", "models"},
    {"learn", "show", "experimental", "onnx", "__init__"},
]
ROW = {name: i for i, row in enumerate(ROWS) for name in row}


def part(module: str) -> str:
    """The first name below flowedu; nn.graph, which is chapter 5, has a row of its own."""
    names = module.split(".")[1:]
    return "nn.graph" if names[:2] == ["nn", "graph"] else names[0] if names else "__init__"


def home(path: Path) -> str:
    names = path.relative_to(ROOT).with_suffix("").parts
    return part(".".join(("flowedu", *names)))


def imports(path: Path):
    """(line, module) of every import of flowedu in a Python or Cython file."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("flowedu"):
                if node.module == "flowedu":
                    yield from ((node.lineno, f"flowedu.{a.name}") for a in node.names)
                else:
                    yield node.lineno, node.module
            elif isinstance(node, ast.Import):
                yield from ((node.lineno, a.name) for a in node.names if a.name.startswith("flowedu"))
    else:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            words = line.split()
            if len(words) > 1 and words[0] in ("from", "cimport", "import") and words[1].startswith("flowedu"):
                yield number, words[1]


FILES = [p for p in sorted(ROOT.rglob("*")) if p.suffix in (".py", ".pyx", ".pxd")]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path):
    here = home(path)
    assert here in ROW, f"{here} is in no row of the table above"
    for line, module in imports(path):
        there = part(module)
        assert there in ROW, f"{path.name}:{line} imports {module}, which is in no row"
        if path == ROOT / "nn" / "__init__.py":             # a list of names: flow.nn.Graph is one
            continue
        assert ROW[there] <= ROW[here], f"{path.name}:{line}: {here} (row {ROW[here]}) imports {there} (row {ROW[there]})"


def test_the_table_covers_the_package():
    found = {home(p) for p in FILES}
    assert found <= set(ROW)


def test_the_rule_can_fail(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("from flowedu.job.function import global_function\n")
    assert [m for _, m in imports(bad)] == ["flowedu.job.function"]
    assert ROW["job"] > ROW["ops"]


def test_an_import_brings_nothing_heavy_along():
    script = ("import sys, flowedu; heavy = {'torch', 'matplotlib', 'PIL', 'google.protobuf', 'multiprocessing', 'onnx', "
              "'tqdm', 'unittest', 'concurrent.futures', 'urllib.request', 'flowedu.nn.graph', 'flowedu.vision.models'}; "
              "print(sorted(heavy & set(sys.modules)))")
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT.parent)})
    assert said.stdout.strip() == "[]"


LATER = [("flowedu", "load_graph"), ("flowedu", "onnx"), ("flowedu.nn", "Graph"), ("flowedu.utils", "data"),
         ("flowedu.models", "GPT"), ("flowedu.vision", "models")]


@pytest.mark.parametrize("module, name", LATER)
def test_what_is_imported_later_is_there(module, name):
    m = importlib.import_module(module)
    assert name in dir(m) and getattr(m, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(m, "nothing")  # noqa: B009
