"""Memory checks for results that NumPy computes."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flowedu.core.values.spec import Spec, check_spec
from flowedu.errors import OutOfMemoryError


@contextmanager
def room_for(what: str, spec: Spec) -> Iterator[None]:
    """Return a context manager that raises OutOfMemoryError for a result that is too large for NumPy.

    If no memory could hold the result, the error is raised before the computation.
    """
    check_spec(what, spec)
    try:
        yield
    except MemoryError as e:
        if isinstance(e, OutOfMemoryError):
            raise
        raise OutOfMemoryError(f"{what}: out of memory", expected=f"room for {spec}",
                               got=f"{spec.nbytes:,} bytes",
                               fix="use smaller sizes, or del tensors that are no longer needed") from None
