"""The arguments of PyTorch's functions from PyTorch itself: from their Python signatures, the operator
schemas, or the first lines of their documentation.
"""
from __future__ import annotations

import inspect
import re
from typing import Any, NamedTuple

EMPTY = inspect.Parameter.empty
_KINDS = {"POSITIONAL_ONLY": "place", "POSITIONAL_OR_KEYWORD": "place", "KEYWORD_ONLY": "name",
          "VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}


class Argument(NamedTuple):
    name: str
    kind: str                                      # "place", "name", "*", "**"
    default: Any = EMPTY


Signature = list[Argument]
TEXT = {"tensor", "as_tensor", "einsum", "cpu", "cuda"}  # operators of these names exist only for TorchScript
SCRIPT = {("copy_", "Tensor"), ("copy_", "int"), ("copy_", "float")}
# schemas use None for these; the value is determined inside
INSIDE = {"dtype", "device", "layout", "memory_format", "pin_memory"}


def of_python(f) -> Signature | None:
    """Return the signature by inspect.signature, or None."""
    try:
        found = inspect.signature(f).parameters.values()
    except (TypeError, ValueError):
        return None
    return [Argument(p.name, _KINDS[p.kind.name], p.default) for p in found]


def of_torch(torch, f, name: str, method: bool, operator: str = "") -> list[Signature]:
    """Return every way to call PyTorch's function or method `name`, or [] if there is no information.
    operator: its name in the schemas, if different.
    """
    python = of_python(f)
    if python is not None and {a.kind for a in python} - {"*", "**"}:
        return [python]
    if not isinstance(f, type):
        ways = [] if name in TEXT else _of_schemas(torch, operator or name, method)
        ways = ways or _of_text(torch, f, name)
        if ways:
            return ways
    return [python] if python == [] else []


def _of_schemas(torch, name: str, method: bool) -> list[Signature]:
    """Return the signatures of operators of that name that take tensors, with Python's additions: the
    documentation lists `out`.
    """
    found = []
    for schema in torch._C._jit_get_schemas_for_operator("aten::" + name):
        kinds = [str(a.type) for a in schema.arguments]
        scalars = (kinds[:2] in (["int", "int"], ["float", "int"]) and name in ("add", "sub", "mul",
                                                                                "eq", "ne"))
        makes = any("Tensor" in str(r.type) for r in schema.returns) or name == "result_type"
        others = {"complex", "Dimname"} & {*re.findall(r"\w+", str(kinds))}
        if any(a.is_out for a in schema.arguments) or scalars or others \
                or re.fullmatch(r"List\[(str|t|bool|float)\]|t|Any|Dict.*|str",
                                (kinds or [""])[0]) or not makes \
                or (name, schema.overload_name) in SCRIPT:
            continue
        found.append([Argument("input" if a.name == "self" else a.name, "name" if a.kwarg_only
                               or a.name == "alpha" else
                               "place", a.default_value if a.has_default_value() and a.name not in INSIDE
                               else EMPTY)
                      for a in schema.arguments if not (method and a.name == "self")])
    return found


def _of_text(torch, f, name: str) -> list[Signature]:
    """Parse the documentation's lines of the form `name(input, dim=None, *, out=None) -> Tensor`."""
    found = []
    for line in (inspect.getdoc(f) or "").splitlines():
        match = re.match(rf"^(?:torch\.)?(?:\w+\.)*{re.escape(name)}\((.*?)\)\s*(->.*|$)",
                         line.strip().replace("\\*", "*"))
        if match and ("->" in match[2] or not found):
            found.append(_parsed(torch, match[1]))
    return found


def _parsed(torch, text: str) -> Signature:
    found, kind = [], "place"
    for part in _split(text):
        left, eq, default = part.partition("=")
        name = left.split(":")[0].split()[-1] if left.strip() else left
        if name == "*":
            kind = "name"
        elif name.startswith("**"):
            found.append(Argument(name[2:], "**"))
        elif name.startswith("*"):
            found.append(Argument(name[1:], "*"))
            kind = "name"
        elif name not in ("/", "..."):
            found.append(Argument(name, kind, _value(torch, default) if eq else EMPTY))
    return found


def _split(text: str) -> list[str]:
    parts, depth = [""], 0
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def _value(torch, text: str):
    try:
        return eval(text, {"torch": torch, "inf": float("inf")})       # noqa: S307
    except (NameError, SyntaxError, AttributeError):
        return text.strip()
