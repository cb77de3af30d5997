"""fx: not supported, except for `wrap`, which has no effect (errors/left_out.py lists the missing names)."""
from __future__ import annotations


def wrap(fn_or_name):
    """Return the argument: a function, or a function's name."""
    return fn_or_name
