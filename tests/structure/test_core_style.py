"""Style rules for core: short lines, short assignments, flat expressions, and functions named by verbs.

The rule for names also holds for the rest of the library and for the course, with exceptions whose number may
only fall.
"""
import ast
import re
from pathlib import Path

import pytest

import flowedu

CORE = Path(flowedu.__file__).parent / "core"
NODES = [(file.name, node) for file in sorted(CORE.rglob("*.py"))
         for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
# Participles and pronouns. Answers of students contain the names in EXERCISES; `copied` belongs to `copy_of`.
WEAK = re.compile(
    r"_*(?:\w+_)?(?:told|said|made|kept|given|known|seen|taken|laid|who|it|own|mine|there|here|many|few"
    r"|what|(?!.*(?:need|feed|seed|speed|unregistered|changed)$)\w+ed)")
EXERCISES = {"rounded", "moved", "_derived", "_sums_kept"}
# Names outside core that begin with a participle, and pronouns. Some are exercises or laws, which tasks name.
PARTICIPLES = re.compile(
    r"_*(?:(?:told|said|made|kept|given|found|known|seen|asked|left|shown|taken|meant|moved|written|drawn|done"
    r"|gone|held|sent|built|chosen|begun|spent|laid|understood|hidden)(?:_\w+)?"
    r"|who|whose|why|what|it|own|mine|here|there|many|few|some|others|rest|both)")
EXCEPTIONS = 6                   # lower it, never raise it
STATES = re.compile(r"_*(?:is|has|can|if|from)_|make_owned|_recompile_if_changed")


@pytest.mark.parametrize("name, weak", [("_made", True), ("told", True), ("apply_route", False),
                                        ("set_seed", False), ("boxed", True), ("_joined", True),
                                        ("rows_kept", True)])
def test_the_pattern_of_weak_names(name, weak):
    assert bool(WEAK.fullmatch(name)) == weak


def test_functions_of_core_are_named_by_verbs():
    weak = {node.name for _, node in NODES if isinstance(node, ast.FunctionDef)
            and WEAK.fullmatch(node.name) and not STATES.match(node.name)}
    assert weak - EXERCISES - {"copied"} == set()


def test_few_functions_of_the_library_and_the_course_are_named_by_participles():
    root = CORE.parents[2]
    names = []
    for file in sorted((*(root / "src").rglob("*.py"), *(root / "course").rglob("*.py"))):
        names += [f"{file.relative_to(root)}:{node.lineno} {node.name}"
                  for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
                  if isinstance(node, ast.FunctionDef) and PARTICIPLES.fullmatch(node.name)]
    assert len(names) <= EXCEPTIONS, "\n".join(names)


def test_conditional_expressions_of_core_are_not_nested():
    nested = [f"{file}:{node.lineno}" for file, node in NODES if isinstance(node, ast.IfExp)
              and any(isinstance(part, ast.IfExp) for part in ast.walk(node) if part is not node)]
    assert nested == []


def test_assignments_of_core_have_at_most_three_names():
    long = [f"{file}:{node.lineno}" for file, node in NODES if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Tuple) and len(target.elts) > 3 for target in node.targets)]
    assert long == []


def test_lines_of_core_have_at_most_100_columns():
    """Python, Cython, C, and the configuration of ruff for the folder.

    Stubs are generated and do not count.
    """
    files = [p for folder in (CORE, CORE.parent / "_kernels" / "core") for p in folder.rglob("*")
             if p.suffix in (".py", ".pyx", ".pxd", ".pxi", ".h")]
    long = [f"{p.parent.name}/{p.name}:{i}" for p in files
            for i, line in enumerate(p.read_text(encoding="utf-8").splitlines(), 1) if len(line) > 100]
    assert long == [] and len(files) > 100
    assert "line-length = 100" in (CORE / "ruff.toml").read_text(encoding="utf-8")
