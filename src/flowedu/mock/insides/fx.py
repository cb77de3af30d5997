"""fx: no program is rewritten. What only marks a function for it changes nothing; the rest is out (errors/left_out.py)."""
from __future__ import annotations


def wrap(fn_or_name):
    """What is given: a function, or a function's name."""
    return fn_or_name
