"""flow.return_types, named results such as (values, indices) of max, min, and sort, and factors of matrices.
"""
from __future__ import annotations

from collections import namedtuple


def _named(name: str, fields: str = "values indices") -> type:
    """Return the named tuple of a function's result."""
    base = namedtuple(name, fields.split())

    def __repr__(self) -> str:
        shown = "".join(f"\n{field}={value!r}," for field, value in zip(self._fields, self))
        return f"flowedu.return_types.{name}({shown[:-1]})"

    called = f"flow.{name.replace('linalg_', 'linalg.')}" + " along an axis" * (fields == "values indices")
    return type(name, (base,), {"__slots__": (), "__repr__": __repr__, "__module__": __name__,
                                "__doc__": f"Result of {called}.\n\nArgs:\n    sequence: "
                                f"({fields.replace(' ', ', ')})."})


max, min = _named("max"), _named("min")
sort, topk, kthvalue = _named("sort"), _named("topk"), _named("kthvalue")
median, nanmedian, mode = _named("median"), _named("nanmedian"), _named("mode")
cummax, cummin = _named("cummax"), _named("cummin")
linalg_cholesky_ex, linalg_inv_ex = (_named("linalg_cholesky_ex", "L info"),
                                     _named("linalg_inv_ex", "inverse info"))
linalg_eigh, linalg_qr = _named("linalg_eigh", "eigenvalues eigenvectors"), _named("linalg_qr", "Q R")
linalg_svd, linalg_slogdet = _named("linalg_svd", "U S Vh"), _named("linalg_slogdet", "sign logabsdet")
linalg_lu, linalg_lu_factor = _named("linalg_lu", "P L U"), _named("linalg_lu_factor", "LU pivots")
linalg_lu_factor_ex = _named("linalg_lu_factor_ex", "LU pivots info")
linalg_lstsq = _named("linalg_lstsq", "solution residuals rank singular_values")
qr, slogdet, svd = _named("qr", "Q R"), _named("slogdet", "sign logabsdet"), _named("svd", "U S V")
triangular_solve = _named("triangular_solve", "solution cloned_coefficient")
