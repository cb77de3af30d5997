"""Translation of CUDA C to C++ for g++: adds the header, dynamic shared memory, and the table of kernels."""
from __future__ import annotations

import re

from flowedu.cuda.signature import signatures

_ALIGN = r"(?:__align__|alignas)\s*\([^)]*\)"
_DYNAMIC = re.compile(rf"\bextern\s+(?:__shared__\s+(?:{_ALIGN}\s*)?|{_ALIGN}\s*__shared__\s+)"
                      r"(?P<type>[\w:]+(?:\s*<[^;]*>)?(?:\s+\w+)*?)\s*\b(?P<name>\w+)\s*\[\s*\]\s*;")
_SWAPPED = re.compile(rf"\b((?:static|volatile|{_ALIGN})\s+)+__shared__\b")
_CONSTANT = re.compile(
    r"\b(?:static\s+)?(?:const\s+__constant__|__constant__\s+const)\b|\bstatic\s+__constant__\b")


def translate(source: str, *, variant: str, options: str = "", original: str | None = None) -> str:
    """Return the C++ of a preprocessed CUDA source.

    Args:
        variant: "plain" or "checked".
        original: the source before preprocessing, kept in the module for its second variant and reports.
    """
    kernels = signatures(source)
    rows = [f"CUDASIM_KERNEL(({name}), {quoted(name)}, {quoted(chr(10).join(p.text for p in k.parameters))})"
            for name, k in kernels.items()]
    table = ", ".join(rows) or "{}"
    return "\n".join([
        '#include "cudasim.h"', '#line 1 "kernel.cu"', body(source), '#line 1 "cudasim_table"',
        f'extern "C" '
        f'{{ cudasim_kernel cudasim_kernels[] = {{{table}}}; unsigned cudasim_kernel_count = {len(rows)};',
        f"extern const char cudasim_variant[], cudasim_options[], cudasim_source[];"
        f"const char cudasim_variant[] = {quoted(variant)}, cudasim_options[] = {quoted(options)}, "
        f"cudasim_source[] = {quoted(source if original is None else original)}; }}", ""])


def body(source: str) -> str:
    """Replace the constructs of CUDA that the header cannot define. Every line keeps its number."""
    text = _DYNAMIC.sub(lambda m: f"{m['type']}* const {m['name']} = ({m['type']}*)cudasim_dynamic_shared();",
                        source)
    text = _SWAPPED.sub(lambda m: "__shared__ " + m[0].replace("__shared__", "").replace("static", ""), text)
    return _CONSTANT.sub("__constant__", text)


def quoted(text: str) -> str:
    """Return a C string literal, with one piece for each line."""
    escaped = (line.replace("\\", "\\\\").replace('"', '\\"').replace("\r", "\\r")
               for line in text.split("\n"))
    return '"' + '\\n" "'.join(escaped).replace("??", "?\\?") + '"'
