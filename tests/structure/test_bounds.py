"""Rule for numeric bounds in tests: a bound on something measured or sampled needs a derivation.

A training run rounds differently with each vector width and number of threads, and a sample differs with each
seed. A bare number such as `assert accuracy > 0.7` then fits only the machine on which it was chosen. Use the
functions of tests/bounds.py, which compute their bounds, or give the reason for the number in a comment on
the assertion, or on the line above it.
"""
import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
MEASURED = re.compile(r"(?:^|_)(accurac\w*|loss|losses|ratio|ratios|perplexity|score|scores|correct|right)$")
STATISTICS = {"mean", "std", "var", "median", "quantile", "percentile"}
ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def last_name(node: ast.AST) -> str:
    """Return the last name of an expression: `y` of `x.y`, `x["y"]`, and `f.y(...)`."""
    if isinstance(node, ast.Call):
        return last_name(node.func)
    if isinstance(node, ast.Attribute):
        return node.attr
    if isinstance(node, ast.Subscript):
        key = getattr(node.slice, "value", None)
        return key if isinstance(key, str) else last_name(node.value)
    return node.id if isinstance(node, ast.Name) else ""


def is_measured(node: ast.AST) -> bool:
    """True if an expression reads a statistic or a variable called a loss, an accuracy, or a ratio."""
    for n in ast.walk(node):
        if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in STATISTICS:
            return True
        if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript)) and MEASURED.search(last_name(n)):
            return True
    return False


def is_bare(node: ast.AST, names: set[str]) -> bool:
    """True for a literal float other than 0 and 1, one of `names`, or arithmetic on these."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and node.value not in (0.0, 1.0)
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.UnaryOp):
        return is_bare(node.operand, names)
    if isinstance(node, ast.IfExp):
        return is_bare(node.body, names) or is_bare(node.orelse, names)
    return isinstance(node, ast.BinOp) and (is_bare(node.left, names) or is_bare(node.right, names))


def has_comment(node: ast.stmt, lines: list[str]) -> bool:
    """True if a comment of several words is on a statement or is the line above it."""
    above = lines[node.lineno - 2].lstrip() if node.lineno > 1 else ""
    comments = [above.removeprefix("#")] * above.startswith("#")
    comments += [line.partition("  # ")[2] for line in lines[node.lineno - 1:node.end_lineno]]
    return any(len(c.split()) > 1 and not c.lstrip().startswith("noqa") for c in comments)


def bare_names(tree: ast.Module, lines: list[str]) -> set[str]:
    """Return the names of a file's constants and parameters with a bare number and no comment."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and not has_comment(node, lines) and is_bare(node.value, set()):
            found |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.FunctionDef) and not has_comment(node, lines):
            names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
            defaults = node.args.defaults
            found |= {n for n, d in zip(names[len(names) - len(defaults):], defaults) if is_bare(d, set())}
    return found


def underived(source: str) -> list[int]:
    """Return the lines of assertions that compare a measured value with a bare number without comment."""
    lines, tree = source.splitlines(), ast.parse(source)
    names, found = bare_names(tree, lines), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and not has_comment(node, lines):
            sides = [[n.left, *n.comparators] for n in ast.walk(node.test)
                     if isinstance(n, ast.Compare) and any(isinstance(op, ORDER) for op in n.ops)]
            if any(any(map(is_measured, s)) and any(is_bare(x, names) for x in s) for s in sides):
                found.append(node.lineno)
    return sorted(found)


def test_bounds_on_measured_values_are_derived():
    files = [p for p in sorted(TESTS.rglob("*.py")) if "programs" not in p.relative_to(TESTS).parts]
    found = [f"{p.relative_to(TESTS)}:{i}" for p in files for i in underived(p.read_text(encoding="utf-8"))]
    fix = "see tests/bounds.py, or write the reason as a comment"
    assert not found, f"bounds without a derivation ({fix}):\n" + "\n".join(found)


@pytest.mark.parametrize("bad", [
    "assert accuracy > 0.7", 'assert script("lenet_eval", seed=2)["accuracy"] > 0.7',
    "assert losses[-1] < 0.6 * losses[0]",
    "assert np.mean(losses[-5:]) < 0.6 * np.mean(losses[:5]), losses", "assert abs(x.mean() - 0.5) < 0.02",
    "LIMIT = 1.25\nassert g.ratio <= LIMIT * bound",
    "def learned(losses, least=0.4):\n    assert losses[-1] < least * losses[0]",
    "ABOVE = 1.05 if ISA else 1.25\nassert ratios.max() < ABOVE",
    "assert all(0.1 < ratio < 0.5 for ratio in a)",
    "assert loss.item() < -0.3", "assert 0.15 < right, 'better than a guess'"])
def test_a_bare_bound_is_found(bad):
    assert underived(bad) == [len(bad.splitlines())]
    *before, last = bad.splitlines()
    indent = " " * (len(last) - len(last.lstrip()))
    assert underived("\n".join([*before, f"{indent}# The reason.", last])) == []
    assert underived("\n".join([*before, f"{indent}# noqa: E501", last])) == [len(before) + 2]


@pytest.mark.parametrize("good", [
    "assert accuracy > most_by_guessing(200, 10)", "assert losses[-1] < losses[0]",
    "assert x.nbytes < 0.5 * y.nbytes",
    "assert loss.item() == 0.5", "assert loss > 0", "assert abs(a - b).max() <= 1e-6",
    "assert accuracy > 0.5  # two classes"])
def test_derived_bounds_pass(good):
    assert underived(good) == []
