"""Kernels of a CUDA source: their names and parameters, parsed from the text."""
from __future__ import annotations

import re
from dataclasses import dataclass

WRAP = '#line 1 "flowedu.h"\nextern "C" {\n', '\n#line 2 "flowedu.h"\n}\n'       # around code with C linkage
_COMMENTS = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.S)
_KERNEL = re.compile(r"""__global__\s*
    (?:(?:static|inline|void|extern|__forceinline__|__launch_bounds__\s*\((?:[^()]|\([^()]*\))*\)|
        __attribute__\s*\(\(.*?\)\))\s*)*
    (?P<name>[A-Za-z_]\w*)\s*(?P<arguments><[^;{(]*>)?\s*\(""", re.X)
_WORDS = re.compile(
    r"\b(?:const|volatile|struct|class|typename|__restrict__|__restrict|__grid_constant__|signed)\b")


@dataclass(frozen=True)
class Parameter:
    """Parameter of a kernel. `type` has no qualifiers such as const: "float*", "unsigned int", "float4"."""
    type: str
    name: str
    text: str                        # as in the source

    @property
    def is_pointer(self) -> bool:
        return self.type.endswith("*")


@dataclass(frozen=True)
class Signature:
    """Kernel that can be launched. `name` is "scale", or "scale<float>" for an instantiated template."""
    name: str
    parameters: tuple[Parameter, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(p.text for p in self.parameters)})"


def without_comments(source: str) -> str:
    """Return the source with comments replaced by blanks. Strings and all positions are kept."""
    return _COMMENTS.sub(lambda m: m[0] if m[0][0] in "\"'" else re.sub(r"[^\n]", " ", m[0]), source)


def pieces(text: str) -> list[str]:
    """Split a text at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "(<[{") - (c in ")>]}")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [p.strip() for p in [*parts, text[start:]] if p.strip()]


def parameter(text: str) -> Parameter:
    """Parse a parameter: `const float* __restrict__ x` is a float* named x. Instantiations have no names."""
    text = " ".join(text.partition("=")[0].split())
    plain = " ".join(_WORDS.sub(" ", text).split())
    array = plain.endswith("]")
    plain = re.sub(r"\s*\[.*\]$", "", plain)
    match = re.fullmatch(r"(.*?[\s*&>])\s*([A-Za-z_]\w*)", plain)
    kind, name = (match[1], match[2]) if match else (plain, "")
    if name in ("int", "long", "char", "short", "float", "double", "unsigned"):
        kind, name = plain, ""
    return Parameter(re.sub(r"\s*\*\s*", "*", kind.strip()) + ("*" if array else ""), name, text)


def _find_closing(text: str, start: int) -> int:
    """Return the index of the parenthesis that closes the one before `start`."""
    depth = 1
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if not depth:
            return i
    return len(text)


def signatures(source: str) -> dict[str, Signature]:
    """Return the kernels of a source by name. Templates are included only if instantiated."""
    text = without_comments(source)
    found: dict[str, Signature] = {}
    for match in _KERNEL.finditer(text):
        end = _find_closing(text, match.end())
        before = re.split(r"[;{}]", text[:match.start()])[-1]
        if re.search(r"\btemplate\s*<", before):
            continue
        name = match["name"] + re.sub(r"\s+", " ", match["arguments"] or "")
        parameters = tuple(parameter(p) for p in pieces(text[match.end():end]) if p != "void")
        if name not in found or not all(p.name for p in found[name].parameters):
            found[name] = Signature(name, _add_names(parameters, text, match["name"]))
    return found


def _add_names(parameters: tuple[Parameter, ...], text: str, name: str) -> tuple[Parameter, ...]:
    """Return the parameters of an instantiation, with the names from its template."""
    if all(p.name for p in parameters):
        return parameters
    for match in _KERNEL.finditer(text):
        if match["name"] == name and not match["arguments"]:
            template = [parameter(p) for p in pieces(text[match.end():_find_closing(text, match.end())])]
            if len(template) == len(parameters):
                return tuple(Parameter(p.type, p.name or t.name, f"{p.text} {t.name}")
                             for p, t in zip(parameters, template))
    return parameters
