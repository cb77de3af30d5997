"""Room for what NumPy computes."""
from __future__ import annotations

from contextlib import contextmanager

from flowedu.core.values.spec import Spec, check_spec
from flowedu.errors import OutOfMemoryError


@contextmanager
def room_for(what: str, spec: Spec):
    """`with room_for("histc", spec):` around what NumPy computes there: raises OutOfMemoryError, before the work where the
    result is too large for any memory, and where NumPy finds none."""
    check_spec(what, spec)
    try:
        yield
    except MemoryError as e:
        if isinstance(e, OutOfMemoryError):
            raise
        raise OutOfMemoryError(f"{what}: out of memory", expected=f"room for {spec}", got=f"{spec.nbytes:,} bytes",
                               fix="use smaller sizes, or del tensors that are no longer needed") from None
