"""Completion and type checks with the stubs of flowedu, which `make stubs` writes.

tests/tensor/test_stub_types.py compares the stubs with the types of results.
"""
import inspect
import os
import re
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

import flowedu as flow
from common import HANGS

ROOT = Path(__file__).parents[2]
SRC, TOOLS = ROOT / "src", ROOT / "tools"
# Names that Cython and Python add to modules and classes; stubs leave them out.
ADDED = r".*\.__(reduce_cython|setstate_cython|test|pyx_capi|wrapped|array_priority|new)__"
PROGRAM = """import flowedu as flow
import flowedu.typing as tp
from flowedu import nn

x: flow.Tensor = flow.ones(2, 3).reshape(3, 2).matmul(flow.ones(2, 2)).to_global()
values: flow.Tensor = x.max(0).values
total: flow.Tensor = nn.functional.relu(x).max() + 1.0
model: nn.Linear = nn.Linear(2, 3).eval().to(flow.float64)
where: tuple = flow.where(x)
numbers: type[tp.Numpy] = tp.Numpy
flow.save(model.state_dict(), "model")
"""
WRONG = {"flow.nothing": "attr-defined", "x.nothing": "attr-defined",
         "x.reshape(2).nothing()": "attr-defined",
         "number: int = x.relu()": "assignment", "flow.save()": "call-arg",
         "nn.functional.relu(1)": "arg-type"}


def ran(*arguments, **settings):
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True,
                          timeout=HANGS, **settings)


def test_stubs_are_what_the_tool_writes():
    done = ran(TOOLS / "make_stubs.py", "--check", env={**os.environ, "PYTHONPATH": str(SRC),
                                                        "FLOWEDU_HOLES": ""})
    assert done.returncode == 0, f"run `make stubs`: {done.stdout}{done.stderr}"


def test_core_contains_no_stub_files():
    core = [SRC / "flowedu" / "core", SRC / "flowedu" / "_kernels" / "core"]
    assert [p for folder in core for p in folder.rglob("*.pyi")] == []


def test_outlines_ignore_types_and_defaults():
    tool = load_tool()
    text = "class A:\n    def f(self, a: int = 1) -> int: ...\n"
    assert tool.outline(text) == tool.outline(text.replace("1", "...").replace("int", "Any")) != tool.outline(
        text.replace("a:", "b:"))
    assert tool.outline(text) != tool.outline(text.replace("f(", "g(")) and tool.OLDEST == (3, 11)
    assert 'requires-python = ">=3.11"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def load_tool():
    sys.path.insert(0, str(TOOLS))
    try:
        import make_stubs
    finally:
        sys.path.remove(str(TOOLS))
    return make_stubs


def copy_as_installed(folder: Path) -> Path:
    """Copy the Python files to `folder`, with the stubs of core next to its modules, as in a wheel."""
    compiled = shutil.ignore_patterns("*.so", "*.pyx", "*.pxd", "*.pxi", "*.h", "*.npz", "__pycache__")
    shutil.copytree(SRC, folder, ignore=compiled)
    shutil.copytree(SRC / "flowedu-stubs" / "core", folder / "flowedu" / "core", dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def completed(tmp_path_factory):
    """Return a function that lists the completions at the end of a text, in a folder outside the checkout."""
    jedi = pytest.importorskip("jedi")
    folder = tmp_path_factory.mktemp("editor")
    installed = copy_as_installed(tmp_path_factory.mktemp("installed") / "site")
    jedi.settings.cache_directory = str(folder / "cache")
    project = jedi.Project(folder, sys_path=[str(installed),
                                             *(p for p in sys.path if p.endswith("site-packages"))])

    def complete(text: str) -> set[str]:
        script = jedi.Script(f"import flowedu as flow\n{text}", path=folder / "program.py", project=project)
        return {c.name for c in script.complete()}

    return complete


def ours(value) -> bool:
    place = value.__name__ if isinstance(value, types.ModuleType) else str(getattr(value, "__module__", ""))
    return place.startswith("flowedu.") and not place.startswith("flowedu.diagnostics.")


@pytest.mark.parametrize("text, space", [
    ("flow.", flow), ("flow.nn.", flow.nn), ("import flowedu.typing as tp\ntp.", flow.typing),
    ("flow.utils.", flow.utils), *(pytest.param(text, space, marks=pytest.mark.slow) for text, space in (
        ("flow.nn.functional.", flow.nn.functional), ("flow.vision.", flow.vision),
        ("flow.optim.", flow.optim)))],
    ids=lambda x: x.split(" ")[-1].rpartition("\n")[-1] if isinstance(x, str) else "")
def test_every_name_of_a_module_is_completed(completed, text, space):
    names = ({*getattr(space, "__all__", ())} or {n for n in dir(space) if n[0] != "_"
                                                  and ours(getattr(space, n))})
    assert len(names) > 2 and names <= completed(text), sorted(names - completed(text))


@pytest.mark.parametrize("text", ["flow.ones(2).", "(flow.ones(2) - 1).", *(
    pytest.param(text, marks=pytest.mark.slow) for text in (
        "flow.nn.functional.relu(flow.ones(2)).", "flow.linalg.inv(flow.eye(2)).",
        "flow.ones(2).max(0).values.", "def f(x: flow.Tensor):\n    x."))])
def test_every_method_of_a_tensor_is_completed(completed, text):
    names = {n for n in dir(flow.Tensor) if n[0] != "_"}
    assert len(names) > 450 and names <= completed(text), sorted(names - completed(text))


def test_every_attribute_of_nn_module_is_completed(completed):
    mine = "class Net(flow.nn.Module):\n    def f(self):\n        self."
    names = {n for n in dir(flow.nn.Module) if n[0] != "_"}
    assert "state_dict" in names and names <= completed("flow.nn.Linear(2, 3).") and names <= completed(mine)


def test_completed_names_exist(completed):
    """Every completion without a leading underscore is an attribute or a module."""
    for text, thing in (("flow.ones(2).", flow.ones(2)), ("flow.", flow)):
        offered = {n for n in completed(text) if n[0] != "_"}
        assert not {n for n in offered if n not in dir(thing)
                    and not (SRC / "flowedu" / n / "__init__.py").exists()}


def test_the_editor_shows_parameters_and_a_sentence():
    stub = (SRC / "flowedu-stubs" / "core" / "eager" / "tensor.pyi").read_text(encoding="utf-8")
    head, said = re.search(r"    def unsqueeze\((.*?)\) -> Tensor:\s+\"\"\"(.*?)\"\"\"", stub).groups()
    assert head.split(", ")[1].startswith("dim") and inspect.getdoc(flow.Tensor.unsqueeze).startswith(said)


def checked(folder: Path, text: str) -> list[tuple[int, str]]:
    """Return (line, kind of error) of each error that mypy reports for a program."""
    pytest.importorskip("mypy")
    (folder / "program.py").write_text(text, encoding="utf-8")
    done = ran("-m", "mypy", "--check-untyped-defs", "--no-error-summary", "program.py", cwd=folder,
               env={**os.environ, "MYPYPATH": "", "PYTHONPATH": str(SRC)})
    found = re.findall(r"^program\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    assert done.stderr == "" and len(found) == done.stdout.count(" error: "), done
    return [(int(line), kind) for line, kind in found]


@pytest.mark.slow
def test_mypy_reports_only_the_wrong_lines(tmp_path):
    right = PROGRAM.count("\n")
    said = checked(tmp_path, PROGRAM + "".join(f"{line}\n" for line in WRONG))
    assert said == [(right + i, kind) for i, kind in enumerate(WRONG.values(), 1)]


@pytest.mark.slow
def test_mypy_accepts_the_example_of_the_tour(tmp_path):
    """Job annotations are exceptions: OneFlow uses calls, and placeholders that become arrays."""
    example, = re.findall(r"(?ms)^```python\n(.*?)^```$",
                          (ROOT / "docs" / "tour.md").read_text(encoding="utf-8"))
    job = example[:example.index("@flow.global_function")].count("\n") + 1
    said = checked(tmp_path, example)
    assert ({kind for _, kind in said} == {"valid-type", "return-value"}
            and all(job < line < job + 10 for line, _ in said))


@pytest.mark.slow
def test_stubs_of_compiled_modules_match_them(tmp_path):
    """The stubtest of mypy compares each name, parameter, and default with the module."""
    pytest.importorskip("mypy")
    tool = load_tool()
    modules = [*tool.compiled(), *tool.MADE]
    assert len(modules) == 17 + 3
    (tmp_path / "allowed").write_text(ADDED + "\n", encoding="utf-8")
    done = ran("-m", "mypy.stubtest", "--allowlist", "allowed", "--concise", "--ignore-disjoint-bases",
               *modules, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(SRC)})
    assert done.returncode == 0, done.stdout + done.stderr
