"""Written by `make stubs`: do not edit."""
from flowedu.core.eager.tensor import Tensor
from typing import NamedTuple

class cummax(NamedTuple):
    """Result of flow.cummax along an axis."""
    values: Tensor
    indices: Tensor
class cummin(NamedTuple):
    """Result of flow.cummin along an axis."""
    values: Tensor
    indices: Tensor
class kthvalue(NamedTuple):
    """Result of flow.kthvalue along an axis."""
    values: Tensor
    indices: Tensor
class linalg_cholesky_ex(NamedTuple):
    """Result of flow.linalg.cholesky_ex."""
    L: Tensor
    info: Tensor
class linalg_eigh(NamedTuple):
    """Result of flow.linalg.eigh."""
    eigenvalues: Tensor
    eigenvectors: Tensor
class linalg_inv_ex(NamedTuple):
    """Result of flow.linalg.inv_ex."""
    inverse: Tensor
    info: Tensor
class linalg_lstsq(NamedTuple):
    """Result of flow.linalg.lstsq."""
    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor
class linalg_lu(NamedTuple):
    """Result of flow.linalg.lu."""
    P: Tensor
    L: Tensor
    U: Tensor
class linalg_lu_factor(NamedTuple):
    """Result of flow.linalg.lu_factor."""
    LU: Tensor
    pivots: Tensor
class linalg_lu_factor_ex(NamedTuple):
    """Result of flow.linalg.lu_factor_ex."""
    LU: Tensor
    pivots: Tensor
    info: Tensor
class linalg_qr(NamedTuple):
    """Result of flow.linalg.qr."""
    Q: Tensor
    R: Tensor
class linalg_slogdet(NamedTuple):
    """Result of flow.linalg.slogdet."""
    sign: Tensor
    logabsdet: Tensor
class linalg_svd(NamedTuple):
    """Result of flow.linalg.svd."""
    U: Tensor
    S: Tensor
    Vh: Tensor
class max(NamedTuple):
    """Result of flow.max along an axis."""
    values: Tensor
    indices: Tensor
class median(NamedTuple):
    """Result of flow.median along an axis."""
    values: Tensor
    indices: Tensor
class min(NamedTuple):
    """Result of flow.min along an axis."""
    values: Tensor
    indices: Tensor
class mode(NamedTuple):
    """Result of flow.mode along an axis."""
    values: Tensor
    indices: Tensor
class nanmedian(NamedTuple):
    """Result of flow.nanmedian along an axis."""
    values: Tensor
    indices: Tensor
class qr(NamedTuple):
    """Result of flow.qr."""
    Q: Tensor
    R: Tensor
class slogdet(NamedTuple):
    """Result of flow.slogdet."""
    sign: Tensor
    logabsdet: Tensor
class sort(NamedTuple):
    """Result of flow.sort along an axis."""
    values: Tensor
    indices: Tensor
class svd(NamedTuple):
    """Result of flow.svd."""
    U: Tensor
    S: Tensor
    V: Tensor
class topk(NamedTuple):
    """Result of flow.topk along an axis."""
    values: Tensor
    indices: Tensor
class triangular_solve(NamedTuple):
    """Result of flow.triangular_solve."""
    solution: Tensor
    cloned_coefficient: Tensor
