"""Building blocks of vision networks: convolution with norm and activation, squeeze and excitation, ..."""
from __future__ import annotations

from collections.abc import Callable, Sequence

import flowedu as flow
from flowedu import nn
from flowedu.errors import ArgumentError
from flowedu.tensor import Tensor


class Conv2dNormActivation(nn.Sequential):
    """Convolution, norm, activation; what is None is left out. padding None: so much that stride 1 keeps the size.

    x (N, in_channels, H, W) -> (N, out_channels, H', W'). bias None: only without a norm. Attribute: out_channels.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, int] = 3, stride=1, padding=None,
                 groups: int = 1, norm_layer: Callable[..., nn.Module] | None = nn.BatchNorm2d,
                 activation_layer: Callable[..., nn.Module] | None = nn.ReLU, dilation: int | tuple[int, int] = 1,
                 inplace: bool | None = True, bias: bool | None = None):
        if padding is None:
            two = [v if isinstance(v, (tuple, list)) else (v, v) for v in (kernel_size, dilation)]
            padding = tuple((k - 1) // 2 * d for k, d in zip(*two))
        layers: list[nn.Module] = [nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding, dilation, groups,
                                             norm_layer is None if bias is None else bias)]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**({} if inplace is None else {"inplace": inplace})))
        super().__init__(*layers)
        self.out_channels = out_channels


class SqueezeExcitation(nn.Module):
    """Each channel is scaled by what the means of all channels say of it (Hu et al., 2018). (N, C, H, W) -> the same."""

    def __init__(self, input_channels: int, squeeze_channels: int, activation: Callable[..., nn.Module] = nn.ReLU,
                 scale_activation: Callable[..., nn.Module] = nn.Sigmoid):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = nn.Conv2d(input_channels, squeeze_channels, 1), nn.Conv2d(squeeze_channels, input_channels, 1)
        self.activation, self.scale_activation = activation(), scale_activation()

    def forward(self, input: Tensor) -> Tensor:
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(input))))) * input


class MLP(nn.Sequential):
    """Linear, norm, activation, dropout for each of hidden_channels; the last has no norm and no activation."""

    def __init__(self, in_channels: int, hidden_channels: Sequence[int],
                 norm_layer: Callable[..., nn.Module] | None = None,
                 activation_layer: Callable[..., nn.Module] | None = nn.ReLU, inplace: bool | None = None,
                 bias: bool = True, dropout: float = 0.0):
        if not hidden_channels:
            raise ArgumentError("MLP: hidden_channels is empty", expected="widths, the output's last", got="[]")
        options = {} if inplace is None else {"inplace": inplace}
        layers: list[nn.Module] = []
        for width in hidden_channels[:-1]:
            layers.append(nn.Linear(in_channels, width, bias=bias))
            if norm_layer is not None:
                layers.append(norm_layer(width))
            layers += [activation_layer(**options)] if activation_layer is not None else []
            layers.append(nn.Dropout(dropout, **options))
            in_channels = width
        super().__init__(*layers, nn.Linear(in_channels, hidden_channels[-1], bias=bias), nn.Dropout(dropout, **options))


class Permute(nn.Module):
    """x.permute(dims)."""

    def __init__(self, dims: Sequence[int]):
        super().__init__()
        self.dims = list(dims)

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(*self.dims)


class FrozenBatchNorm2d(nn.Module):
    """A batch norm whose statistics and parameters are buffers: it never learns. (N, C, H, W) -> the same."""

    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(name, flow.full((num_features,), value))

    def forward(self, x: Tensor) -> Tensor:
        scale = (self.weight * (self.running_var + self.eps).rsqrt()).reshape(1, -1, 1, 1)
        return x * scale + (self.bias.reshape(1, -1, 1, 1) - self.running_mean.reshape(1, -1, 1, 1) * scale)


def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:
    """While training: 0 with the probability p, else input / (1 - p) (Huang et al., 2016). mode: "batch", all of it or
    nothing; "row", each row by itself. Otherwise the input."""
    if not 0.0 <= p <= 1.0:
        raise ArgumentError("stochastic_depth: p is no probability", expected="0 to 1", got=repr(p))
    if mode not in ("batch", "row"):
        raise ArgumentError("stochastic_depth: mode", expected='"batch" or "row"', got=repr(mode))
    if not training or p == 0.0:
        return input
    shape = [input.shape[0] if mode == "row" else 1] + [1] * (input.ndim - 1)
    kept = flow.bernoulli(flow.full(shape, 1.0 - p, device=input.device)).to(input.dtype)
    return input * (kept / (1.0 - p) if p < 1.0 else kept)


class StochasticDepth(nn.Module):
    """stochastic_depth as a module."""

    def __init__(self, p: float, mode: str):
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, input: Tensor) -> Tensor:
        return stochastic_depth(input, self.p, self.mode, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}, mode={self.mode}"
