"""The style of the Python code of core: short assignments, flat expressions, and functions named by verbs."""
import ast
import re
from pathlib import Path

import pytest

import flowedu

CORE = Path(flowedu.__file__).parent / "core"
NODES = [(file.name, node) for file in sorted(CORE.rglob("*.py"))
         for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
# Participles and pronouns. Students type the names of EXERCISES in their answers; `copied` is the sibling of `copy_of`.
WEAK = re.compile(r"_*(?:\w+_)?(?:told|said|made|kept|given|known|seen|taken|laid|who|it|own|mine|there|here|many|few"
                  r"|what|(?!.*(?:need|feed|seed|speed|unregistered|changed)$)\w+ed)")
EXERCISES = {"rounded", "moved", "_derived", "_sums_kept"}
STATES = re.compile(r"_*(?:is|has|can|if|from)_|make_owned|_recompile_if_changed")


@pytest.mark.parametrize("name, weak", [("_made", True), ("told", True), ("apply_route", False),
                                        ("set_seed", False), ("boxed", True), ("_joined", True), ("rows_kept", True)])
def test_the_pattern_of_weak_names(name, weak):
    assert bool(WEAK.fullmatch(name)) == weak


def test_functions_of_core_are_named_by_verbs():
    weak = {node.name for _, node in NODES if isinstance(node, ast.FunctionDef)
            and WEAK.fullmatch(node.name) and not STATES.match(node.name)}
    assert weak - EXERCISES - {"copied"} == set()


def test_conditional_expressions_of_core_are_not_nested():
    nested = [f"{file}:{node.lineno}" for file, node in NODES if isinstance(node, ast.IfExp)
              and any(isinstance(part, ast.IfExp) for part in ast.walk(node) if part is not node)]
    assert nested == []


def test_assignments_of_core_have_at_most_three_names():
    long = [f"{file}:{node.lineno}" for file, node in NODES if isinstance(node, ast.Assign)
            and any(isinstance(target, ast.Tuple) and len(target.elts) > 3 for target in node.targets)]
    assert long == []
