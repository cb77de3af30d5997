"""Helpers of gradient rules: a sum of terms that may be missing, and a new last axis."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flowedu.core.ops.view import reshape
from flowedu.ops.types import AnyTensor


def add_known(terms: Iterable[AnyTensor | None]) -> AnyTensor | Any:
    """Return the sum of the terms that are not None, or None."""
    known = [t for t in terms if t is not None]
    return sum(known[1:], known[0]) if known else None


def as_column(x: AnyTensor) -> AnyTensor:
    """Return x with a new last axis of size 1."""
    return reshape(x, shape=(*x.shape, 1))
