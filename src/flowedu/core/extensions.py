"""Extension points: optional parts of the package, which core calls by name but does not need.

    extensions.plan_text(plan)        imports and calls the function at homes["plan_text"]

A missing part is None if its type includes None. Otherwise its lookup raises UnsupportedError.
"""
from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from flowedu.errors.optional import make_lookup

job_signature: Callable[..., Any] | None
spread_slice: Callable[..., Any] | None
widen_formula: Callable[..., Any] | None         # computes 16-bit floats in float32
python_kernel: Callable[..., Any]
raise_misfit: Callable[..., None] | None         # for arguments that do not fit module.forward
plan_text: Callable[..., str]
gpu_plan: Callable[..., Any]
place_buffers: Callable[..., int] | None
check_pass: Callable[..., Any] | None
check_plan: Callable[..., Any] | None
make_executor: Callable[..., Any] | None
reset_eager_sources: Callable[[], None] | None
construct_tensor: Callable[..., Any]
bfloat16_array: Callable[..., Any]
array_api: ModuleType
op_type_name: Callable[..., str] | None
global_graph: Callable[..., Any]
global_placing: Callable[..., Any] | None
spread_job: Callable[..., Any]
layouts_text: Callable[..., str]
route_text: Callable[..., str]
hop_text: Callable[..., str] | None
draw_route: Callable[..., Any]
choice_text: Callable[..., str]
no_layout_error: Callable[..., Exception] | None
rank_memory: Callable[..., Any]
rank_gpus: ModuleType
remote_shards: ModuleType
start_ranks: Callable[..., Any] | None

homes: dict[str, str] = {}        # {name: "module:function" or "module"}, from flowedu/__init__.py
__getattr__ = make_lookup(homes, __annotations__)
