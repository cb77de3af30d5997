"""Written by `make stubs`: do not edit."""
from collections.abc import Sequence
from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.module import Module as Module
from flowedu.core.layers.parameter import Parameter as Parameter
from flowedu.nn import (
    amp as amp, backward_hooks as backward_hooks, containers as containers, functional as functional, graph as graph,
    init as init, layout as layout, methods as methods, modules as modules, parallel as parallel,
    parameter_lists as parameter_lists, utils as utils)
from flowedu.nn.containers import ModuleDict as ModuleDict, ModuleList as ModuleList, Sequential as Sequential
from flowedu.nn.graph.graph import Graph as Graph
from flowedu.nn.modules.activation import (
    CELU as CELU, ELU as ELU, GELU as GELU, GLU as GLU, Hardshrink as Hardshrink, Hardsigmoid as Hardsigmoid,
    Hardswish as Hardswish, Hardtanh as Hardtanh, LeakyReLU as LeakyReLU, LogSigmoid as LogSigmoid,
    LogSoftmax as LogSoftmax, Mish as Mish, PReLU as PReLU, QuickGELU as QuickGELU, RReLU as RReLU, ReLU as ReLU,
    ReLU6 as ReLU6, SELU as SELU, SiLU as SiLU, Sigmoid as Sigmoid, Softmax as Softmax, Softmax2d as Softmax2d,
    Softmin as Softmin, Softplus as Softplus, Softshrink as Softshrink, Softsign as Softsign, Tanh as Tanh,
    Tanhshrink as Tanhshrink, Threshold as Threshold)
from flowedu.nn.modules.attention import (
    MultiheadAttention as MultiheadAttention, Transformer as Transformer, TransformerDecoder as TransformerDecoder,
    TransformerDecoderLayer as TransformerDecoderLayer, TransformerEncoder as TransformerEncoder,
    TransformerEncoderLayer as TransformerEncoderLayer)
from flowedu.nn.modules.bags import EmbeddingBag as EmbeddingBag
from flowedu.nn.modules.conv import (
    Conv1d as Conv1d, Conv2d as Conv2d, Conv3d as Conv3d, ConvTranspose1d as ConvTranspose1d,
    ConvTranspose2d as ConvTranspose2d, ConvTranspose3d as ConvTranspose3d)
from flowedu.nn.modules.distance import CosineSimilarity as CosineSimilarity, PairwiseDistance as PairwiseDistance
from flowedu.nn.modules.dropout import (
    AlphaDropout as AlphaDropout, Dropout as Dropout, Dropout1d as Dropout1d, Dropout2d as Dropout2d,
    Dropout3d as Dropout3d)
from flowedu.nn.modules.fold import Fold as Fold, Unfold as Unfold
from flowedu.nn.modules.lazy import (
    LazyBatchNorm1d as LazyBatchNorm1d, LazyBatchNorm2d as LazyBatchNorm2d, LazyBatchNorm3d as LazyBatchNorm3d,
    LazyConv1d as LazyConv1d, LazyConv2d as LazyConv2d, LazyConv3d as LazyConv3d,
    LazyConvTranspose1d as LazyConvTranspose1d, LazyConvTranspose2d as LazyConvTranspose2d,
    LazyConvTranspose3d as LazyConvTranspose3d, LazyInstanceNorm1d as LazyInstanceNorm1d,
    LazyInstanceNorm2d as LazyInstanceNorm2d, LazyInstanceNorm3d as LazyInstanceNorm3d, LazyLinear as LazyLinear,
    UninitializedParameter as UninitializedParameter)
from flowedu.nn.modules.linear import (
    Bilinear as Bilinear, Embedding as Embedding, Flatten as Flatten, Identity as Identity, Linear as Linear,
    Unflatten as Unflatten)
from flowedu.nn.modules.loss import (
    BCELoss as BCELoss, BCEWithLogitsLoss as BCEWithLogitsLoss, CTCLoss as CTCLoss,
    CombinedMarginLoss as CombinedMarginLoss, CosineEmbeddingLoss as CosineEmbeddingLoss,
    CrossEntropyLoss as CrossEntropyLoss, GaussianNLLLoss as GaussianNLLLoss, HingeEmbeddingLoss as HingeEmbeddingLoss,
    HuberLoss as HuberLoss, KLDivLoss as KLDivLoss, L1Loss as L1Loss, MSELoss as MSELoss,
    MarginRankingLoss as MarginRankingLoss, MultiLabelMarginLoss as MultiLabelMarginLoss,
    MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss, MultiMarginLoss as MultiMarginLoss, NLLLoss as NLLLoss,
    PoissonNLLLoss as PoissonNLLLoss, SmoothL1Loss as SmoothL1Loss, SoftMarginLoss as SoftMarginLoss,
    TripletMarginLoss as TripletMarginLoss)
from flowedu.nn.modules.norm import (
    BatchNorm1d as BatchNorm1d, BatchNorm2d as BatchNorm2d, BatchNorm3d as BatchNorm3d, GroupNorm as GroupNorm,
    InstanceNorm1d as InstanceNorm1d, InstanceNorm2d as InstanceNorm2d, InstanceNorm3d as InstanceNorm3d,
    LayerNorm as LayerNorm, LocalResponseNorm as LocalResponseNorm, RMSNorm as RMSNorm, SyncBatchNorm as SyncBatchNorm)
from flowedu.nn.modules.padding import (
    CircularPad1d as CircularPad1d, CircularPad2d as CircularPad2d, CircularPad3d as CircularPad3d,
    ConstantPad1d as ConstantPad1d, ConstantPad2d as ConstantPad2d, ConstantPad3d as ConstantPad3d,
    ReflectionPad1d as ReflectionPad1d, ReflectionPad2d as ReflectionPad2d, ReflectionPad3d as ReflectionPad3d,
    ReplicationPad1d as ReplicationPad1d, ReplicationPad2d as ReplicationPad2d, ReplicationPad3d as ReplicationPad3d,
    ZeroPad1d as ZeroPad1d, ZeroPad2d as ZeroPad2d, ZeroPad3d as ZeroPad3d)
from flowedu.nn.modules.pixelshuffle import (
    ChannelShuffle as ChannelShuffle, PixelShuffle as PixelShuffle, PixelUnshuffle as PixelUnshuffle)
from flowedu.nn.modules.pool import (
    AdaptiveAvgPool1d as AdaptiveAvgPool1d, AdaptiveAvgPool2d as AdaptiveAvgPool2d, AdaptiveAvgPool3d as AdaptiveAvgPool3d,
    AdaptiveMaxPool1d as AdaptiveMaxPool1d, AdaptiveMaxPool2d as AdaptiveMaxPool2d, AdaptiveMaxPool3d as AdaptiveMaxPool3d,
    AvgPool1d as AvgPool1d, AvgPool2d as AvgPool2d, AvgPool3d as AvgPool3d, MaxPool1d as MaxPool1d, MaxPool2d as MaxPool2d,
    MaxPool3d as MaxPool3d, MaxUnpool1d as MaxUnpool1d, MaxUnpool2d as MaxUnpool2d, MaxUnpool3d as MaxUnpool3d)
from flowedu.nn.modules.rnn import (
    GRU as GRU, GRUCell as GRUCell, LSTM as LSTM, LSTMCell as LSTMCell, RNN as RNN, RNNCell as RNNCell)
from flowedu.nn.modules.upsampling import (
    Upsample as Upsample, UpsamplingBilinear2d as UpsamplingBilinear2d, UpsamplingNearest2d as UpsamplingNearest2d)
from flowedu.nn.parameter_lists import ParameterDict as ParameterDict, ParameterList as ParameterList
from flowedu.oneflow04.nn import image as image
from flowedu.oneflow04.nn.records import (
    CoinFlip as CoinFlip, CropMirrorNormalize as CropMirrorNormalize, OFRecordBytesDecoder as OFRecordBytesDecoder,
    OFRecordBytesDecoder as OfrecordBytesDecoder, OFRecordImageDecoder as OFRecordImageDecoder,
    OFRecordImageDecoderRandomCrop as OFRecordImageDecoderRandomCrop, OFRecordRawDecoder as OFRecordRawDecoder,
    OFRecordRawDecoder as OfrecordRawDecoder, OFRecordReader as OFRecordReader, OFRecordReader as OfrecordReader)
from typing import Any

def PixelShufflev2(input, h_upscale_factor: int, w_upscale_factor: int, name=None) -> Tensor:
    """(N, C * r * s, H, W) to (N, C, H * r, W * s), r and s being the factors: each run of r * s channels becomes a block of r rows and s columns."""
def avg_pool1d(input, ksize, strides, padding, data_format: str = 'NCW', ceil_mode: bool = False, name=None) -> Tensor:
    """Mean of each window's real elements; padding does not count."""
def avg_pool2d(input, ksize, strides, padding, data_format: str = 'NCHW', ceil_mode: bool = False, name=None) -> Tensor:
    """Mean of each window's real elements; padding does not count."""
def avg_pool3d(input, ksize, strides, padding, data_format: str = 'NCDHW', ceil_mode: bool = False, name=None) -> Tensor:
    """Mean of each window's real elements; padding does not count."""
def batch_normalization(x, mean, variance, offset=None, scale=None, variance_epsilon: float = 1e-05, axis: int = 1, name=None) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, along `axis`."""
def bias_add(value, bias, data_format: str | None = None, name=None) -> Tensor:
    """value + bias along the channel axis: 1 for None and NC..., the last for N...C."""
def combined_margin_loss(x: Tensor, label: Tensor, m1: float = 1.0, m2: float = 0.0, m3: float = 0.0, name=None) -> Tensor:
    """x, cosines (n, classes), with that of each row's label made harder: cos(m1 * acos(x) + m2) - m3."""
def compat_conv2d(input, filters, strides, padding, data_format: str = 'NCHW', dilations=None, groups: int = 1, name: str | None = None) -> Tensor:
    """conv2d with TensorFlow's meaning of "SAME" (extra padding at the bottom and right)."""
def conv1d(input, filters, strides, padding, data_format: str = 'NCW', dilations=None, groups: int = 1, name=None) -> Tensor:
    """1-d convolution of (N, C, W) with filters (out, in // groups, k); data_format "NWC": (N, W, C) with (out, k, in // groups)."""
def conv2d(input, filters, strides, padding, data_format: str = 'NCHW', dilations=None, groups: int = 1, name=None) -> Tensor:
    """2-d convolution of (N, C, H, W) with filters (out, in // groups, kh, kw); data_format "NHWC": (N, H, W, C) with (out, kh, kw, in // groups)."""
def conv2d_transpose(value=None, filter=None, output_shape: Sequence[int] | None = None, strides=None, padding='VALID', data_format: str = 'NCHW', name: str | None = None, input=None, filters=None, dilations=None, groups: int = 1) -> Tensor:
    """Transposed 2-d convolution: the adjoint of the conv2d that makes `value` out of an image of `output_shape`."""
def conv3d(input, filters, strides, padding, data_format: str = 'NCDHW', dilations=None, groups: int = 1, name=None) -> Tensor:
    """3-d convolution of (N, C, D, H, W) with filters (out, in // groups, kd, kh, kw); data_format "NDHWC": (N, D, H, W, C) with (out, kd, kh, kw, in // groups)."""
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank: int = 0, reduction: str = 'mean', zero_infinity: bool = False, name=None) -> Tensor:
    """Connectionist temporal classification: -log of the probability of each sequence of labels, over all alignments."""
def distributed_sparse_softmax_cross_entropy_with_logits(labels, logits, name=None) -> Tensor:
    """Per-sample -log softmax(logits)[label]. labels FIRST: integers of shape logits.shape[:-1] (or with a final 1)."""
def dropout(x, rate: float, noise_shape=None, seed: int | None = None, name: str | None = None) -> Tensor:
    """Each element is dropped with probability `rate` and the rest scaled by 1/(1-rate), while training."""
def elu(x, alpha: float = 1.0, name=None) -> Tensor: """x where x > 0, alpha * (exp(x) - 1) elsewhere."""
def fused_bias_add_dropout(value, bias, data_format: str | None = None, rate: float = 0.0, noise_shape=None, seed: int | None = None, name: str | None = None) -> Tensor:
    """dropout(bias_add(value, bias, data_format), rate)."""
def fused_bias_add_gelu(value, bias, data_format: str | None = None, name=None) -> Tensor:
    """gelu(bias_add(value, bias, data_format))."""
def fused_scale_tril(x, diagonal: int = 0, fill_value: float = 0, scale: float = 1, name=None) -> Tensor:
    """scale * x in the lower triangle of each matrix, fill_value above the diagonal."""
def fused_scale_tril_softmax_dropout(x, diagonal: int = 0, fill_value: float = 0, scale: float = 1, rate: float = 0.0, noise_shape=None, seed: int | None = None, name: str | None = None) -> Tensor:
    """dropout(softmax(fused_scale_tril(x, diagonal, fill_value, scale)), rate): the weights of causal attention."""
def fused_self_attention_query_mul_key_and_value(x, head_size: int, alpha: float = 1.0, name=None) -> Tensor:
    """(alpha * query times key, value) of all heads: (batch, heads, length, length), (batch, heads, length, head_size)."""
def hardsigmoid(x, name=None) -> Tensor: """Elementwise hardsigmoid."""
def hardswish(x, name=None) -> Tensor: """Elementwise hardswish."""
def hardtanh(x, min_val: float = -1.0, max_val: float = 1.0, name=None) -> Tensor: """x kept inside [min_val, max_val]."""
def layer_norm(inputs, gamma=None, beta=None, begin_norm_axis: int = 1, begin_params_axis: int = -1, epsilon: float = 1e-05, name=None) -> Tensor:
    """Normalised over the axes from begin_norm_axis on, then * gamma + beta (of shape inputs.shape[begin_params_axis:])."""
def leaky_relu(x, alpha: float = 0.2, name=None) -> Tensor: """x where x > 0, alpha * x elsewhere."""
def logsoftmax(logits, axis: int | None = None, name=None) -> Tensor: """log(softmax(x)), computed without underflow."""
def max_pool1d(input, ksize, strides, padding, data_format: str = 'NCW', ceil_mode: bool = False, name=None) -> Tensor:
    """Largest element of each window; padding never wins."""
def max_pool2d(input, ksize, strides, padding, data_format: str = 'NCHW', ceil_mode: bool = False, name=None) -> Tensor:
    """Largest element of each window; padding never wins."""
def max_pool3d(input, ksize, strides, padding, data_format: str = 'NCDHW', ceil_mode: bool = False, name=None) -> Tensor:
    """Largest element of each window; padding never wins."""
def mish(x, name=None) -> Tensor: """Elementwise mish."""
def moments(x, axes, keepdims: bool = False, name=None) -> Any: """(mean, biased variance) over `axes`."""
def prelu(x, alpha, name=None) -> Tensor:
    """x where x > 0, alpha * x elsewhere; alpha is a blob that broadcasts against x."""
def random_mask_like(like, rate: float, seed: int | None = None, noise_shape=None, name: str | None = None) -> Tensor:
    """int8, 0 with probability `rate`, else 1, in the shape of `like`: what dropout multiplies by, before it scales."""
def relu(x, name=None) -> Tensor: """Elementwise relu."""
def relu6(x, name=None) -> Tensor: """Elementwise relu6."""
def sigmoid_cross_entropy_with_logits(labels, logits, name=None) -> Tensor:
    """Elementwise binary cross-entropy of sigmoid(logits) against float labels."""
def smooth_l1_loss(prediction, label, beta: float = 1.0, name=None) -> Tensor:
    """x^2 / (2 beta) where x = |prediction - label| is below beta, x - beta / 2 elsewhere; one loss per element."""
def softmax(logits, axis: int | None = None, name=None) -> Tensor:
    """exp(x) / sum(exp(x)) along `axis` (default: the last)."""
def softmax_cross_entropy_with_logits(labels, logits, name=None) -> Tensor:
    """Per-sample -sum(labels * log softmax(logits)) over the last axis; labels are probabilities."""
def softmax_grad(y, dy, axis: int | None = None, name=None) -> Tensor:
    """The gradient of softmax's input, where y is its result and dy that one's gradient."""
def sparse_cross_entropy(labels, prediction, name=None) -> Tensor:
    """-log(prediction[label]) for every row: prediction holds probabilities, labels come first."""
def sparse_softmax_cross_entropy_with_logits(labels, logits, name=None) -> Tensor:
    """Per-sample -log softmax(logits)[label]. labels FIRST: integers of shape logits.shape[:-1] (or with a final 1)."""
def swish(x, beta: float = 1.0, name=None) -> Tensor: """x * sigmoid(beta * x)."""
def torch_conv2d_transpose(value=None, filter=None, output_padding: Sequence[int] | None = None, strides=1, padding_needed: Sequence[int] = ..., data_format: str = 'NCHW', name: str | None = None, input=None, filters=None, dilations=None) -> Tensor:
    """conv2d_transpose as PyTorch has it: the size of the result is (size - 1) * stride + window - padding_needed + output_padding. padding_needed: twice PyTorch's padding, of height and width."""
def tril(x, diagonal: int = 0, fill_value: float = 0, name=None) -> Tensor:
    """The lower triangle of each matrix (the last two axes), `fill_value` above the diagonal."""
