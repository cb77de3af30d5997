"""`import flowedu.typing as tp`: how a job function says what it takes and what it returns."""
from flowedu.core.values.typing import (  # noqa: F401
    Bundle,
    Callback,
    ListListNumpy,
    ListNumpy,
    Numpy,
    PyStructCompatibleToBlob,
)

__all__ = ["Bundle", "Callback", "ListListNumpy", "ListNumpy", "Numpy", "PyStructCompatibleToBlob"]
