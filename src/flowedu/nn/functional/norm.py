"""Normalization: batch, instance, group, and layer norm, RMS norm, local response norm, and normalize."""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from flowedu.core.ops import elementwise, reduce, view
from flowedu.core.ops.call import current_interpreter
from flowedu.core.ops.concat import slice_grad
from flowedu.core.ops.elementwise import add, mul
from flowedu.core.ops.promote import cast, scalar
from flowedu.core.values import dtype as dt
from flowedu.core.values.dtype import HALVES, float32
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import ArgumentError, DTypeError, ShapeError
from flowedu.errors.element_types import mixed
from flowedu.fast.ops import moving
from flowedu.nn.functional.common import Ints, ValueT, check_floats, reshaped, times
from flowedu.ops import norm as norm_ops
from flowedu.ops.bounds import clamp_min
from flowedu.tensor import Tensor, no_grad
from flowedu.tensor.devices.conversion import use_device_of
from flowedu.tensor.inplace.writing import bump, try_into


def _filled(n: int | Ints, value: float, dtype: dt.dtype) -> Any:
    return view.constant.call((), ((n,) if isinstance(n, int) else tuple(n), value, dtype))


def _affine(x: ValueT, n: int | Ints, weight: ValueT | None, bias: ValueT | None) -> tuple[ValueT, ValueT]:
    """Return weight and bias, ones and zeros if they are None."""
    with use_device_of(x):
        return ((_filled(n, 1.0, x.dtype) if weight is None else weight, _filled(n, 0.0, x.dtype)
                 if bias is None else bias))


def moving_average(running: Tensor, batch: Tensor, momentum: float, factor: float = 1.0) -> None:
    """Set running = (1 - momentum) * running + momentum * factor * batch in place."""
    dtype = running.dtype
    inputs = (running, cast(batch, dtype), scalar(1 - momentum, dtype), scalar(momentum * factor, dtype))
    if current_interpreter() is not None or not try_into(moving.blend, inputs, (), running):
        running.copy_(moving.blend.call(inputs, ()))


def count_up(counter: Tensor) -> int:
    """Add 1 to an int64 counter in place, and return its value."""
    if counter.global_layout is not None or counter._device:
        return int(counter.add_(1).item())
    values = counter.numpy()
    values += 1
    bump(counter)
    return int(values)


def _samples_apart(x: Tensor) -> bool:
    """Return True if a global tensor is split along an axis other than the channels."""
    at = x.global_layout
    return at is not None and not at.single and any(s.text[0] == "S" and s.text != "S1" for s in at.sbp)


def _batch_norm_apart(x: Tensor, gamma: Tensor, beta: Tensor, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """Compute batch_norm if no device has all samples of a channel.

    Two sums over the devices, of one number per channel each, replace gathering x. A single op could not be
    split, because its variance is not the sum of the variances of the parts.
    """
    axes, whole = tuple(i for i in range(x.ndim) if i != 1), x.global_layout.whole.sbp
    mean = x.mean(axes).to_global(sbp=whole, grad_sbp=whole)
    away = x - mean.reshape(1, -1, *(1,) * (x.ndim - 2))
    var = (away * away).mean(axes).to_global(sbp=whole, grad_sbp=whole)
    return norm_ops.batch_norm_infer.call((x, gamma, beta, mean, var), (1, eps)), mean.detach(), var.detach()


def batch_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
               weight: Tensor | None = None, bias: Tensor | None = None, training: bool = False,
               momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Return (x - mean) / sqrt(var + eps) * weight + bias, with one mean and variance per channel (axis 1).

    Args:
        input: (N, C, ...).
        running_mean: (C,); default: None, which requires training=True.
        running_var: (C,); default: None, which requires training=True.
        weight: (C,); default: 1.
        bias: (C,); default: 0.
        training: True: normalize with the mean and the biased variance of the batch, and update the running
            statistics in place (with the unbiased variance). False: normalize with the running statistics.
        momentum: weight of the batch in the update of the running statistics.
        eps: number added to the variance.

    Raises:
        ShapeError (a ValueError and RuntimeError): a vector does not have C elements, or `training` is True
            and each channel has only one value.
    """
    check_floats("batch_norm", input)
    if input.ndim < 2:
        raise ShapeError("batch_norm: the input has no channels", expected="(N, C, ...)",
                         got=str(tuple(input.shape)), fix="x.unsqueeze(0) adds a batch axis")
    channels = input.shape[1]
    for name, v in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight),
                    ("bias", bias)):
        if v is not None and tuple(v.shape) != (channels,):
            raise ShapeError(f"batch_norm: {name} should contain {channels} elements not {v.numel()}",
                             expected=f"({channels},)"
                             f", one for each channel of the input", got=str(tuple(v.shape)),
                             fix=f"a layer made with num_features={channels}")
    gamma, beta = _affine(input, channels, weight, bias)
    if not training:
        if running_mean is None or running_var is None:
            raise ArgumentError("batch_norm: Expected running_mean and running_var to be defined when "
                                "training=False", expected="two tensors", got="None", fix="training=True")
        return norm_ops.batch_norm_infer.call((input, gamma, beta, running_mean, running_var), (1, eps))
    if not input.numel():                                # an empty batch has no statistics
        return _per_channel(input * 1, weight, bias)
    count = input.numel() // max(channels, 1)
    if count <= 1:
        raise ShapeError(f"Expected more than 1 value per channel when training, got input size "
                         f"{list(input.shape)}",
                         expected="a batch of two or more", got=str(tuple(input.shape)),
                         fix="a larger batch, or model.eval()")
    if _samples_apart(input):
        y, mean, var = _batch_norm_apart(input, gamma, beta, eps)
    else:
        y, mean, var = norm_ops.batch_norm.call((input, gamma, beta), (1, eps))
    if running_mean is not None or running_var is not None:
        with no_grad():
            if running_mean is not None:
                moving_average(running_mean, mean, momentum)
            if running_var is not None:
                moving_average(running_var, var, momentum, count / (count - 1))
    return y


def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
                  weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Normalize each channel of each sample.

    Args:
        input: (N, C, ...) with at least one spatial axis.
        running_mean: (C,), updated in place with the mean over the batch if use_input_stats; default: None.
        running_var: (C,), updated in the same way; default: None.
        weight: (C,); default: 1.
        bias: (C,); default: 0.
        use_input_stats: use the statistics of each sample. False: use the running statistics.
        momentum: weight of the batch in the update of the running statistics.
        eps: number added to the variance.
    """
    check_floats("instance_norm", input)
    if input.ndim < 3:
        raise ShapeError("instance_norm: the input has no spatial axes", expected="(N, C, ...)",
                         got=str(tuple(input.shape)), fix="layer_norm normalises over the last axes")
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    n, c, size = input.shape[0], input.shape[1], prod(input.shape[2:])
    if not c:
        raise ShapeError("instance_norm: the input has no channels",
                         expected="(N, C, ...) with C of 1 or more",
                         got=str(tuple(input.shape)), fix="check the axes' order")
    if size <= 1:
        raise ShapeError(f"Expected more than 1 spatial element when training, got input size "
                         f"{list(input.shape)}",
                         expected="a plane of two or more elements", got=str(tuple(input.shape)),
                         fix="larger planes, or model.eval() with running statistics")
    y, mean, inv_std = by_groups(input, c, eps)
    if n and (running_mean is not None or running_var is not None):
        with no_grad():
            over = {"axis": (0,), "keepdims": False}
            if running_mean is not None:
                mean = times(reduce.sum(reshaped(mean.detach(), (n, c)), **over), 1 / n)
                moving_average(running_mean, mean, momentum)
            if running_var is not None:
                var = 1.0 / elementwise.square(inv_std.detach()) - eps
                var = times(reduce.sum(reshaped(var, (n, c)), **over), 1 / n)
                moving_average(running_var, var, momentum, size / (size - 1))
    return _per_channel(y, weight, bias)


def by_groups(x: ValueT, groups: int, eps: float) -> tuple[ValueT, ValueT, ValueT]:
    """Normalize groups of channels of x (n, c, ...).

    The result is (the normalized x, the means of the groups, 1 / std of the groups).
    """
    n, size = x.shape[0], prod(x.shape[1:]) // groups
    one, zero = _affine(x, size, None, None)
    y, mean, inv_std = norm_ops.layer_norm.call((reshaped(x, (n, groups, size)), one, zero), (2, eps))
    return reshaped(y, tuple(x.shape)), mean, inv_std


def _per_channel(y: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    shape = (-1, *(1,) * (y.ndim - 2))
    for op, v in ((mul, weight), (add, bias)):
        if v is not None:
            y = op.call((y, reshaped(v, (v.shape[0], *shape[1:]))), ())
    return y


def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:
    """Normalize groups of channels of each sample, then apply a weight and bias per channel.

    Args:
        input: (N, C, ...).
        num_groups: number of groups, a divisor of C.
        weight: (C,); default: 1.
        bias: (C,); default: 0.
        eps: number added to the variance.

    Raises:
        ArgumentError (a ValueError and RuntimeError): num_groups does not divide C.
    """
    check_floats("group_norm", input)
    if input.ndim < 2 or num_groups < 1 or input.shape[1] % num_groups:
        raise ArgumentError("group_norm: Expected number of channels in input to be divisible by num_groups",
                            expected=f"(N, C, ...) with C a multiple of {num_groups}",
                            got=f"input {tuple(input.shape)}, num_groups={num_groups}",
                            fix="num_groups=1 makes one group of all channels")
    if not input.numel():
        return _per_channel(input * 1, weight, bias)
    if input.numel() <= num_groups:
        raise ShapeError(f"Expected more than 1 value per channel when training, got input size "
                         f"{list(input.shape)}",
                         expected="groups of two or more elements", got=str(tuple(input.shape)),
                         fix="fewer groups")
    return _per_channel(by_groups(input, num_groups, eps)[0], weight, bias)


def _check_shape(what: str, input: Tensor, normalized_shape: int | Sequence[int],
                 **others: Tensor | None) -> Ints:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    for name, v in others.items():
        if v is not None and tuple(v.shape) != shape:
            raise ShapeError(f"{what}: Expected {name} to be of same shape as normalized_shape, but got "
                             f"{name} of shape {list(v.shape)} and normalized_shape = {list(shape)}",
                             expected=str(shape), got=str(tuple(v.shape)), fix="a parameter of that shape")
        if v is not None and v.dtype is not input.dtype and thread_state.amp is None and not (
                input.dtype in HALVES and v.dtype is float32):
            raise DTypeError(f"{what}: {name} and the input have different dtypes",
                             expected=repr(input.dtype),
                             got=repr(v.dtype), fix=mixed(f"input.to(flow.{v.dtype.name})", v.dtype,
                                                          input.dtype))
    if not shape or tuple(input.shape[-len(shape):]) != shape or input.ndim < len(shape):
        raise ShapeError(f"{what}: Given normalized_shape={shape}, expected input with shape [*, "
                         f"{', '.join(map(str, shape))}], but got input of size {list(input.shape)}",
                         expected=f"(*, {', '.join(map(str, shape))})", got=str(tuple(input.shape)),
                         fix=f"normalized_shape={tuple(input.shape[input.ndim - len(shape):])}")
    return shape


def layer_norm(input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None,
               bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """Normalize each sample over its last axes, then apply a weight and bias per element.

    Args:
        input: (*, *normalized_shape).
        normalized_shape: shape of the last axes, an int or a tuple.
        weight: tensor of shape normalized_shape; default: 1.
        bias: tensor of shape normalized_shape; default: 0.
        eps: number added to the variance.

    Raises:
        ShapeError (a RuntimeError): the shape of the input does not end with normalized_shape.
    """
    check_floats("layer_norm", input)
    shape = _check_shape("layer_norm", input, normalized_shape, weight=weight, bias=bias)
    gamma, beta = _affine(input, shape, weight, bias)
    return norm_ops.layer_norm.call((input, gamma, beta), (input.ndim - len(shape), eps))[0]


def rms_norm(input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None,
             eps: float | None = None) -> Tensor:
    """Return x / sqrt(mean(x * x) + eps) * weight, with the mean over the last axes.

    Args:
        input: (*, *normalized_shape).
        normalized_shape: shape of the last axes, an int or a tuple.
        weight: tensor of shape normalized_shape; default: 1.
        eps: number added to the mean square; default: the machine epsilon of the dtype.
    """
    check_floats("rms_norm", input)
    shape = _check_shape("rms_norm", input, normalized_shape, weight=weight)
    if eps is None:
        eps = {"float64": 2.0 ** -52, "float16": 2.0 ** -10,
               "bfloat16": 2.0 ** -7}.get(input.dtype.name, 2.0 ** -23)
    axes = tuple(range(input.ndim - len(shape), input.ndim))
    squares = elementwise.square.call((input,), ())
    mean = times(reduce.sum.call((squares,), (axes, True)), 1.0 / max(prod(shape), 1))
    y = input * elementwise.rsqrt.call((mean + eps,), ())
    return y if weight is None else y * weight


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75,
                        k: float = 1.0) -> Tensor:
    """Return x / (k + alpha * mean of the squares of `size` neighboring channels) ** beta.

    Args:
        input: (N, C, ...).
        size: number of neighboring channels in each mean.
        alpha: factor of the mean.
        beta: exponent.
        k: number added to the mean.
    """
    check_floats("local_response_norm", input)
    if input.ndim < 3:
        raise ShapeError("local_response_norm: Expected 3D or higher dimensionality input",
                         expected="(N, C, ...)",
                         got=f"{input.ndim} dimensions", fix="x.unsqueeze(-1) adds an axis")
    from flowedu.nn.functional.pool import avg_pool2d
    n, c, rest = input.shape[0], input.shape[1], prod(input.shape[2:])
    squares = reshaped(elementwise.square(input), (n, 1, c, rest))
    before = size // 2
    padded = slice_grad(squares, shape=(n, 1, c + size - 1, rest), start=(0, 0, before, 0),
                        stop=(n, 1, before + c, rest), step=(1, 1, 1, 1))
    mean = reshaped(avg_pool2d(padded, (size, 1), 1), tuple(input.shape))
    return input / (mean * alpha + k) ** beta


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divide the vectors along `dim` by their norm, or by eps if the norm is smaller.

    Args:
        input: floating tensor.
        p: order of the norm.
        dim: axis of the vectors.
        eps: lower limit of the norm.
    """
    from flowedu.tensor.reductions.reduce import vector_norm
    check_floats("normalize", input)
    norm = vector_norm(input, p, dim, True)
    return input / clamp_min(norm, float(eps))
