"""Expected types of parameters of public functions, from the annotation, or from the default and the name."""
from __future__ import annotations

import inspect
import numbers
import re
from collections import abc
from typing import Any

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.values.blob import BlobDef

_TENSORS = frozenset("""input other tensor tensors self mask condition index indices weight target source src
    end exponent tensor1 tensor2 mat mat1 mat2 vec vec1 vec2 batch1 batch2 boundaries sorted_sequence values
    input1 input2 x1 x2 anchor positive negative a b A B x y operands running_mean running_var query key value
    logits""".split())
_KINDS: dict[str, Any] = {
    "int": int, "float": (int, float), "bool": (bool, int), "str": str, "None": type(None),
    "tuple": (tuple, list), "list": (list, tuple), "dict": dict, "Tensor": TensorBase,
    "Sequence": (list, tuple), "Iterable": abc.Iterable, "Callable": abc.Callable,
    "Number": numbers.Real, "Axes": (int, tuple, list), "Sizes": (int, tuple, list, TensorBase),
    "Parameter": TensorBase}
# Types of which `fits` cannot decide: their functions also take a name, a NumPy type, or a list.
_OPEN = frozenset("dtype Device Placement Sbp Generator memory_format Index".split())
# Names of parameters whose annotation is missing, or is a name that users do not know, and their types.
_MEANT = {"dim axis dims axes sizes times repeats shifts kernel_size stride output_size normalized_shape "
          "size shape source destination": "int | tuple",
          "split_size_or_sections indices_or_sections": "int | list", "data like": "Tensor",
          "fill_value min max min_value max_value start end step low high mean std q scale_factor": "int "
          "| float",
          "name path": "str", "unbiased enabled": "bool", "device": "str | flow.device",
          "dtype": "flow.dtype",
          "generator": "flow.Generator", "placement": "flow.placement", "sbp": "flow.sbp.sbp",
          "memory_format": "flow.memory_format", "distribute": "flow.distribute"}
_ORDINARY = (int, float, str, list, tuple, dict, type(None), TensorBase, complex, set)


def _annotation(p: inspect.Parameter) -> str:
    """Return the annotation, or the type derived from the default. Any counts as no annotation."""
    if p.annotation is not p.empty and p.annotation != "Any":
        return (p.annotation if isinstance(p.annotation, str) else getattr(p.annotation, "__name__",
                                                                           str(p.annotation)))
    if p.default is not p.empty and p.default is not None:
        return type(p.default).__name__
    if p.name in ("size", "sizes", "shape", "shapes", "dims"):
        return "int | tuple"
    return ("Tensor" if p.name in _TENSORS and p.default is p.empty or p.name in ("tensors", "operands")
            else "")


def wants_tensor(p: inspect.Parameter) -> bool:
    """Return True if a parameter expects a tensor.

    The tensor may be one number if the parameter has the name of an operand.
    """
    words = re.findall(r"\w+", _annotation(p))
    return "Tensor" in words and (p.name in _TENSORS or {"int", "float", "Number"}.isdisjoint(words))


def fits(value, p: inspect.Parameter) -> bool:
    """Return True if a value has the type of the parameter, or if that type is unknown.

    For *args, the value is one of the arguments. For **kwargs, it is the dict of all of them.
    """
    if p.kind is p.VAR_KEYWORD:
        inner = p.replace(kind=p.POSITIONAL_OR_KEYWORD)
        return all(fits(v, inner) for v in value.values())
    if value is p.default or isinstance(value, BlobDef) and wants_tensor(p):
        return True
    if "Sequence[Tensor]" in _annotation(p) and isinstance(value, (list, tuple)):
        return all(isinstance(x, TensorBase) for x in value)
    words = re.findall(r"\w+", re.sub(r"\[[^][]*\]", "", _annotation(p)))
    known = [_KINDS[w] for w in words if w in _KINDS]
    if (not known or not _OPEN.isdisjoint(words) or len(known) < len(words)
        and not isinstance(value, _ORDINARY)):
        return True
    return any(isinstance(value, k) for k in known)


def of_type(p: inspect.Parameter) -> str:
    """Return the type of a parameter as text, or "" if it is unknown."""
    text = _annotation(p)
    if not text or not {"Axes", "Sizes", *_OPEN}.isdisjoint(re.findall(r"\w+", text)):
        text = next((words for names, words in _MEANT.items() if p.name.rstrip("_") in names.split()), text)
    text = re.sub(r"\bTensor\b", "flow.Tensor", text)
    return re.sub(r"\bNumber\b", "int | float", text).replace(" | ", " or ")


def retyped(name: str, place: str, value, p: inspect.Parameter) -> str:
    """Return the fix for a value of a wrong type. A number in quotes becomes that number."""
    words = of_type(p)
    try:
        if (isinstance(value, str) and any(isinstance(float(value), _KINDS.get(w, ()))
                                           for w in re.findall(r"\w+", words))):
            return f"{value if '[' in place else f'{place}={value}'}, a number without quotes"
    except ValueError:
        pass
    return f"pass {place} as {words}" if words else f"the docstring of {name} says what {place} may be"
