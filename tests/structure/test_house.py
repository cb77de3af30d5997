"""Structure of the package: import rules, thread state, extension points, light imports, and test folders.

A folder of core imports only earlier folders of COURSE and nothing outside core. The other folders do not
import each other in a circle. Imports inside functions count.
"""
import ast
import importlib
import os
import re
import subprocess
import sys
import threading
from fnmatch import fnmatch
from pathlib import Path

import pytest

import flowedu
from common import HANGS
from flowedu.core import extensions
from flowedu.core.values import thread_state as ambient
from flowedu.core.values.thread_state import during, thread_state
from flowedu.errors import UnsupportedError

ROOT, TESTS = Path(flowedu.__file__).parent, Path(__file__).parents[1]
# In reading order.
COURSE = ("values", "ops", "eager", "grad", "layers", "graph", "job", "trace", "sbp", "buffers")
# Modules that core may import in addition to its own; `_kernels` itself finds and loads the kernels.
GROUND = ("errors", "_kernels.core")
# Folders of tests without a folder of the same name in the package, with the reason.
BESIDE = {
    "array_api": "the standard's namespace, which is a folder of tensor/",
    "amp": "half precision, in every layer, op, pass and optimizer",
    "benchmarks": "benchmarks/, which no package has",
    "book": "book/, which no package has",
    "chapters": "chapters/: lessons, demos and pictures",
    "course": "needs core alone: it runs where everything else is deleted",
    "data": "utils/data, under the name that programs call it",
    "dist": "core/sbp and distributed/, which are one subject",
    "doors": "what newcomers type, in a copy of the checkout",
    "graph": "core/trace, nn/graph and onnx: nn.Graph is one subject",
    "learn": "course/flowedu_course: exercises, lessons, and grading",
    "laws": "over the registry: every op of every folder",
    "safety": "nonsense arguments, sizes and forks, whatever is called",
    "structure": "the repository itself: where things lie, names, tables",
}
FILES = [p for p in sorted(ROOT.rglob("*")) if p.suffix in (".py", ".pyx", ".pxd", ".pxi")]
MODULES = {".".join(("flowedu", *p.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
           for p in FILES}


def imports(path: Path):
    """Yield (line, module or submodule) of every import from flowedu in a Python or Cython file."""
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "flowedu":
                for name in node.names:
                    below = f"{node.module}.{name.name}"
                    yield node.lineno, below if below in MODULES else node.module
            elif isinstance(node, ast.Import):
                yield from ((node.lineno, a.name) for a in node.names
                            if a.name.partition(".")[0] == "flowedu")
    else:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            words = line.replace(",", " ").split()
            if (len(words) > 1 and words[0] in ("from", "cimport", "import")
                and words[1].startswith("flowedu")):
                yield from ((number, below) for n in words[3:] if (below := f"{words[1]}.{n}") in MODULES)
                yield number, words[1]


def place(module: str) -> int:
    """Return the position in COURSE, -1 for modules of GROUND, and len(COURSE) for modules outside core."""
    names = module.split(".")[1:]
    if names[:1] == ["core"]:
        return COURSE.index(names[1]) if names[1:2] and names[1] in COURSE else -1
    return -1 if ".".join(names).startswith(GROUND) or names == ["_kernels"] else len(COURSE)


def steps_out(path: Path):
    """Yield "importing module -> imported module" for each import of a core file that breaks the rule."""
    own = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    thread_state = place("flowedu." + own)
    for _, module in imports(path):
        if place(module) > thread_state:
            yield f"{own} -> {module}"


CORE = [p for p in FILES if p.is_relative_to(ROOT / "core")]


@pytest.mark.parametrize("path", CORE, ids=lambda p: str(p.relative_to(ROOT)))
def test_core_imports_only_earlier_folders(path):
    assert not [*steps_out(path)]


def test_imports_of_later_folders_are_found(tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    bad = tmp_path / "core" / "graph" / "bad.py"
    bad.parent.mkdir(parents=True)
    bad.write_text("def f():\n    from flowedu.core.job.function import global_function\nimport "
                   "flowedu.nn.init\nfrom flowedu.core.ops import define\nfrom flowedu.errors import "
                   "FlowError\n")
    assert [*steps_out(bad)] == ["core.graph.bad -> flowedu.nn.init",
                                 "core.graph.bad -> flowedu.core.job.function"]


def test_one_thread_local_holds_the_state_of_a_thread():
    """Only distributed/threads.py has another one; other threads keep their state in objects."""
    found = {str(p.relative_to(ROOT)) for p in FILES
             if re.search(r"threading\.local|import local|ContextVar", p.read_text(encoding="utf-8"))}
    assert found == {"core/values/thread_state.py", "distributed/threads.py"}


def test_each_field_of_the_thread_state_is_registered_once_by_its_owner():
    """thread_state.py itself registers no field."""
    registers = re.compile(r"^(?:ambient\.)?register_fields\((.*?)\)(?:  |$)", re.M)
    owners = [(name, p) for p in FILES for names in registers.findall(p.read_text(encoding="utf-8"))
              for name in re.findall(r"(\w+)=", names)]
    assert len(owners) == len({name for name, _ in owners}) > 10
    assert ({name for name, _ in owners} >= {*ambient.FIELDS}
            and "thread_state.py" not in {p.name for _, p in owners})


def test_during_sets_fields_for_a_block_in_one_thread():
    importlib.import_module("flowedu.core.sbp.rules")           # registers strict and rule
    seen = []
    with pytest.raises(KeyError), during(strict=True, rule="oneflow"):
        with during(rule="bytes", tracer="a tracer"):
            assert (thread_state.strict, thread_state.rule, ambient.building) == (True, "bytes", 1)
            assert repr(thread_state) == "thread_state: tracer = 'a tracer', strict = True"
            other = threading.Thread(target=lambda: seen.extend([
                thread_state.strict, thread_state.tracer, repr(thread_state)]))
            other.start()
            other.join()
        assert (thread_state.rule, thread_state.tracer, ambient.building) == ("oneflow", None, 0)
        raise KeyError
    assert (thread_state.strict, thread_state.rule) == (False, "bytes")
    assert seen == [False, None, "thread_state: nothing special"]
    with pytest.raises(AttributeError, match="strikt"), during(strikt=True):
        pass


def test_every_extension_point_is_declared_filled_and_used():
    used = {name for p in FILES if p.name != "extensions.py"
            for name in re.findall(r"\bextensions\.([a-z]\w+)", p.read_text(encoding="utf-8"))}
    declared = extensions.__annotations__.keys() - {"homes"}
    assert declared == extensions.homes.keys() == used & declared
    assert all(getattr(extensions, name) is not None for name in declared)


def test_a_missing_extension_is_none_or_an_error(monkeypatch):
    monkeypatch.delitem(extensions.homes, "hop_text")
    monkeypatch.delitem(extensions.homes, "plan_text")
    assert extensions.hop_text is None
    with pytest.raises(UnsupportedError, match="plan_text: not in this package"):
        extensions.plan_text.__call__()
    with pytest.raises(AttributeError, match="declares no attribute 'picture'"):
        extensions.picture.__call__()


LINES = 13_000                # of core and its kernels; raise it to 16,000 at most


def test_core_does_not_grow():
    """All lines count, with blank lines, comments, and the C code of the kernels."""
    files = [p for folder in ("core", "_kernels/core") for p in (ROOT / folder).rglob("*")
             if p.suffix in (".py", ".pyx", ".pxd", ".pxi", ".h")]
    lines = sum(len(p.read_text(encoding="utf-8").splitlines()) for p in files)
    assert lines <= LINES, f"{lines} lines: remove duplicates, or move what is no lesson to an extension"
    assert lines > LINES - 1000, f"{lines} lines: lower the bound"


@pytest.mark.parametrize("page", ["README.md", "README.zh.md", "pyproject.toml", "CITATION.cff",
                                  "src/flowedu/__init__.py", "book/index.md"])
def test_the_size_of_the_core_is_stated(page):
    """One person can read core. No page claims this for the whole library."""
    text = (ROOT.parents[1] / page).read_text(encoding="utf-8")
    assert f"{LINES:,}" in text and "in a week" not in text


def circles(arrows: dict[str, set[str]]) -> set[str]:
    """Return the nodes that can be reached from themselves."""
    found = set()
    for start in arrows:
        seen, todo = set(), [*arrows[start]]
        while todo:
            if (x := todo.pop()) not in seen:
                seen.add(x)
                todo += arrows.get(x, ())
        found |= {start} & seen
    return found


def test_folders_do_not_import_each_other_in_a_circle():
    """Imports inside functions count. Imports of public names from flowedu/__init__.py do not."""
    arrows: dict[str, set[str]] = {}
    for path in FILES:
        thread_state = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if path != ROOT / "__init__.py":
            for _, module in imports(path):
                there = module.split(".")[1:2] or ["__init__"]
                if there != [thread_state] and there != ["__init__"]:
                    arrows.setdefault(thread_state, set()).add(there[0])
    assert not circles(arrows), {k: arrows[k] for k in circles(arrows)}
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {"a", "b", "c"}


# the packed subset in the wheel
STILL_UP = [("vision/datasets/mnist.py", "flowedu.oneflow04.data.mnist"),
            # chapter 7 names this file
            ("vision/transforms/resample.py", "flowedu.oneflow04.image.resample")]


@pytest.mark.parametrize("folder", ["core", "ops", "tensor", "autograd", "nn", "optim", "utils", "cuda",
                                    "distributed", "vision", "mock"])
def test_the_newer_generation_does_not_import_oneflow04(folder):
    found = {(str(p.relative_to(ROOT)), module) for p in FILES if p.relative_to(ROOT).parts[0] == folder
             for _, module in imports(p) if module.startswith("flowedu.oneflow04")}
    assert found == {(path, module) for path, module in STILL_UP if path.startswith(folder + "/")}


def test_at_most_25_top_level_names():
    names = {p.relative_to(ROOT).parts[0] for p in FILES}
    assert len(names) <= 25, sorted(names)


def test_import_flowedu_loads_no_heavy_module():
    script = ("import sys, flowedu; heavy = {'torch', 'matplotlib', 'PIL', 'google.protobuf', "
              "'multiprocessing', 'onnx', 'tqdm', 'unittest', 'concurrent.futures', 'urllib.request', "
              "'flowedu.core.trace', 'flowedu.vision.models', 'flowedu.oneflow04.data', "
              "'flowedu.oneflow04.custom', 'flowedu.saving', 'flowedu.oneflow04.image.image'}; "
              "print(sorted(heavy & set(sys.modules)))")
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8",
                          timeout=HANGS, check=True, env={**os.environ, "PYTHONPATH": str(ROOT.parent)})
    assert said.stdout.strip() == "[]"


def test_import_flowedu_starts_no_thread_and_keeps_the_environment():
    script = ("import os, sys, numpy; t = '/proc/self/task'; n = lambda: len(os.listdir(t)) if "
              "os.path.isdir(t) else 0; before = n(), dict(os.environ); import flowedu; print(before == "
              "(n(), dict(os.environ)))")
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "OPENBLAS_"))}
    for threads in ({}, {"OPENBLAS_NUM_THREADS": "2"}, {"GOMP_SPINCOUNT": "7"}):
        said = subprocess.run([sys.executable, "-c", script], capture_output=True,
                              encoding="utf-8", timeout=HANGS, check=True,
                              env={**plain, "PYTHONPATH": str(ROOT.parent), **threads})
        assert said.stdout.strip() == "True"


LATER = [("flowedu", "load_graph"), ("flowedu", "onnx"), ("flowedu", "data"), ("flowedu", "save"),
         ("flowedu", "train"),
         ("flowedu", "custom_op"), ("flowedu", "image_decode"), ("flowedu.nn", "Graph"),
         ("flowedu.utils", "data"), ("flowedu.models", "GPT"), ("flowedu.vision", "models")]


@pytest.mark.parametrize("module, name", LATER)
def test_lazy_names_are_listed_and_resolve(module, name):
    m = importlib.import_module(module)
    assert name in dir(m) and getattr(m, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        getattr(m, "nothing")  # noqa: B009


def test_lazy_names_may_be_aliases():
    from flowedu.oneflow04.image import image
    assert flowedu.image_decode is image.decode and flowedu.image is image


def test_a_star_import_has_every_public_name():
    names = {}
    exec("from flowedu import *", names)
    assert {"Tensor", "nn", "add", *(n for m, n in LATER if m == "flowedu")} <= {*names}
    assert names["save"] is flowedu.save and "_later" not in names


def test_test_folders_are_named_after_the_package():
    """tests/core/job tests src/flowedu/core/job. BESIDE lists exactly the folders with other names."""
    folders = {str(p.parent.relative_to(TESTS)) for p in TESTS.rglob("test_*.py")}
    others = {f for f in folders if f == "." or not (ROOT / f).is_dir()}
    assert others == {
        *BESIDE}, "test files go into a folder of the package's name, or its own name needs a reason"


def test_test_files_import_none_of_another_folder():
    """Otherwise a file could not run alone. Shared helpers are in tests/ itself."""
    borrowed = [(str(p.relative_to(TESTS)), name) for p in TESTS.rglob("*.py") for name in
                re.findall(r"^ *(?:from|import) (test_\w+)", p.read_text("utf-8"), re.M)
                if not (p.parent / f"{name}.py").exists()]
    assert not borrowed


def test_files_that_define_ops_restore_the_registry():
    """Otherwise tests/laws would also test these ops when they run later in the same process."""
    defines = re.compile(r"^[^\"'\n]*flow\.custom_op\(", re.M)
    found = {str(p.relative_to(TESTS)): "own_registry" in p.read_text(encoding="utf-8")
             for p in TESTS.rglob("test_*.py")
             if defines.search(p.read_text(encoding="utf-8"))}
    assert len(found) >= 6 and all(found.values()), "import own_registry from custom_ops"


def test_pytest_collects_every_folder_of_tests(pytestconfig):
    """By default, pytest skips folders with some names, such as `dist`."""
    patterns = pytestconfig.getini("norecursedirs")
    folders = [p.parent.name for p in TESTS.rglob("test_*.py")]
    assert "dist" in folders and not [n for n in folders if any(fnmatch(n, pattern) for pattern in patterns)]


def classes(path: Path) -> list[str]:
    """Return the names of the classes that a file of core defines, without Cython's forward declarations."""
    if path.suffix == ".py":
        return [n.name for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(
            n, ast.ClassDef)]
    return re.findall(r"^(?:cdef )?class (\w+)", path.read_text(encoding="utf-8"), re.M)


def twice(paths) -> set[str]:
    """Return the class names that more than one of the files defines."""
    found = [name for p in paths if p.suffix in (".py", ".pyx", ".pxi") for name in {*classes(p)}]
    return {name for name in found if found.count(name) > 1}


def test_class_names_of_core_are_unique(tmp_path):
    assert not twice(CORE)
    for name in ("a.py", "b.pyx"):
        (tmp_path / name).write_text("class Same:\n    pass\n\n\nclass Other" + name[0] + ":\n    pass\n",
                                     encoding="utf-8")
    assert twice(sorted(tmp_path.iterdir())) == {"Same"}
