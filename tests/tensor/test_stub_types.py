"""Return types in the stubs match the values, for every line of cases.py."""
import ast
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

import flowedu as flow

from .cases import CASTS, CREATION, EVERY, OURS
from .inputs import split
from .lines import variables

SRC = Path(flow.__file__).parents[1]
KINDS = {"Tensor": flow.Tensor, "tuple": tuple, "list": list, "bool": bool, "int": int, "float": float,
         "str": str, "dtype": flow.dtype, "Size": flow.Size, "None": type(None), "ndarray": np.ndarray}


def returned(body: list[ast.stmt]) -> dict[str, list[str]]:
    """Return {function: return types of its overloads}; "" means unannotated."""
    found: dict[str, list[str]] = {}
    for f in body:
        if isinstance(f, ast.FunctionDef):
            found.setdefault(f.name, []).append(ast.unparse(f.returns) if f.returns else "")
    return found


STUBS = SRC / "flowedu-stubs"
FUNCTIONS = returned(ast.parse((STUBS / "__init__.pyi").read_text(encoding="utf-8")).body)
LINALG = returned(ast.parse((SRC / "flowedu/oneflow04/linalg.pyi").read_text(encoding="utf-8")).body)
METHODS = returned(next(c for c in ast.parse((STUBS
                                              / "core/eager/tensor.pyi").read_text(encoding="utf-8")).body
                        if isinstance(c, ast.ClassDef) and c.name == "Tensor").body)


def fits(value, said: str) -> bool:
    """Return True if a value has the annotated type, which may be a union."""
    for kind in said.replace("_", "", said[:1] == "_").split(" | "):
        base, _, inside = kind.partition("[")
        if base.rpartition(".")[0].lstrip("_") in ("return_types", "returntypes"):
            good = type(value) is getattr(flow.return_types, base.rpartition(".")[2])
        elif base in ("", "Any", "_Any"):
            good = True
        else:
            good = isinstance(value, KINDS[base.lstrip("_")])
        items = [t.strip().strip("_") for t in inside.rstrip("]").split(",")] if inside and good else []
        if items and items[-1] == "...":
            good = all(fits(x, items[0]) for x in value)
        elif len(items) > 1:
            good = len(value) == len(items) and all(map(fits, value, items))
        elif items:
            good = all(fits(x, items[0]) for x in value)
        if good:
            return True
    return False


# Every function of flow.linalg, called with a matrix that meets all its conditions.
OF_MATRICES = [f"m.linalg.{n}(dd @ dd.T)" for n in """cholesky cholesky_ex cond det diagonal eigh eigvalsh inv
    inv_ex lu lu_factor lu_factor_ex matrix_exp matrix_norm matrix_rank norm pinv qr slogdet svd svdvals
    vander vector_norm""".split()]
OF_MATRICES += ["m.linalg.cross(x3, y3)", "m.linalg.lstsq(dd, sq)",
                "m.linalg.lu_solve(*m.linalg.lu_factor(dd), sq)",
    "m.linalg.matmul(dd, sq)", "m.linalg.matrix_power(dd, 2)", "m.linalg.multi_dot([dd, sq])",
                "m.linalg.solve(dd, sq)",
    "m.linalg.solve_triangular(dd, sq, upper=True)", "m.linalg.tensorinv(dd, ind=1)",
                "m.linalg.tensorsolve(dd, dd[0])", "m.linalg.vecdot(dd, sq)"]


class Recorded(ast.NodeTransformer):
    """Rewrites m.add(a, b) as called(m, "add", a, b)."""

    def visit_Call(self, node):
        self.generic_visit(node)
        if not isinstance(node.func, ast.Attribute):
            return node
        return ast.Call(ast.Name("called", ast.Load()), [node.func.value, ast.Constant(node.func.attr),
                                                         *node.args],
                        node.keywords)


def tables(thing, name: str) -> list[dict]:
    """Return the stub of a call; a function of flow may also be a method of tensors."""
    if isinstance(thing, flow.Tensor):
        return [METHODS]
    if thing is flow.linalg:
        return [LINALG]
    f = getattr(getattr(flow, name, None), "function", None) if thing is flow else None
    both = f is not None and f is getattr(vars(flow.Tensor).get(name), "function", None)
    return [*[FUNCTIONS] * (thing is flow), *[METHODS] * both]


def test_every_line_returns_the_annotated_type():
    seen, wrong = set(), []

    def called(thing, name, *args, **kwargs):
        value = getattr(thing, name)(*args, **kwargs)
        for table in tables(thing, name):
            if name in table:
                seen.add((table is FUNCTIONS, table is METHODS, name))
                if not any(fits(value, said) for said in table[name]):
                    wrong.append((line, type(value).__name__, table[name]))
        return value

    for line in EVERY + OURS + CREATION + CASTS + OF_MATRICES:
        text, _ = split(line)
        known = {"m": flow, "pad": flow.pad, "called": called, **variables(text, flow, False)}
        tree = ast.fix_missing_locations(Recorded().visit(ast.parse(text, mode="eval")))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            eval(compile(tree, "line", "eval"), known)
    assert not wrong and len(seen) > 580 and {n for f, m, n in seen if not f and not m} == LINALG.keys()


def test_every_function_and_method_has_a_stub():
    functions = {n for n in flow.__all__ if callable(x := getattr(flow, n))
                 and not isinstance(x, (type, types.ModuleType))
                 and hasattr(x, "function")}
    assert len(functions) > 450 and functions <= FUNCTIONS.keys()
    assert {n for n, x in vars(flow.Tensor).items() if n[0] != "_"
            and hasattr(x, "function")} <= METHODS.keys()


@pytest.mark.parametrize("value, said, good", [
    (flow.ones(1), "Tensor", True), (flow.ones(1), "_Tensor", True), (flow.ones(1), "int", False),
    ((flow.ones(1),), "tuple[_Tensor, ...]", True), ((1,), "tuple[Tensor, ...]", False), (1, "", True),
    ((flow.ones(1), 2), "tuple[Tensor, Tensor]", False), (flow.ones(2).max(0), "_return_types.max", True),
    (flow.ones(2).max(0), "return_types.min", False), ([flow.ones(1)], "list[Tensor]", True),
    (None, "Tensor | None", True)])
def test_the_comparison_can_fail(value, said, good):
    assert fits(value, said) is good
