"""compiler and _dynamo: nothing is compiled by torch.compile, so nothing is to be kept from it."""
from __future__ import annotations

import types
from collections.abc import Callable

config = types.SimpleNamespace(suppress_errors=False, cache_size_limit=8, recompile_limit=8, verbose=False)


def disable(fn: Callable | None = None, recursive: bool = True, **options):
    """fn, or a decorator that returns it."""
    return fn if fn is not None else lambda f: f


allow_in_graph = disable


def is_compiling() -> bool:
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def reset() -> None:
    """Nothing."""


cudagraph_mark_step_begin = mark_dynamic = mark_static = lambda *args, **kwargs: None
