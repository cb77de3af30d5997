"""The import rule: a module imports only from its own row of this table or from rows above. Function-level imports count
too, unless listed as the way back that a front end needs."""
import ast
import importlib
import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

import flowedu
from common import HANGS

ROOT = Path(flowedu.__file__).parent
ROWS = [
    {"errors", "faces", "nearest", "later", "once"},
    {"blob", "_kernels", "core", "dist.comm"},
    {"ops", "autograd", "device", "cuda", "tensor", "calls"},
    {"context", "frontend", "hints", "math", "array_ops", "index_ops", "matrix_ops", "shape_ops", "sort_ops",
     "random_ops", "linalg", "variables", "initializers", "regularizers", "conv_layers", "layers", "nn",
     "optim", "optimizer", "losses", "random", "data", "dynamic", "sysconfig", "custom", "saving", "utils"},
    {"graph"},
    {"dist", "sbp", "boxing", "distributed", "comm"},
    {"job", "advanced", "oneflow04"},
    {"nn.graph", "vision", "models"},
    {"learn", "show", "onnx", "__init__"},
]
ROW = {name: i for i, row in enumerate(ROWS) for name in row}


def part(module: str) -> str:
    """The first name below flowedu; nn.graph, which is chapter 5, and dist.comm, which needs nothing, have own rows."""
    names = module.split(".")[1:]
    two = ".".join(names[:2])
    return two if two in ROW else names[0] if names else "__init__"


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
              "'tqdm', 'unittest', 'concurrent.futures', 'urllib.request', 'flowedu.nn.graph', 'flowedu.vision.models', "
              "'flowedu.data', 'flowedu.custom', 'flowedu.saving', 'flowedu.dynamic.image'}; "
              "print(sorted(heavy & set(sys.modules)))")
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=HANGS, check=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT.parent)})
    assert said.stdout.strip() == "[]"


def test_an_import_starts_no_thread_and_leaves_the_environment():
    script = ("import os, sys, numpy; t = '/proc/self/task'; n = lambda: len(os.listdir(t)) if os.path.isdir(t) else 0; "
              "before = n(), dict(os.environ); import flowedu; print(before == (n(), dict(os.environ)))")
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "OPENBLAS_"))}
    for threads in ({}, {"OPENBLAS_NUM_THREADS": "2"}, {"GOMP_SPINCOUNT": "7"}):
        said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=HANGS, check=True,
                              env={**plain, "PYTHONPATH": str(ROOT.parent), **threads})
        assert said.stdout.strip() == "True"


LATER = [("flowedu", "load_graph"), ("flowedu", "onnx"), ("flowedu", "data"), ("flowedu", "save"), ("flowedu", "train"),
         ("flowedu", "custom_op"), ("flowedu", "image_decode"), ("flowedu.nn", "Graph"), ("flowedu.utils", "data"),
         ("flowedu.models", "GPT"), ("flowedu.vision", "models")]


@pytest.mark.parametrize("module, name", LATER)
def test_what_is_imported_later_is_there(module, name):
    m = importlib.import_module(module)
    assert name in dir(m) and getattr(m, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(m, "nothing")  # noqa: B009


def test_what_is_imported_later_may_have_another_name_there():
    from flowedu.dynamic import image
    assert flowedu.image_decode is image.decode and flowedu.image is image


def test_a_star_brings_every_public_name():
    names = {}
    exec("from flowedu import *", names)
    assert {"Tensor", "nn", "add", *(n for m, n in LATER if m == "flowedu")} <= {*names}
    assert names["save"] is flowedu.save and "_later" not in names


def test_no_folder_of_tests_is_left_out(pytestconfig):
    """pytest leaves out folders of some names unless told otherwise; `dist` is one of them."""
    patterns = pytestconfig.getini("norecursedirs")
    folders = [p.parent.name for p in Path(__file__).parent.rglob("test_*.py")]
    assert "dist" in folders and not [n for n in folders if any(fnmatch(n, pattern) for pattern in patterns)]
