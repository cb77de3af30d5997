"""Mutation operators for Python answers: each changes one token, one argument, or one statement."""
from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

COMPARISONS = {ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt),
               ast.GtE: (ast.Gt, ast.LtE), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,),
               ast.NotIn: (ast.In,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,)}
ARITHMETIC = {ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Add, ast.FloorDiv),
              ast.FloorDiv: (ast.Mult,), ast.Div: (ast.Mult,), ast.Mod: (ast.FloorDiv,), ast.Pow: (ast.Mult,),
              ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,)}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "reversed": "list"}


@dataclass(frozen=True)
class Mutant:
    """A right answer with one change.

    Attributes:
        change: "old code -> new code".
        text: the code of the mutant.
        statement: the first line of the statement that contains the change, before the change.
        answer: the code of the answer, before the change.
    """

    hole: Any
    operator: str
    line: int
    change: str
    text: str
    statement: str = ""
    answer: str = ""

    def __str__(self) -> str:
        return f"{self.hole.id} line {self.line}, {self.operator}: {self.change}"


# ---- operators: each yields nodes that can replace a node
def change_comparison(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            for other in COMPARISONS[type(op)]:
                yield _with(node, ops=[*node.ops[:i], other(), *node.ops[i + 1:]])


def change_arithmetic(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        for other in ARITHMETIC.get(type(node.op), ()):
            yield _with(node, op=other())


def change_constant(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, (int, float)):
            yield ast.Constant(node.value + 1)
            if node.value:
                yield ast.Constant(0)


def swap_arguments(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in ("min", "max")):
        for i in range(len(node.args) - 1):
            first, second = node.args[i:i + 2]
            if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
                yield _with(node, args=[*node.args[:i], second, first, *node.args[i + 2:]])


def drop_argument(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Call):
        for i in range(len(node.keywords)):
            yield _with(node, keywords=[*node.keywords[:i], *node.keywords[i + 1:]])


def drop_statement(node: ast.AST) -> Iterator[ast.AST]:
    is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    kinds = ast.Assign, ast.AugAssign, ast.Expr, ast.Raise, ast.For, ast.With
    if isinstance(node, kinds) and not is_docstring:
        yield ast.Pass()


def drop_condition(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BoolOp):
        for i in range(len(node.values)):
            rest = [*node.values[:i], *node.values[i + 1:]]
            yield rest[0] if len(rest) == 1 else _with(node, values=rest)
    if isinstance(node, ast.comprehension):
        for i in range(len(node.ifs)):
            yield _with(node, ifs=[*node.ifs[:i], *node.ifs[i + 1:]])


def change_boolean(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())


def drop_sign(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.UnaryOp):
        yield node.operand


def fix_branch(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.If):
        yield _with(node, test=ast.Constant(True))
        yield _with(node, test=ast.Constant(False))
    if isinstance(node, ast.IfExp):
        yield node.body
        yield node.orelse


def change_jump(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Break):
        yield ast.Continue()
    if isinstance(node, ast.Continue):
        yield ast.Break()
    if isinstance(node, ast.Return) and node.value is not None:
        yield ast.Return(ast.Constant(None))


def change_function(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Name) and node.id in FUNCTIONS:
        yield ast.Name(FUNCTIONS[node.id], node.ctx)


OPERATORS: tuple[Callable[[ast.AST], Iterator[ast.AST]], ...] = (
    change_comparison, change_arithmetic, change_constant, swap_arguments, drop_argument, drop_statement,
    drop_condition, change_boolean, drop_sign, fix_branch, change_jump, change_function)


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    """Return a shallow copy of a node with other fields."""
    new = copy.copy(node)
    for name, value in fields.items():
        setattr(new, name, value)
    return new


def _places(node: ast.AST, statement: ast.AST | None = None) -> Iterator[tuple]:
    """Yield (parent, field, index in the field or None, node, its statement) below a node.

    Annotations, decorators, default arguments, and the texts of errors are left out.
    """
    for field, value in ast.iter_fields(node):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)) and field != "body":
            continue
        if field == "annotation" or isinstance(node, (ast.Raise, ast.JoinedStr)):
            continue
        for i, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.AST):
                inside = child if isinstance(child, ast.stmt) else statement
                yield node, field, i if isinstance(value, list) else None, child, inside
                yield from _places(child, inside)


def make_mutants(hole: Any, text: str) -> Iterator[Mutant]:
    """Yield every mutant of an answer whose code differs from the answer and from the mutants before it."""
    tree = ast.parse(text)
    seen = {ast.unparse(tree)}
    for parent, field, index, node, statement in list(_places(tree)):
        for operator in OPERATORS:
            for new in operator(node):
                _put(parent, field, index, new)
                mutated = ast.unparse(tree)
                _put(parent, field, index, node)
                if mutated not in seen:
                    seen.add(mutated)
                    yield Mutant(hole, operator.__name__, _line(node),
                                 f"{_first_line(node)} -> {_first_line(new)}", mutated + "\n",
                                 _first_line(statement), text)


def _line(node: ast.AST) -> int:
    """Return the line of a node; a comprehension has that of its target."""
    return getattr(node.target if isinstance(node, ast.comprehension) else node, "lineno", 0)


def _put(parent: ast.AST, field: str, index: int | None, node: ast.AST) -> None:
    if index is None:
        setattr(parent, field, node)
    else:
        getattr(parent, field)[index] = node


def _first_line(node: ast.AST) -> str:
    """Return the first line of a node's code."""
    first, *more = ast.unparse(node).strip().splitlines()
    return first + " ..." * bool(more)
