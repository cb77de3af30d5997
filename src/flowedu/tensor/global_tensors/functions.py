"""Functions of chapter 6 used by tensors, imported at their first use so that `import flowedu` stays fast.

Each function calls the function of the same name in the module given on its line. (For
tensors that are already global, chapter 2 calls the slots of core/eager/hooks.pxi, which chapter 6 fills.)
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from flowedu.core.eager.dispatch import TensorBase


def _later(module: str, name: str) -> Callable:
    """Return a function that imports `name` from `module` at its first call and calls it."""
    found = None

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal found
        if found is None:
            found = getattr(import_module(f"flowedu.{module}"), name)
        return found(*args, **kwargs)

    call.__name__ = name
    call.__doc__ = f"See help(flowedu.{module}.{name})."
    # The reference copies the docstring of this function.
    call.later = f"{module}.{name}"  # type: ignore[attr-defined]
    return call


_TENSOR = "core.sbp.tensor."
_OWN = "tensor.global_tensors.creation"
spread_out, shared_generator = _later(_OWN, "spread_out"), _later(_OWN, "shared_generator")
logical = _later(_TENSOR + "convert", "logical")
from_logical, parts_of = (_later(_TENSOR + "convert", "from_logical"),
                          _later(_TENSOR + "interpreter", "parts_of"))
of_kind = _later(_OWN, "of_kind")
shards, to_local = _later(_OWN, "shards"), _later(_TENSOR + "shards", "to_local")
check_meta_consistency = _later(_OWN, "check_meta_consistency")
to_global, local_to_global = _later(_TENSOR + "shards", "to_global"), _later(_OWN, "local_to_global")
global_to_global = _later(_OWN, "global_to_global")
save_global, load_global = (_later("saving.global_state", "save_global"),
                            _later("saving.global_state", "load_global"))
tree_of = _later("saving.global_state", "tree_of")


def holds_global(x: object) -> bool:
    """Return True if a nested dict, list, or tuple contains a global tensor."""
    if isinstance(x, Mapping):
        return any(map(holds_global, x.values()))
    if isinstance(x, (list, tuple)):
        return any(map(holds_global, x))
    return isinstance(x, TensorBase) and x.global_layout is not None

