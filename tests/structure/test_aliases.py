"""Rules for flowedu/aliases.py: an alias and its home are the same module, in every way to import them."""
import ast
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import flowedu as flow
from common import HANGS
from flowedu.aliases import ALIASES, alias, home

ROOT = Path(flow.__file__).parent


def under(path: str) -> list[str]:
    """Return the public paths of an alias and of the modules below it."""
    folder = ROOT.joinpath(*ALIASES[path].split("."))
    files = [p.relative_to(folder).with_suffix("") for p in folder.rglob("*.py") if p.name[0] != "_"]
    return [f"flowedu.{path}", *(".".join(("flowedu", path, *p.parts)) for p in files)]


PATHS = [name for path in ALIASES for name in under(path)]


@pytest.mark.parametrize("path", PATHS)
def test_an_alias_and_its_home_are_the_same_module(path):
    module = importlib.import_module(path)
    assert module is importlib.import_module(home(path)) is sys.modules[path]
    assert module.__spec__.name == module.__name__ == home(path) and alias(module.__name__) == path
    names = path.split(".")[1:]
    found = flow
    for name in names:
        found = getattr(found, name)
    assert found is module
    exec(f"import {path} as m\nassert m is module\nfrom {path.rpartition('.')[0]} import {names[-1]} as "
         f"n\nassert n is m", {"module": module})


def test_an_alias_can_be_imported_before_its_home():
    """Runs in a separate process, because other tests here may have imported the home already."""
    script = ("import importlib, sys; public, real = ([importlib.import_module(p) for p in arg.split()] "
              "for arg in sys.argv[1:]); print([m.__spec__.name for m, n in zip(public, real) if m is n])")
    said = subprocess.run([sys.executable, "-c", script, " ".join(PATHS), " ".join(map(home, PATHS))],
                          capture_output=True,
                          encoding="utf-8", timeout=HANGS, check=True, env={**os.environ,
                                                                            "PYTHONPATH": str(ROOT.parent)})
    assert ast.literal_eval(said.stdout) == [*map(home, PATHS)]


def test_importing_a_module_does_not_replace_a_function_of_its_name():
    """The module flowedu.autograd.gradcheck must not replace the function flow.autograd.gradcheck."""
    paths = [".".join(("flowedu", *p.relative_to(ROOT).with_suffix("").parts)) for p in ROOT.rglob("*.py")
             if p.parts[len(ROOT.parts)] not in ("core", "oneflow04", "_kernels") and p.name[0] != "_"]
    script = ("import importlib, sys, types; found = []\n"
              "for path in sys.argv[2].split():\n"
              "    parent, _, name = path.rpartition('.')\n"
              "    parent = importlib.import_module(parent)\n"
              "    if sys.argv[1] == 'imported': importlib.import_module(path)\n"
              "    found += [path] * (not isinstance(getattr(parent, name, types), types.ModuleType))\n"
              "print(found)")
    asked, imported = (ast.literal_eval(subprocess.run(
        [sys.executable, "-c", script, how, " ".join(paths)], capture_output=True,
        encoding="utf-8", timeout=HANGS, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT.parent)}).stdout) for how in ("asked", "imported"))
    assert "flowedu.autograd.gradcheck" in asked and {*asked} <= {*imported}


def test_functions_of_an_imported_alias_are_wrapped():
    """Runs in a separate process, where the import by path precedes any lookup such as flow.data."""
    script = ("import importlib, sys, types; ms = [importlib.import_module(p) for p in sys.argv[1].split()]; "
              "print([(m.__name__, n) for m in ms for n in getattr(m, '__all__', vars(m)) if n[0] != '_' and "
              "isinstance(getattr(m, n), types.FunctionType) and getattr(m, "
              "n).__module__.startswith('flowedu')])")
    said = subprocess.run([sys.executable, "-c", script, " ".join(f"flowedu.{p}" for p in ALIASES)],
                          capture_output=True,
                          encoding="utf-8", timeout=HANGS, check=True, env={**os.environ,
                                                                            "PYTHONPATH": str(ROOT.parent)})
    assert ast.literal_eval(said.stdout) == []


def test_no_file_exists_at_the_path_of_an_alias():
    for path in ALIASES:
        place = ROOT.joinpath(*path.split("."))
        assert not place.with_suffix(".py").exists() and not (place / "__init__.py").exists(), path


def test_the_package_imports_no_module_by_its_alias():
    wrong = []
    for file in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("flowedu"):
                names = [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
            elif isinstance(node, ast.Import):
                names = [a.name for a in node.names]
            else:
                continue
            wrong += [f"{file.relative_to(ROOT)}:{node.lineno} imports {n}" for n in names if home(n)]
    assert not wrong


def test_a_missing_name_is_reported_with_the_public_path():
    with pytest.raises(AttributeError, match="module flowedu.deprecated has no"):
        flow.deprecated.variable_scop  # noqa: B018


def test_names_without_an_alias_are_left_to_python():
    assert home("flowedu") is home("flowedu.nothing") is home("typing") is home("flowedu_typing") is None
    with pytest.raises(ModuleNotFoundError, match="flowedu.nothing"):
        importlib.import_module("flowedu.nothing")
    with pytest.raises(ModuleNotFoundError, match="No module named 'flowedu.typing.nothing'|not a package"):
        importlib.import_module("flowedu.typing.nothing")
