"""Style rules for all code: short lines, short unpackings, named functions, and simple expressions.

The folders in LIMITS still break some rules, as often as it says at most. All other folders break none.
"""
import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "course", "tests", "tools", "benchmarks", "book", "chapters")
CYTHON = (".pyx", ".pxd", ".pxi")
SINGLE = (ast.Call, ast.Name, ast.Attribute, ast.Subscript)
# Lower a number, raise none.
LIMITS = {
    "course": {"long lines": 40, "long unpackings": 43, "assigned lambdas": 46,
               "assignments in arguments": 1},
    "tests": {"long lines": 129, "long unpackings": 59, "assigned lambdas": 22,
              "assignments in arguments": 16, "nested conditionals": 72},
}


def find_long_lines(source: str) -> list[int]:
    """Return the lines of more than 110 columns, also in tables and lists of names."""
    return [i for i, line in enumerate(source.splitlines(), 1) if len(line) > 110]


def read_nodes(source: str) -> list[ast.AST]:
    return [*ast.walk(ast.parse(source))]


def count_names(target: ast.expr) -> int:
    """Return the number of targets of an assignment, including those in nested tuples."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return sum(map(count_names, target.elts))
    return 1


def find_long_unpackings(nodes: list[ast.AST]) -> list[int]:
    """Return the lines of assignments to more than three names.

    Four names are allowed if the right side is one call, name, attribute, or subscript, as in
    `n, c, h, w = x.shape`. Two shorter assignments would compute such a value twice, or need one more name.
    """
    return [node.lineno for node in nodes if isinstance(node, ast.Assign)
            and max(map(count_names, node.targets)) > (4 if isinstance(node.value, SINGLE) else 3)]


def has_lambda(value: ast.expr | None) -> bool:
    """Return True for a lambda, and for a tuple of values of which one is a lambda."""
    return isinstance(value, ast.Lambda) or isinstance(value, ast.Tuple) and any(map(has_lambda, value.elts))


def find_assigned_lambdas(nodes: list[ast.AST]) -> list[int]:
    """Return the lines of assignments of a lambda to a name, an attribute, or an entry of a dict.

    A tuple that is assigned to one name is a row of a table and may contain lambdas.
    """
    return [node.lineno for node in nodes
            if isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and isinstance(node.value, ast.Lambda)
            or isinstance(node, ast.Assign) and has_lambda(node.value)
            and (isinstance(node.value, ast.Lambda) or any(isinstance(t, ast.Tuple) for t in node.targets))]


def find_assignments_in_arguments(nodes: list[ast.AST]) -> list[int]:
    """Return the lines of calls with an assignment expression as an argument."""
    return [node.lineno for node in nodes if isinstance(node, ast.Call)
            and any(isinstance(value, ast.NamedExpr)
                    for value in (*node.args, *(keyword.value for keyword in node.keywords)))]


def find_nested_conditionals(nodes: list[ast.AST]) -> list[int]:
    """Return the lines of conditional expressions that contain another one."""
    return [node.lineno for node in nodes if isinstance(node, ast.IfExp)
            and any(isinstance(part, ast.IfExp) for part in ast.walk(node) if part is not node)]


RULES = {"long unpackings": find_long_unpackings, "assigned lambdas": find_assigned_lambdas,
         "assignments in arguments": find_assignments_in_arguments,
         "nested conditionals": find_nested_conditionals}


@pytest.mark.parametrize("rule, bad, good", [
    ("long unpackings", "a = 1\na, b, c, d = 1, 2, 3, 4", "a, b, c = 1, 2, 3"),
    ("long unpackings", "a = 1\n(a, b), (c, d) = x, y", "(a, b), c = x, y"),
    ("long unpackings", "a = 1\na, b, c, d = (f(n) for n in x)", "n, c, h, w = x.shape"),
    ("long unpackings", "a = 1\na, b, c, *d = x if y else z", "a, b, c, *d = f(x)"),
    ("long unpackings", "a = 1\na, b, c, d, e = x", "a, b, c, d = x[4:]"),
    ("assigned lambdas", "x = 1\nf = lambda x: x", "f = sorted(x, key=lambda n: -n)"),
    ("assigned lambdas", "x = 1\nf: Callable = lambda x: x", "f = {'f': lambda x: x}"),
    ("assigned lambdas", "x = 1\nfound['f'] = lambda x: x", "def f():\n    return lambda x: x"),
    ("assigned lambdas", "x = 1\nf, g = (lambda x: x), y", "row = (lambda x: x, lambda x: y)"),
    ("assignments in arguments", "x = 1\nf(a := 1)\ng(key=(b := 2))", "if (a := f(x)) > 0:\n    g(a)"),
    ("nested conditionals", "x = 1\ny = a if b else (c if d else e)", "z = [a if b else c for d in e]"),
])
def test_planted_faults_are_found(rule, bad, good):
    assert RULES[rule](read_nodes(bad))[0] == 2
    assert RULES[rule](read_nodes(good)) == []


def test_long_lines_are_found():
    assert find_long_lines("x = 1\n#" + 110 * "x" + "\n#" + 109 * "x") == [2]


def find_faults(folder: str) -> dict[str, list[str]]:
    """Return {rule: "file:line" of each place in a folder that breaks it}."""
    found: dict[str, list[str]] = defaultdict(list)
    for file in sorted((ROOT / folder).rglob("*.*")):
        if file.suffix not in (".py", *CYTHON) or file.name.endswith("_pb2.py"):
            continue
        source, path = file.read_text(encoding="utf-8"), file.relative_to(ROOT)
        found["long lines"] += [f"{path}:{line}" for line in find_long_lines(source)]
        nodes = read_nodes(source) if file.suffix == ".py" else []
        for rule, find in RULES.items():
            found[rule] += [f"{path}:{line}" for line in find(nodes)]
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_few_places_break_a_rule(folder):
    limits = LIMITS.get(folder, {})
    for rule, places in find_faults(folder).items():
        assert len(places) <= limits.get(rule, 0), f"{rule}: mend the new ones of these: {places}"


def test_cython_files_assign_no_lambdas():
    assigned = re.compile(r"^\s*[\w.\[\]'\"]+ = lambda\b", re.MULTILINE)
    assert assigned.search("x = 1\n    name = lambda x: x\n")
    assert [str(p) for p in sorted((ROOT / "src").rglob("*.py[x]"))
            if assigned.search(p.read_text(encoding="utf-8"))] == []
