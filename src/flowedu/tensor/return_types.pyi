"""Written by `make stubs`: do not edit."""
from flowedu.core.eager.tensor import Tensor
from typing import NamedTuple

class cummax(NamedTuple):
    """What flow.cummax along an axis gives: values, indices."""
    values: Tensor
    indices: Tensor
class cummin(NamedTuple):
    """What flow.cummin along an axis gives: values, indices."""
    values: Tensor
    indices: Tensor
class kthvalue(NamedTuple):
    """What flow.kthvalue along an axis gives: values, indices."""
    values: Tensor
    indices: Tensor
class linalg_cholesky_ex(NamedTuple):
    """What flow.linalg.cholesky_ex gives: L, info."""
    L: Tensor
    info: Tensor
class linalg_eigh(NamedTuple):
    """What flow.linalg.eigh gives: eigenvalues, eigenvectors."""
    eigenvalues: Tensor
    eigenvectors: Tensor
class linalg_inv_ex(NamedTuple):
    """What flow.linalg.inv_ex gives: inverse, info."""
    inverse: Tensor
    info: Tensor
class linalg_lstsq(NamedTuple):
    """What flow.linalg.lstsq gives: solution, residuals, rank, singular_values."""
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor
class linalg_lu(NamedTuple):
    """What flow.linalg.lu gives: P, L, U."""
    P: Tensor
    L: Tensor
    U: Tensor
class linalg_lu_factor(NamedTuple):
    """What flow.linalg.lu_factor gives: LU, pivots."""
    LU: Tensor
    pivots: Tensor
class linalg_lu_factor_ex(NamedTuple):
    """What flow.linalg.lu_factor_ex gives: LU, pivots, info."""
    LU: Tensor
    pivots: Tensor
    info: Tensor
class linalg_qr(NamedTuple):
    """What flow.linalg.qr gives: Q, R."""
    Q: Tensor
    R: Tensor
class linalg_slogdet(NamedTuple):
    """What flow.linalg.slogdet gives: sign, logabsdet."""
    sign: Tensor
    logabsdet: Tensor
class linalg_svd(NamedTuple):
    """What flow.linalg.svd gives: U, S, Vh."""
    U: Tensor
    S: Tensor
    Vh: Tensor
class max(NamedTuple):
    """What flow.max along an axis gives: values, indices."""
    values: Tensor
    indices: Tensor
class median(NamedTuple):
    """What flow.median along an axis gives: values, indices."""
    values: Tensor
    indices: Tensor
class min(NamedTuple):
    """What flow.min along an axis gives: values, indices."""
    values: Tensor
    indices: Tensor
class mode(NamedTuple):
    """What flow.mode along an axis gives: values, indices."""
    values: Tensor
    indices: Tensor
class nanmedian(NamedTuple):
    """What flow.nanmedian along an axis gives: values, indices."""
    values: Tensor
    indices: Tensor
class qr(NamedTuple):
    """What flow.qr gives: Q, R."""
    Q: Tensor
    R: Tensor
class slogdet(NamedTuple):
    """What flow.slogdet gives: sign, logabsdet."""
    sign: Tensor
    logabsdet: Tensor
class sort(NamedTuple):
    """What flow.sort along an axis gives: values, indices."""
    values: Tensor
    indices: Tensor
class svd(NamedTuple):
    """What flow.svd gives: U, S, V."""
    U: Tensor
    S: Tensor
    V: Tensor
class topk(NamedTuple):
    """What flow.topk along an axis gives: values, indices."""
    values: Tensor
    indices: Tensor
class triangular_solve(NamedTuple):
    """What flow.triangular_solve gives: solution, cloned_coefficient."""
    solution: Tensor
    cloned_coefficient: Tensor
