"""Normalization layers: batch, instance, group, and layer norm, RMS norm, and local response norm."""
from __future__ import annotations

from flowedu.core.layers.module import Module
from flowedu.core.values import dtype as dt
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import ArgumentError, ShapeError, UnsupportedError
from flowedu.nn import functional as F
from flowedu.nn import init
from flowedu.nn.functional.norm import count_up
from flowedu.nn.modules.linear import new_parameter
from flowedu.tensor import Tensor, full
from flowedu.tensor.devices.device import usable


class _Affine(Module):
    """Base class of norms with a weight and a bias, which may be None."""

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class _Norm(_Affine):
    """Base class of batch and instance norm: running statistics, and a weight and bias per channel.

    `ranks` lists the supported numbers of axes of the input.
    """

    _version = 2
    ranks: tuple[int, ...] = ()

    def __init__(self, num_features: int, eps: float, momentum: float | None, affine: bool,
                 track_running_stats: bool, device, dtype, bias: bool):
        super().__init__()
        if device is not None:
            usable(device)                      # checked even without parameters
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, new_parameter(num_features, dtype=dtype, device=device) if wanted
                                    else None)
        kind = dt.get_default_dtype() if dtype is None else dtype
        for name, value in (("running_mean", 0.0), ("running_var", 1.0)):
            running = full((num_features,), value, dtype=kind, device=device) if track_running_stats else None
            self.register_buffer(name, running)
        count = full((), 0, dtype=dt.int64, device=device) if track_running_stats else None
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset the running statistics to mean 0 and variance 1."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Set the weight to 1 and the bias to 0, and reset the running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        """Raise ShapeError for another number of axes. Subclasses may override it, as in PyTorch."""
        if input.ndim not in self.ranks:
            ranks = " or ".join(f"{r}D" for r in self.ranks)
            raise ShapeError(f"{type(self).__name__}: expected {ranks} input (got {input.ndim}D input)",
                             expected=ranks, got=str(tuple(input.shape)),
                             fix="nn.BatchNorm1d, 2d or 3d after the number of spatial axes; x.unsqueeze(0) "
                             "adds a batch axis")

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys,
                              error_msgs):
        key = prefix + "num_batches_tracked"
        if self.num_batches_tracked is not None and key not in state_dict:     # older files do not have it
            state_dict[key] = self.num_batches_tracked
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys,
                                      unexpected_keys, error_msgs)

    def extra_repr(self) -> str:
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"track_running_stats={self.track_running_stats}")


class _BatchNorm(_Norm):
    """Base class of the batch norm layers."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1,
                 affine: bool = True,
                 track_running_stats: bool = True, device=None, dtype=None, *, bias: bool = True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = self.momentum
        own = self._buffers
        if self.training and self.track_running_stats:
            counter = own["num_batches_tracked"]
            if counter is not None and thread_state.tracer is None:
                n = count_up(counter)
                momentum = 1.0 / n if momentum is None else momentum
            elif momentum is None:
                raise ArgumentError(f"{type(self).__name__}: momentum=None needs the number of batches as a "
                                    f"number, which nn.Graph does not have", expected="a number", got="None",
                                    fix="momentum=0.1")
            elif counter is not None:
                counter.add_(1)
        batch = self.training or own["running_mean"] is None and own["running_var"] is None
        track = not self.training or self.track_running_stats
        return F.batch_norm(input, own["running_mean"] if track else None, own["running_var"] if track
                            else None,
                            self.weight, self.bias, batch, 0.0 if momentum is None else momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch norm of (N, C) or (N, C, L) (Ioffe and Szegedy 2015).

    Training mode normalizes each channel with the mean and the biased variance of the batch. It also updates
    `running_mean` and `running_var` with the mean and the unbiased variance of the batch. Eval mode
    normalizes with these running statistics.

    Args:
        num_features: number of channels C.
        eps: number added to the variance.
        momentum: weight of the batch in the update of the running statistics; None: average all batches.
        affine: learn a weight (initialized with 1) and a bias (initialized with 0) per channel.
        track_running_stats: keep running statistics; False: always use the statistics of the batch.
        device: device of parameters and statistics; default: the CPU.
        dtype: dtype of parameters and statistics; default: the default dtype.
        bias: learn a bias if `affine` is True; False: learn only the weight.

    Note:
        `num_batches_tracked` counts the training batches.
    """

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch norm of (N, C, H, W); see BatchNorm1d.

    Args:
        num_features: number of channels C.
        eps: number added to the variance.
        momentum: weight of the batch in the update of the running statistics; None: average all batches.
        affine: learn a weight and a bias per channel.
        track_running_stats: keep running statistics; False: always use the statistics of the batch.
        device: device of parameters and statistics; default: the CPU.
        dtype: dtype of parameters and statistics; default: the default dtype.
        bias: learn a bias if `affine` is True; False: learn only the weight.
    """

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch norm of (N, C, D, H, W); see BatchNorm1d.

    Args:
        num_features: number of channels C.
        eps: number added to the variance.
        momentum: weight of the batch in the update of the running statistics; None: average all batches.
        affine: learn a weight and a bias per channel.
        track_running_stats: keep running statistics; False: always use the statistics of the batch.
        device: device of parameters and statistics; default: the CPU.
        dtype: dtype of parameters and statistics; default: the default dtype.
        bias: learn a bias if `affine` is True; False: learn only the weight.
    """

    ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch norm with statistics over the batches of all ranks.

    On one device, it computes the same as BatchNorm.

    Args:
        num_features: number of channels C of (N, C, ...).
        eps: number added to the variance.
        momentum: weight of the batch in the update of the running statistics; None: average all batches.
        affine: learn a weight and a bias per channel.
        track_running_stats: keep running statistics; False: always use the statistics of the batch.
        device: device of parameters and statistics; default: the CPU.
        dtype: dtype of parameters and statistics; default: the default dtype.
        bias: learn a bias if `affine` is True; False: learn only the weight.
    """

    ranks = (2, 3, 4, 5)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group=None) -> Module:
        """Return the module with every BatchNorm replaced by a SyncBatchNorm.

        The new layers share the parameters and statistics of the old ones.

        Args:
            module: module to convert; its children are replaced in place.
            process_group: must be None, because all ranks share their statistics.

        Raises:
            UnsupportedError: a process_group was passed.
        """
        if process_group is not None:
            raise UnsupportedError("SyncBatchNorm.convert_sync_batchnorm: process_group",
                                   expected="None: all ranks share their statistics", got=repr(process_group),
                                   fix="leave it out")
        new = module
        if isinstance(module, _BatchNorm) and not isinstance(module, cls):
            new = cls(module.num_features, module.eps, module.momentum, module.affine,
                      module.track_running_stats)
            new._parameters.update(module._parameters)
            new._buffers.update(module._buffers)
            new.training = module.training
        for name, child in list(module.named_children()):
            new.add_module(name, cls.convert_sync_batchnorm(child))
        return new


class _InstanceNorm(_Norm):
    """Base class of the instance norm layers."""

    momentum: float

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device=None, dtype=None, *, bias: bool = True):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        axis = input.ndim - self._get_no_batch_dim()
        channels = input.shape[axis]
        if channels != self.num_features and self.affine:
            raise ShapeError(f"{type(self).__name__}: expected input's size at dim={axis} to match "
                             f"num_features ({self.num_features}), but got: {channels}.",
                             expected=f"{self.num_features} channels", got=str(tuple(input.shape)),
                             fix="a layer made with num_features of the input's channels")
        return (self._apply_instance_norm if axis else self._handle_no_batch_input)(input)

    # Subclasses may override these methods, as in PyTorch.
    def _get_no_batch_dim(self) -> int:
        return self.ranks[0]

    def _handle_no_batch_input(self, input: Tensor) -> Tensor:
        return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        return F.instance_norm(input, self.running_mean, self.running_var, self.weight, self.bias,
                               self.training or not self.track_running_stats, self.momentum, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Instance norm of (N, C, L) or (C, L): each channel of each sample is normalized separately.

    Args:
        num_features: number of channels C.
        eps: number added to the variance.
        momentum: weight of the batch in the update of the running statistics.
        affine: learn a weight and a bias per channel; off by default.
        track_running_stats: keep running statistics and use them in eval mode; off by default.
        device: device of parameters and statistics; default: the CPU.
        dtype: dtype of parameters and statistics; default: the default dtype.
        bias: learn a bias if `affine` is True; False: learn only the weight.
    """

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance norm of (N, C, H, W) or (C, H, W): each channel of each sample is normalized separately.

    Args:
        num_features: number of channels C.
        eps: number added to the variance.
        momentum: weight of the batch in the update of the running statistics.
        affine: learn a weight and a bias per channel; off by default.
        track_running_stats: keep running statistics and use them in eval mode; off by default.
        device: device of parameters and statistics; default: the CPU.
        dtype: dtype of parameters and statistics; default: the default dtype.
        bias: learn a bias if `affine` is True; False: learn only the weight.
    """

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance norm of (N, C, D, H, W) or (C, D, H, W): each channel of each sample is normalized separately.

    Args:
        num_features: number of channels C.
        eps: number added to the variance.
        momentum: weight of the batch in the update of the running statistics.
        affine: learn a weight and a bias per channel; off by default.
        track_running_stats: keep running statistics and use them in eval mode; off by default.
        device: device of parameters and statistics; default: the CPU.
        dtype: dtype of parameters and statistics; default: the default dtype.
        bias: learn a bias if `affine` is True; False: learn only the weight.
    """

    ranks = (4, 5)


class GroupNorm(_Affine):
    """Group norm of (N, C, ...): groups of channels of each sample are normalized (Wu and He 2018).

    Args:
        num_groups: number of groups, a divisor of num_channels.
        num_channels: number of channels C.
        eps: number added to the variance.
        affine: learn a weight and a bias per channel.
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.
        bias: learn a bias if `affine` is True; False: learn only the weight.

    Raises:
        ArgumentError: num_groups does not divide num_channels.
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 device=None, dtype=None, *, bias: bool = True):
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ArgumentError("GroupNorm: num_channels must be divisible by num_groups",
                                expected=f"a multiple of {num_groups}", got=f"{num_channels} channels",
                                fix="num_groups=1 makes one group of all channels")
        self.num_groups, self.num_channels = num_groups, num_channels
        self.eps, self.affine = eps, affine
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            self.register_parameter(name, new_parameter(num_channels, dtype=dtype, device=device) if wanted
                                    else None)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class LayerNorm(_Affine):
    """Layer norm: each sample is normalized over its last axes (Ba et al. 2016).

    Args:
        normalized_shape: shape of the last axes, an int or a tuple.
        eps: number added to the variance.
        elementwise_affine: learn a weight and a bias of shape normalized_shape.
        bias: learn a bias if `elementwise_affine` is True; False: learn only the weight.
        device: device of the parameters; default: the CPU.
        dtype: dtype of the parameters; default: the default dtype.

    Example:
        >>> flow.nn.LayerNorm(2)(flow.tensor([[1.0, 3.0]])).shape
        oneflow.Size([1, 2])
    """

    def __init__(self, normalized_shape, eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = ((normalized_shape,) if isinstance(normalized_shape,
                                                                   int) else tuple(normalized_shape))
        self.eps, self.elementwise_affine = eps, elementwise_affine
        for name, wanted in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            self.register_parameter(name, new_parameter(*self.normalized_shape, dtype=dtype, device=device)
                                    if wanted else None)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(Module):
    """RMS norm: x / sqrt(mean(x * x) + eps) * weight over the last axes (Zhang and Sennrich 2019).

    Args:
        normalized_shape: shape of the last axes, an int or a tuple.
        eps: number added to the mean square; None: the machine epsilon of the dtype.
        elementwise_affine: learn a weight of shape normalized_shape.
        device: device of the weight; default: the CPU.
        dtype: dtype of the weight; default: the default dtype.

    Note:
        The default of `eps` is 1e-5, as in OneFlow. In PyTorch, it is None.
    """

    def __init__(self, normalized_shape, eps: float | None = 1e-5, elementwise_affine: bool = True,
                 device=None, dtype=None):
        super().__init__()
        self.normalized_shape = ((normalized_shape,) if isinstance(normalized_shape,
                                                                   int) else tuple(normalized_shape))
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", new_parameter(*self.normalized_shape, dtype=dtype, device=device)
                                if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LocalResponseNorm(Module):
    """Local response norm: x / (k + alpha * mean of the squares of `size` neighboring channels) ** beta.

    Args:
        size: number of neighboring channels in each mean.
        alpha: factor of the mean.
        beta: exponent.
        k: number added to the mean.

    Shape:
        (N, C, ...) to the same shape.
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size, self.alpha = size, alpha
        self.beta, self.k = beta, k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
