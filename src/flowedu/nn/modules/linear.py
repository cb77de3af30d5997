"""Linear, Bilinear, Identity, Flatten, Unflatten, and Embedding layers."""
from __future__ import annotations

import math
from typing import Any

from flowedu.core.layers.module import Module
from flowedu.core.layers.parameter import Parameter
from flowedu.core.values import dtype as dt
from flowedu.errors import ArgumentError, ShapeError
from flowedu.nn import functional as F
from flowedu.nn import init
from flowedu.tensor import Tensor, empty, no_grad


def new_parameter(*shape: int, dtype=None, device=None) -> Parameter:
    """Return a parameter of this shape with uninitialized values."""
    t = empty(*shape, dtype=dt.get_default_dtype() if dtype is None else dtype)
    return Parameter(t if device is None else t.to(device))


class Linear(Module):
    """Affine map: y = x @ weight.T + bias.

    `weight` has the shape (out_features, in_features). `weight` and `bias` are drawn uniformly from [-b, b],
    where b = 1 / sqrt(in_features).

    Args:
        in_features: size of the last axis of the input.
        out_features: size of the last axis of the output.
        bias: add a learnable bias.
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.

    Shape:
        (..., in_features) to (..., out_features).

    Example:
        >>> flow.nn.Linear(3, 2)(flow.zeros(4, 3)).shape
        oneflow.Size([4, 2])
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device=None, dtype=None):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = new_parameter(out_features, in_features, dtype=dtype, device=device)
        self.register_parameter("bias", new_parameter(out_features, dtype=dtype, device=device) if bias
                                else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        init.uniform_bias_(self.bias, self.in_features)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")


class Bilinear(Module):
    """Bilinear map: y = x1.T @ weight @ x2 + bias.

    `weight` has the shape (out_features, in1_features, in2_features).

    Args:
        in1_features: size of the last axis of the first input.
        in2_features: size of the last axis of the second input.
        out_features: size of the last axis of the output.
        bias: add a learnable bias.
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.
    """

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
                 device=None, dtype=None):
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = new_parameter(out_features, in1_features, in2_features, dtype=dtype, device=device)
        self.register_parameter("bias", new_parameter(out_features, dtype=dtype, device=device) if bias
                                else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        init.uniform_bias_(self.bias, self.in1_features)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
                f"out_features={self.out_features}, bias={self.bias is not None}")


class Identity(Module):
    """Layer that returns its input.

    Args:
        *args, **kwargs: ignored.
    """

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Flatten(Module):
    """Layer that merges adjacent axes into one.

    Args:
        start_dim: first axis to merge.
        end_dim: last axis to merge.
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Layer that splits one axis into several axes.

    Args:
        dim: axis to split.
        unflattened_size: sizes of the new axes; one of them may be -1.
    """

    def __init__(self, dim: int, unflattened_size):
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class _Table(Module):
    """Base class of Embedding and EmbeddingBag."""

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None,
                 norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
                 _weight: Tensor | None = None, device=None, dtype=None):
        super().__init__()
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ArgumentError("Embedding: Padding_idx must be within num_embeddings",
                                    got=str(padding_idx),
                                    expected=f"an int in [{-num_embeddings}, {num_embeddings - 1}]",
                                    fix="-1 is the last row")
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if _weight is None:
            self.weight = new_parameter(num_embeddings, embedding_dim, dtype=dtype, device=device)
            self.reset_parameters()
        else:
            if tuple(_weight.shape) != (num_embeddings, embedding_dim):
                raise ShapeError("Embedding: Shape of weight does not match num_embeddings and embedding_dim",
                                 expected=str((num_embeddings, embedding_dim)), got=str(tuple(_weight.shape)),
                                 fix="Embedding.from_pretrained(weight) takes the sizes from it")
            self.weight = Parameter(_weight)

    def reset_parameters(self) -> None:
        """Draw new initial values."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)

    @classmethod
    def _from_rows(cls, embeddings: Tensor, freeze: bool, **options) -> Any:
        """Return a layer whose table contains the given rows."""
        if embeddings.ndim != 2:
            raise ShapeError(
                f"{cls.__name__}.from_pretrained: Embeddings parameter is expected to be 2-dimensional",
                expected="(rows, size)", got=str(tuple(embeddings.shape)), fix="embeddings.reshape(rows, -1)")
        rows, size = embeddings.shape
        layer = cls(rows, size, _weight=embeddings, **options)
        layer.weight.requires_grad = not freeze
        return layer

    def extra_repr(self) -> str:
        s = f"{self.num_embeddings}, {self.embedding_dim}"
        s += f", padding_idx={self.padding_idx}" if self.padding_idx is not None else ""
        s += f", max_norm={self.max_norm}" if self.max_norm is not None else ""
        s += f", norm_type={self.norm_type}" if self.norm_type != 2 else ""
        s += f", scale_grad_by_freq={self.scale_grad_by_freq}" if self.scale_grad_by_freq else ""
        return s + (", sparse=True" if self.sparse else "")


class Embedding(_Table):
    """Table of vectors that are looked up by integer indices; see F.embedding.

    `weight`, of shape (num_embeddings, embedding_dim), is initialized with normal(0, 1).

    Args:
        num_embeddings: number of rows.
        embedding_dim: size of a vector.
        padding_idx: row that is initialized with zeros and gets no gradient; default: no such row.
        max_norm: largest norm of a row; default: no limit. Rows with a larger norm are scaled down in place
            when they are read.
        norm_type: order p of the norm that `max_norm` limits.
        scale_grad_by_freq: divide the gradient of a row by the number of its uses in the batch.
        sparse: accepted for compatibility; gradients are dense.
        _weight: initial table; default: random.
        device: device of the weight; default: the CPU.
        dtype: dtype of the weight; default: the default dtype.

    Shape:
        Integers (...) to (..., embedding_dim).

    Raises:
        OutOfRangeError: an index is outside the table (raised by the call of the layer).
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
                           self.scale_grad_by_freq, self.sparse)

    @classmethod
    def from_pretrained(cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None,
                        **options) -> Embedding:
        """Return a layer whose table contains the given rows.

        Args:
            embeddings: the table, (rows, size).
            freeze: exclude the table from training.
            padding_idx: row without a gradient; default: no such row.
            **options: other arguments of the class.
        """
        return cls._from_rows(embeddings, freeze, padding_idx=padding_idx, **options)
