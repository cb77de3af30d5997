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
from flowedu.oneflow04.nn.ofrecord_modules import (
    CoinFlip as CoinFlip, CropMirrorNormalize as CropMirrorNormalize, OFRecordBytesDecoder as OFRecordBytesDecoder,
    OFRecordBytesDecoder as OfrecordBytesDecoder, OFRecordImageDecoder as OFRecordImageDecoder,
    OFRecordImageDecoderRandomCrop as OFRecordImageDecoderRandomCrop, OFRecordRawDecoder as OFRecordRawDecoder,
    OFRecordRawDecoder as OfrecordRawDecoder, OFRecordReader as OFRecordReader, OFRecordReader as OfrecordReader)
from typing import Any

def PixelShufflev2(input, h_upscale_factor: int, w_upscale_factor: int, name=None) -> Tensor:
    """Rearrange each group of r * s channels into blocks of r rows and s columns."""
def avg_pool1d(input, ksize, strides, padding, data_format: str = 'NCW', ceil_mode: bool = False, name=None) -> Tensor:
    """Return the mean of each window."""
def avg_pool2d(input, ksize, strides, padding, data_format: str = 'NCHW', ceil_mode: bool = False, name=None) -> Tensor:
    """Return the mean of each window."""
def avg_pool3d(input, ksize, strides, padding, data_format: str = 'NCDHW', ceil_mode: bool = False, name=None) -> Tensor:
    """Return the mean of each window."""
def batch_normalization(x, mean, variance, offset=None, scale=None, variance_epsilon: float = 1e-05, axis: int = 1, name=None) -> Tensor:
    """Return (x - mean) / sqrt(variance + variance_epsilon) * scale + offset, along an axis."""
def bias_add(value, bias, data_format: str | None = None, name=None) -> Tensor: """Add a bias along the channel axis."""
def combined_margin_loss(x: Tensor, label: Tensor, m1: float = 1.0, m2: float = 0.0, m3: float = 0.0, name=None) -> Tensor:
    """Return x, with the cosine of each row's label replaced by cos(m1 * acos(x) + m2) - m3."""
def compat_conv2d(input, filters, strides, padding, data_format: str = 'NCHW', dilations=None, groups: int = 1, name: str | None = None) -> Tensor:
    """Compute conv2d with TensorFlow's meaning of "SAME": extra padding is added at the bottom and right."""
def conv1d(input, filters, strides, padding, data_format: str = 'NCW', dilations=None, groups: int = 1, name=None) -> Tensor:
    """Compute a 1-d convolution."""
def conv2d(input, filters, strides, padding, data_format: str = 'NCHW', dilations=None, groups: int = 1, name=None) -> Tensor:
    """Compute a 2-d convolution."""
def conv2d_transpose(value=None, filter=None, output_shape: Sequence[int] | None = None, strides=None, padding='VALID', data_format: str = 'NCHW', name: str | None = None, input=None, filters=None, dilations=None, groups: int = 1) -> Tensor:
    """Compute a transposed 2-d convolution, the adjoint of the conv2d from `output_shape` to `value`."""
def conv3d(input, filters, strides, padding, data_format: str = 'NCDHW', dilations=None, groups: int = 1, name=None) -> Tensor:
    """Compute a 3-d convolution."""
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank: int = 0, reduction: str = 'mean', zero_infinity: bool = False, name=None) -> Tensor:
    """Compute the loss of connectionist temporal classification (CTC)."""
def distributed_sparse_softmax_cross_entropy_with_logits(labels, logits, name=None) -> Tensor:
    """Compute -log softmax(logits)[label] of each sample."""
def dropout(x, rate: float, noise_shape=None, seed: int | None = None, name: str | None = None) -> Tensor:
    """Set elements to 0 with probability `rate` and scale all others by 1/(1-rate), in train jobs."""
def elu(x, alpha: float = 1.0, name=None) -> Tensor: """Return x where x > 0, and alpha * (exp(x) - 1) elsewhere."""
def fused_bias_add_dropout(value, bias, data_format: str | None = None, rate: float = 0.0, noise_shape=None, seed: int | None = None, name: str | None = None) -> Tensor:
    """Return dropout(bias_add(value, bias, data_format), rate)."""
def fused_bias_add_gelu(value, bias, data_format: str | None = None, name=None) -> Tensor:
    """Return gelu(bias_add(value, bias, data_format))."""
def fused_scale_tril(x, diagonal: int = 0, fill_value: float = 0, scale: float = 1, name=None) -> Tensor:
    """Return scale * x in the lower triangle of each matrix, and a constant above the diagonal."""
def fused_scale_tril_softmax_dropout(x, diagonal: int = 0, fill_value: float = 0, scale: float = 1, rate: float = 0.0, noise_shape=None, seed: int | None = None, name: str | None = None) -> Tensor:
    """Return dropout(softmax(fused_scale_tril(x))), the weights of causal attention."""
def fused_self_attention_query_mul_key_and_value(x, head_size: int, alpha: float = 1.0, name=None) -> Tensor:
    """Return the attention scores alpha * query @ key.T, and the values, of all heads."""
def hardsigmoid(x, name=None) -> Tensor: """Compute hardsigmoid elementwise."""
def hardswish(x, name=None) -> Tensor: """Compute hardswish elementwise."""
def hardtanh(x, min_val: float = -1.0, max_val: float = 1.0, name=None) -> Tensor:
    """Clip elements to [min_val, max_val]."""
def layer_norm(inputs, gamma=None, beta=None, begin_norm_axis: int = 1, begin_params_axis: int = -1, epsilon: float = 1e-05, name=None) -> Tensor:
    """Normalize over the axes from `begin_norm_axis` on, then multiply by gamma and add beta."""
def leaky_relu(x, alpha: float = 0.2, name=None) -> Tensor: """Return x where x > 0, and alpha * x elsewhere."""
def logsoftmax(logits, axis: int | None = None, name=None) -> Tensor: """Compute log(softmax(x)) without underflow."""
def max_pool1d(input, ksize, strides, padding, data_format: str = 'NCW', ceil_mode: bool = False, name=None) -> Tensor:
    """Return the largest element of each window."""
def max_pool2d(input, ksize, strides, padding, data_format: str = 'NCHW', ceil_mode: bool = False, name=None) -> Tensor:
    """Return the largest element of each window."""
def max_pool3d(input, ksize, strides, padding, data_format: str = 'NCDHW', ceil_mode: bool = False, name=None) -> Tensor:
    """Return the largest element of each window."""
def mish(x, name=None) -> Tensor: """Compute mish elementwise."""
def moments(x, axes, keepdims: bool = False, name=None) -> Any: """Return the mean and the biased variance over axes."""
def prelu(x, alpha, name=None) -> Tensor: """Return x where x > 0, and alpha * x elsewhere."""
def random_mask_like(like, rate: float, seed: int | None = None, noise_shape=None, name: str | None = None) -> Tensor:
    """Return a random int8 mask in the shape of `like`, as dropout uses it before scaling."""
def relu(x, name=None) -> Tensor: """Compute relu elementwise."""
def relu6(x, name=None) -> Tensor: """Compute relu6 elementwise."""
def sigmoid_cross_entropy_with_logits(labels, logits, name=None) -> Tensor:
    """Compute the binary cross-entropy of sigmoid(logits) elementwise."""
def smooth_l1_loss(prediction, label, beta: float = 1.0, name=None) -> Tensor:
    """Compute x^2 / (2 beta) where x = |prediction - label| is below beta, and x - beta / 2 elsewhere."""
def softmax(logits, axis: int | None = None, name=None) -> Tensor: """Compute exp(x) / sum(exp(x)) along an axis."""
def softmax_cross_entropy_with_logits(labels, logits, name=None) -> Tensor:
    """Compute -sum(labels * log softmax(logits)) over the last axis."""
def softmax_grad(y, dy, axis: int | None = None, name=None) -> Tensor: """Return the gradient of the input of softmax."""
def sparse_cross_entropy(labels, prediction, name=None) -> Tensor: """Compute -log(prediction[label]) of each row."""
def sparse_softmax_cross_entropy_with_logits(labels, logits, name=None) -> Tensor:
    """Compute -log softmax(logits)[label] of each sample."""
def swish(x, beta: float = 1.0, name=None) -> Tensor: """Return x * sigmoid(beta * x)."""
def torch_conv2d_transpose(value=None, filter=None, output_padding: Sequence[int] | None = None, strides=1, padding_needed: Sequence[int] = ..., data_format: str = 'NCHW', name: str | None = None, input=None, filters=None, dilations=None) -> Tensor:
    """Compute conv2d_transpose with PyTorch's parameters."""
def tril(x, diagonal: int = 0, fill_value: float = 0, name=None) -> Tensor: """Return the lower triangle of each matrix."""
