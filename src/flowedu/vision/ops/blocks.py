"""Building blocks of vision networks, such as Conv2dNormActivation and SqueezeExcitation.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

import flowedu as flow
from flowedu import nn
from flowedu.errors import ArgumentError
from flowedu.tensor import Tensor


class Conv2dNormActivation(nn.Sequential):
    """Convolution, norm, and activation: (N, in_channels, H, W) to (N, out_channels, H', W').

    Attributes: out_channels.

    Args:
        in_channels, out_channels: numbers of channels.
        kernel_size, stride, dilation, groups: see Conv2d.
        padding: see Conv2d; default: preserves the size at stride 1.
        norm_layer: function of the number of channels; None: no norm.
        activation_layer: function that returns the activation; None: no activation.
        inplace: argument of the activation; None: not passed.
        bias: add a bias to the convolution; default: only without a norm.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int | tuple[int, int] = 3, stride=1,
                 padding=None, groups: int = 1, norm_layer: Callable[..., nn.Module] | None = nn.BatchNorm2d,
                 activation_layer: Callable[..., nn.Module] | None = nn.ReLU,
                 dilation: int | tuple[int, int] = 1, inplace: bool | None = True, bias: bool | None = None):
        if padding is None:
            two = [v if isinstance(v, (tuple, list)) else (v, v) for v in (kernel_size, dilation)]
            padding = tuple((k - 1) // 2 * d for k, d in zip(*two))
        layers: list[nn.Module] = [nn.Conv2d(in_channels, out_channels, kernel_size, stride, padding,
                                             dilation, groups, norm_layer is None if bias is None else bias)]
        if norm_layer is not None:
            layers.append(norm_layer(out_channels))
        if activation_layer is not None:
            layers.append(activation_layer(**({} if inplace is None else {"inplace": inplace})))
        super().__init__(*layers)
        self.out_channels = out_channels


class SqueezeExcitation(nn.Module):
    """Scaling of each channel by a function of the means of all channels (Hu et al., 2018).

    Args:
        input_channels: number of channels C of (N, C, H, W).
        squeeze_channels: number of hidden features.
        activation: activation of the hidden features.
        scale_activation: activation of the scales.
    """

    def __init__(self, input_channels: int, squeeze_channels: int,
                 activation: Callable[..., nn.Module] = nn.ReLU,
                 scale_activation: Callable[..., nn.Module] = nn.Sigmoid):
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = (nn.Conv2d(input_channels, squeeze_channels, 1),
                              nn.Conv2d(squeeze_channels, input_channels, 1))
        self.activation, self.scale_activation = activation(), scale_activation()

    def forward(self, input: Tensor) -> Tensor:
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(input))))) * input


class MLP(nn.Sequential):
    """Linear, norm, activation, and dropout for each of hidden_channels; the last has no norm or activation.

    Args:
        in_channels: number of features of the input.
        hidden_channels: numbers of features of the layers.
        norm_layer: function of the number of features; None: no norm.
        activation_layer: function that returns the activation; None: no activation.
        inplace: argument of activation and dropout; None: not passed.
        bias: add biases.
        dropout: dropout probability.
    """

    def __init__(self, in_channels: int, hidden_channels: Sequence[int],
                 norm_layer: Callable[..., nn.Module] | None = None,
                 activation_layer: Callable[..., nn.Module] | None = nn.ReLU, inplace: bool | None = None,
                 bias: bool = True, dropout: float = 0.0):
        if not hidden_channels:
            raise ArgumentError("MLP: hidden_channels is empty", expected="widths, the output's last",
                                got="[]")
        options = {} if inplace is None else {"inplace": inplace}
        layers: list[nn.Module] = []
        for width in hidden_channels[:-1]:
            layers.append(nn.Linear(in_channels, width, bias=bias))
            if norm_layer is not None:
                layers.append(norm_layer(width))
            layers += [activation_layer(**options)] if activation_layer is not None else []
            layers.append(nn.Dropout(dropout, **options))
            in_channels = width
        super().__init__(*layers, nn.Linear(in_channels, hidden_channels[-1], bias=bias),
                         nn.Dropout(dropout, **options))


class Permute(nn.Module):
    """Permutation of the axes, x.permute(dims).

    Args:
        dims: order of the axes.
    """

    def __init__(self, dims: Sequence[int]):
        super().__init__()
        self.dims = list(dims)

    def forward(self, x: Tensor) -> Tensor:
        return x.permute(*self.dims)


class FrozenBatchNorm2d(nn.Module):
    """Batch norm of (N, C, H, W) whose statistics and parameters are buffers, which never change.

    Args:
        num_features: number of channels C.
        eps: number added to the variance.
    """

    def __init__(self, num_features: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(name, flow.full((num_features,), value))

    def forward(self, x: Tensor) -> Tensor:
        scale = (self.weight * (self.running_var + self.eps).rsqrt()).reshape(1, -1, 1, 1)
        return x * scale + (self.bias.reshape(1, -1, 1, 1) - self.running_mean.reshape(1, -1, 1, 1) * scale)


def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:
    """Zero the input with probability p in training, or else divide it by 1 - p (Huang et al., 2016).

    Args:
        input: tensor (N, ...).
        p: probability.
        mode: "batch", the whole input at once, or "row", each row separately.
        training: False returns the input.
    """
    if not 0.0 <= p <= 1.0:
        raise ArgumentError("stochastic_depth: p is no probability", expected="0 to 1", got=repr(p))
    if mode not in ("batch", "row"):
        raise ArgumentError("stochastic_depth: mode", expected='"batch" or "row"', got=repr(mode))
    if not training or p == 0.0:
        return input
    shape = [input.shape[0] if mode == "row" else 1] + [1] * (input.ndim - 1)
    mask = flow.bernoulli(flow.full(shape, 1.0 - p, device=input.device)).to(input.dtype)
    return input * (mask / (1.0 - p) if p < 1.0 else mask)


class StochasticDepth(nn.Module):
    """stochastic_depth as a layer.

    Args:
        p: probability.
        mode: "batch" or "row".
    """

    def __init__(self, p: float, mode: str):
        super().__init__()
        self.p, self.mode = p, mode

    def forward(self, input: Tensor) -> Tensor:
        return stochastic_depth(input, self.p, self.mode, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}, mode={self.mode}"
