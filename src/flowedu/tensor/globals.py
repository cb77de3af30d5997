"""What tensors ask of dist/tensor, which is imported when a tensor first needs it: a row below must not import it.

Each function is that of the same name there: see dist/tensor/.
"""
from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from flowedu.core.ops.dispatch import TensorBase, register_global


def _later(module: str, name: str):
    found = None

    def call(*args, **kwargs):
        nonlocal found
        if found is None:
            found = getattr(import_module(f"flowedu.core.sbp.tensor.{module}"), name)
        return found(*args, **kwargs)

    call.__name__ = name
    return call


logical, write_parts = _later("convert", "logical"), _later("convert", "write_parts")
spread_out, shared_generator = _later("create", "spread_out"), _later("create", "shared_generator")
check_meta_consistency = _later("shards", "check_meta_consistency")
save_global, load_global = _later("state", "save_global"), _later("state", "load_global")
parts_of = _later("interpreter", "parts_of")
shards, from_logical = _later("shards", "shards"), _later("convert", "from_logical")
to_global, to_local = _later("methods", "to_global"), _later("shards", "to_local")
local_to_global, global_to_global = _later("methods", "local_to_global"), _later("methods", "global_to_global")


def holds_global(x) -> bool:
    """Whether a nested dict, list or tuple has a global tensor in it."""
    if isinstance(x, Mapping):
        return any(map(holds_global, x.values()))
    if isinstance(x, (list, tuple)):
        return any(map(holds_global, x))
    return isinstance(x, TensorBase) and x.lay is not None


register_global(_later("interpreter", "run"), _later("convert", "brought"))
