"""Signature of one callable in a stub: parameters, types, and result, read from the live function.

Types come from annotations, or from the C declarations that Cython writes into docstrings. Without either, a
parameter has no type. An op without a return annotation returns a tensor, or the type in RETURNS
(tests/tensor/test_stub_types.py compares with calls).
"""
from __future__ import annotations

import ast
import builtins
import collections.abc
import inspect
import re
import sys
import typing
from collections.abc import Callable

import numpy

import flowedu as flow
from flowedu.tensor.arguments import types as argument_types

# Functions of these modules return a tensor unless they have a return annotation or a row in RETURNS.
OPS = tuple(f"flowedu.{name}"
            for name in """tensor. nn.functional. nn.init. ops. core.eager.tensor.""".split()) + tuple(
                f"flowedu.oneflow04.{name}."
                for name in """distribute functions image linalg losses math nn variables""".split())
_PAIRS = "cummax cummin kthvalue mode sort topk triangular_solve svd qr slogdet"
RETURNS = {
    **{name: f"return_types.{name}" for name in _PAIRS.split()},
    **dict.fromkeys("std_mean var_mean aminmax".split(), "tuple[Tensor, Tensor]"),
    **dict.fromkeys("split chunk tensor_split unbind meshgrid hsplit vsplit dsplit "
                    "tensor_buffer_to_tensor_list tensor_buffer_to_list_of_tensors tensor_list_split "
                    "identity_n".split(), "tuple[Tensor, ...]"),
    **dict.fromkeys("unique unique_consecutive moments object_bbox_flip image_random_crop".split(), "Any"),
    **dict.fromkeys("allclose equal can_cast is_tensor check_meta_consistency is_grad_enabled has_threads "
                    "is_inference_mode_enabled".split(), "bool"),
    **dict.fromkeys("numel get_num_threads element_size nelement dim".split(), "int"),
    **dict.fromkeys("result_type promote_types".split(), "dtype"),
    "broadcast_tensors": "list[Tensor]", "broadcast_shapes": "tuple[int, ...]", "set_num_threads": "None",
    "item": "Any", "tolist": "Any", "size": "Any", "stride": "Any",
}
# Overloads, for functions whose arguments determine the type of the result: (types of arguments, result) of
# each.
BRANCHES = {
    **dict.fromkeys(("max", "min", "median"), (({"dim": "Tensor | None"}, "Tensor"),
                                               ({"dim!": "int"}, "return_types.{}"))),
    "where": (({"input": "None", "other": "None"}, "tuple[Tensor, ...]"), ({"input!": "Any", "other!": "Any"},
                                                                           "Tensor")),
    "nonzero": (({"as_tuple": "Literal[False]"}, "Tensor"), ({"as_tuple!": "Literal[True]"},
                                                             "tuple[Tensor, ...]")),
}
_C_TYPES = {"int64_t": "int", "size_t": "int", "bint": "bool", "double": "float", "ndarray": "np.ndarray"}
_SPACES = (typing, collections.abc)
ALIASES = frozenset(typing.get_type_hints(argument_types))       # names of types that are not classes


class Names:
    """Imported names of one stub. `of` returns the name to write for a class.

    taken: names that the stub defines; imported classes of these names get an underscore.
    """

    def __init__(self, module: str, taken: set[str]):
        self.module, self.taken, self.needed = module, taken, {}

    def of(self, home: str, name: str) -> str:
        if home == "builtins" and name not in self.taken or home == self.module:
            return name
        short = f"_{name}" if name in self.taken else name
        self.needed[short] = home, name
        return short


def home(kind: type) -> tuple[str, str] | None:
    """Return (module, name) by which a class can be imported, or None."""
    module, name = getattr(kind, "__module__", None), getattr(kind, "__qualname__", "")
    there = sys.modules.get(module) if isinstance(module, str) else None
    return (module, name) if getattr(there, name, None) is kind else None


def _class(name: str, space: dict):
    """Return the object that a name in an annotation refers to, or None if it is unknown."""
    found = space.get(name, numpy if name == "np" else getattr(builtins, name, None))
    for where in (*_SPACES, flow, flow.nn, flow.optim):
        found = found if found is not None else getattr(where, name, None)
    return found


class _Rewrite(ast.NodeTransformer):
    """Transformer of annotations that replaces classes by imported names, and other objects by `Any`."""

    def __init__(self, names: Names, space: dict):
        self.names, self.space = names, space

    def _named(self, found, node) -> ast.expr:
        if isinstance(node, ast.Name) and node.id in ALIASES and found is getattr(argument_types, node.id):
            return ast.Name(self.names.of(argument_types.__name__, node.id))
        if found is flow.float32.__class__ or isinstance(found, type):
            place = home(found)
            if place and (place[0] in ("builtins", "collections.abc") or place[0].startswith("flowedu")):
                return ast.Name(self.names.of(*place))
        for space in _SPACES[::-1]:
            name = node.id if isinstance(node, ast.Name) else node.attr
            if getattr(space, name, None) is found and found is not None:
                return ast.Name(self.names.of(space.__name__, name))
        return ast.Name(self.names.of("typing", "Any"))

    def visit_Name(self, node):
        return self._named(_class(node.id, self.space), node)

    def visit_Attribute(self, node):
        base = _class(node.value.id, self.space) if isinstance(node.value, ast.Name) else None
        if getattr(base, "__name__", "") == "numpy":
            self.names.needed["_np"] = "numpy", ""
            return ast.Attribute(ast.Name("_np"), node.attr)
        if getattr(base, "__name__", "") == "flowedu.tensor.return_types":
            return ast.Attribute(ast.Name(self.names.of("flowedu.tensor", "return_types")), node.attr)
        return self._named(getattr(base, node.attr, None), node)

    def visit_Constant(self, node):
        return self.visit(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else node

    def visit_Subscript(self, node):
        if isinstance(node.value, ast.Name) and node.value.id == "Literal":
            return ast.Subscript(ast.Name(self.names.of("typing", "Literal")), node.slice)
        value = self.visit(node.value)
        plain = isinstance(value, ast.Name) and value.id.lstrip("_") == "Any"
        return value if plain else ast.Subscript(value, self.visit(node.slice))


def annotation(given, space: dict, names: Names) -> str:
    """Return the text of an annotation in a stub."""
    if isinstance(given, str):
        text = given
    else:
        text = "None" if given in (None, type(None)) else inspect.formatannotation(given)
    if isinstance(given, type):
        space, text = {**space, given.__name__: given}, given.__name__
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return names.of("typing", "Any")
    return ast.unparse(ast.fix_missing_locations(_Rewrite(names,
                                                          {**space,
                                                           "return_types": flow.return_types}).visit(tree)))


def _declared(f: Callable) -> tuple[dict[str, str], str]:
    """Return ({argument: type}, type of result) from the first line of a compiled function's docstring."""
    first = (f.__doc__ or "").partition("\n")[0]
    found = re.match(r"[\w.]+\((.*)\)(?: -> (.+))?$", first)
    if not found:
        return {}, ""
    pairs = re.findall(r"(?:^|, )(\w+) (\w+)(?=[,:=]|$)", found[1])
    return {name: _C_TYPES.get(kind, kind) for kind, name in pairs}, (found[2] or "").strip("'\"")


def signature(f: Callable) -> inspect.Signature | None:
    """Return the signature with the types that C declares, or None if it cannot be determined."""
    types, result = _declared(f) if type(f).__name__ != "function" else ({}, "")
    try:
        found = inspect.signature(f)
    except (TypeError, ValueError):
        first = re.match(r"[\w.]+\((.*)\)", (f.__doc__ or "").partition("\n")[0])
        if not first:
            return None
        bare = re.sub(r"(?:^|(?<=, ))\w+ (?=\w)", "", first[1])
        scope: dict = {}
        exec(f"def f({bare}): ...", {}, scope)
        found = inspect.signature(scope["f"])
    params = [p.replace(annotation=types.get(p.name, p.annotation)) if p.annotation is p.empty else p
              for p in found.parameters.values()]
    result = found.return_annotation if found.return_annotation is not found.empty or not result else result
    return found.replace(parameters=params, return_annotation=result)


def _default(value) -> str:
    simple = (value is None or isinstance(value, (bool, int, str)) or isinstance(value, float)
              and value - value == 0)
    return (repr(value) if simple and type(value) in (bool, int, float, str, type(None))
            and len(repr(value)) < 30 else "...")


def parameters(sig: inspect.Signature, space: dict, names: Names, method: bool,
               chosen: dict[str, str]) -> str:
    """Return the text between the parentheses. chosen: types of this overload; "!" removes a default."""
    rows, after_star = [], False
    required = {name.rstrip("!") for name in chosen if name.endswith("!")}
    chosen = {name.rstrip("!"): kind for name, kind in chosen.items()}
    params = list(sig.parameters.values())
    for i, p in enumerate(params):
        if p.kind is p.KEYWORD_ONLY and not after_star:
            rows.append("*")
            after_star = True
        after_star |= p.kind is p.VAR_POSITIONAL
        text = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        given = chosen.get(p.name, "" if p.annotation is p.empty else p.annotation)
        itself = method and i == 0 and p.kind is not p.VAR_POSITIONAL
        kind = annotation(given, space, names) if given != "" and not itself else ""
        if kind and p.default is None and p.name not in required and "None" not in kind and "Any" not in kind:
            kind += " | None"
        if p.default is not p.empty and p.name not in required:
            text += f": {kind} = {_default(p.default)}" if kind else f"={_default(p.default)}"
        else:
            text += f": {kind}" if kind else ""
        rows.append(text)
        if (p.kind is p.POSITIONAL_ONLY and (i + 1 == len(params)
                                             or params[i + 1].kind is not p.POSITIONAL_ONLY)):
            rows.append("/")
    return ", ".join(rows)


def returned(f: Callable, name: str, sig: inspect.Signature) -> str:
    """Return the annotation of the result before it is rewritten, or ""."""
    if sig.return_annotation not in (sig.empty, "Any"):
        return sig.return_annotation if isinstance(sig.return_annotation, str) else inspect.formatannotation(
            sig.return_annotation)
    module = getattr(f, "__module__", None) or ""
    own = getattr(f, "__name__", name)
    if module.startswith("flowedu"):
        older = module.startswith("flowedu.oneflow04.")
        if hasattr(flow.return_types, f"linalg_{own}"):
            return f"return_types.linalg_{own}"
        for known in (name, own):
            if known in RETURNS and not (older and RETURNS[known].startswith("return_types.")):
                return RETURNS[known]
        if (module + ".").startswith(OPS) and not name.startswith("__"):
            return "Tensor"
    return "" if sig.return_annotation is sig.empty else "Any"
