"""Tensor methods that are also functions, and the operators except + - * / @."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flowedu.core.eager.dispatch import TensorBase, connect
from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.ops.promote import cast, foreign, is_number
from flowedu.core.values import dtype as dt
from flowedu.tensor import elementwise, printing
from flowedu.tensor.arguments.types import Number
from flowedu.tensor.construction import creation, random
from flowedu.tensor.indexing import gather_scatter, getitem, nonzero_positions, setitem, sort_and_search
from flowedu.tensor.linalg import factorizations, inverse_and_norms, least_squares, products
from flowedu.tensor.reductions import covariance, cumulative, reduce
from flowedu.tensor.shapes import join_and_pad, reshape_and_permute, split_and_flip

METHODS = {
    elementwise: """exp expm1 exp2 log log1p log2 log10 sqrt rsqrt reciprocal sin cos tan asin acos atan sinh
        cosh tanh asinh acosh atanh arcsin arccos arctan arcsinh arccosh arctanh erf erfc erfinv lgamma
        digamma sigmoid gelu mish softsign silu selu softplus logit sinc deg2rad rad2deg abs absolute sign sgn
        square relu relu6 neg negative positive floor ceil trunc fix round frac clone add sub subtract mul
        multiply div divide true_divide floor_divide remainder fmod pow float_power atan2 arctan2 xlogy
        copysign addcmul addcdiv lerp hypot logaddexp logaddexp2 heaviside ldexp maximum minimum fmax fmin
        clamp clip clamp_min clamp_max nan_to_num signbit eq ne lt le gt ge not_equal less less_equal greater
        greater_equal logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor
        bitwise_not bitwise_left_shift bitwise_right_shift isnan isinf isfinite isposinf isneginf isclose
        equal allclose any all count_nonzero""",
    reduce: """sum prod mean nansum nanmean amax amin aminmax argmax argmin max min var std logsumexp norm
        renorm""",
    cumulative: "cumsum cumprod cummax cummin logcumsumexp diff",
    reshape_and_permute: """reshape view view_as reshape_as flatten ravel unflatten squeeze unsqueeze permute
        transpose swapaxes swapdims t adjoint movedim moveaxis expand expand_as broadcast_to repeat tile
        repeat_interleave contiguous type_as""",
    split_and_flip: """narrow select split chunk tensor_split unbind unfold diagonal as_strided flip fliplr
        flipud roll rot90 hsplit vsplit dsplit""",
    join_and_pad: "tril triu diag diagflat diag_embed take_along_dim",
    products: """matmul mm bmm mv dot vdot inner outer ger addmm addmv addr baddbmm addbmm kron cross trace
        matrix_power""",
    inverse_and_norms: "inverse det",
    factorizations: "cholesky_inverse cholesky_solve triangular_solve",
    least_squares: "logdet matrix_exp pinverse",
    covariance: "cov corrcoef",
    sort_and_search: """sort argsort msort topk kthvalue median mode quantile masked_select unique
        unique_consecutive bincount histc isin in_top_k""",
    nonzero_positions: "nonzero argwhere",
    gather_scatter: """gather scatter scatter_add scatter_reduce index_select take index_add index_copy
        index_fill index_put index_reduce put masked_fill masked_scatter select_scatter slice_scatter""",
    creation: "new_tensor new_full new_zeros new_ones new_empty",
    random: "bernoulli multinomial",
}
TABLE = {name: getattr(module, name) for module, names in METHODS.items() for name in names.split()}


def where(self: Tensor, condition: Tensor, other: Tensor | Number) -> Tensor:
    """Return flow.where(condition, self, other).

    Args:
        condition: bool tensor. Where it is False, the result has the values of `other`.
        other: tensor or number. The shapes broadcast.
    """
    return elementwise.where(condition, self, other)


def softmax(self: Tensor, dim: int | None = None, dtype: dt.dtype | None = None) -> Tensor:
    """Return exp(x) / sum(exp(x)) along an axis.

    Args:
        dim: axis of the sum; default: 0 for 0, 1, or 3 axes, else 1.
        dtype: dtype to convert the input to first; default: None, keep its dtype.
    """
    return reduce.softmax(self, dim, dtype)


def log_softmax(self: Tensor, dim: int | None = None, dtype: dt.dtype | None = None) -> Tensor:
    """Return the logarithm of softmax along an axis.

    Args:
        dim: axis of the sum; default: 0 for 0, 1, or 3 axes, else 1.
        dtype: dtype to convert the input to first; default: None, keep its dtype.
    """
    return reduce.log_softmax(self, dim, dtype)


TABLE |= {"where": where, "softmax": softmax, "log_softmax": log_softmax,
          "mT": property(reshape_and_permute.mT), "H": property(reshape_and_permute.adjoint),
          "__getitem__": getitem.getitem, "__setitem__": setitem.setitem,
          "__repr__": printing.tensor_repr,
    "__format__": printing.tensor_format, "__contains__": lambda self, x: bool((self == x).any())}


TABLE |= {"cholesky": factorizations.old_cholesky, "qr": factorizations.old_qr, "svd": factorizations.old_svd,
          "slogdet": least_squares.old_slogdet}


# ---- conversions
def _converter(name: str, dtype: dt.dtype) -> Callable[[Tensor], Tensor]:
    """Return the method that converts to a dtype."""
    def convert(self: Tensor) -> Tensor:
        return cast(self, dtype)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"Convert to {dtype.name}; return the tensor itself if it has this dtype."
    return convert


TABLE |= {name: _converter(name, getattr(dt, kind)) for name, kind in (
    ("float", "float32"), ("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16"),
    ("int", "int32"),
    ("long", "int64"), ("bool", "bool_"), ("byte", "uint8"), ("char", "int8"), ("short", "int16"))}


def _cast(self: Tensor, dtype: dt.dtype | type | str) -> Tensor:
    """Convert to another dtype.

    Args:
        dtype: flow.dtype, or a NumPy dtype or Python type that has an equal one.
    """
    return cast(self, dt.as_dtype(dtype))


TABLE["cast"] = _cast


# ---- operators that are also functions of this package
def _foreign(f: Callable, reverse: bool = False) -> Callable:
    """Return f as an operator: NotImplemented for operands that are neither tensors nor numbers."""
    def method(self: Tensor, other: Any) -> Any:
        if not (isinstance(other, TensorBase) or is_number(other)):
            return foreign(f.__name__, *((other, self) if reverse else (self, other)))
        return f(other, self) if reverse else f(self, other)

    return method


TABLE |= {"__pow__": _foreign(elementwise.pow), "__neg__": elementwise.neg, "__pos__": elementwise.positive,
          "__abs__": elementwise.abs, "__invert__": elementwise.bitwise_not}
for _name, _f in (("and", elementwise.bitwise_and), ("or", elementwise.bitwise_or),
                  ("xor", elementwise.bitwise_xor),
                  ("lshift", elementwise.bitwise_left_shift), ("rshift", elementwise.bitwise_right_shift)):
    TABLE |= {f"__{_name}__": _foreign(_f), f"__r{_name}__": _foreign(_f, True)}

attach(Tensor, TABLE)


def _matmul(a: Any, b: Any) -> Any:
    return products.matmul(a, b) if isinstance(a, Tensor) and isinstance(b, Tensor) else \
        foreign("matmul", a, b)


connect(mixed_matmul=_matmul)
