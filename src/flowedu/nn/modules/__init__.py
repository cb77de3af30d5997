"""Layers of flow.nn, one file per topic. `flow.nn` exports all of them."""
from flowedu.nn.modules.activation import (
    CELU, ELU, GELU, GLU, Hardshrink, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU, LogSigmoid, LogSoftmax,
    Mish, PReLU, QuickGELU, ReLU, ReLU6, RReLU, SELU, Sigmoid, SiLU, Softmax, Softmax2d, Softmin, Softplus,
    Softshrink, Softsign, Tanh, Tanhshrink, Threshold
)
from flowedu.nn.modules.attention import (
    MultiheadAttention, Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
    TransformerEncoderLayer)
from flowedu.nn.modules.conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from flowedu.nn.modules.bags import EmbeddingBag
from flowedu.nn.modules.linear import Bilinear, Embedding, Flatten, Identity, Linear, Unflatten
from flowedu.nn.modules.loss import (
    BCELoss, BCEWithLogitsLoss, CombinedMarginLoss, CosineEmbeddingLoss, CrossEntropyLoss, CTCLoss,
    GaussianNLLLoss, HingeEmbeddingLoss, HuberLoss, KLDivLoss, L1Loss, MarginRankingLoss, MSELoss,
    MultiLabelMarginLoss, MultiLabelSoftMarginLoss, MultiMarginLoss, NLLLoss, PoissonNLLLoss, SmoothL1Loss,
    SoftMarginLoss, TripletMarginLoss
)
from flowedu.nn.modules.norm import (
    BatchNorm1d, BatchNorm2d, BatchNorm3d, GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d,
    LayerNorm, LocalResponseNorm, RMSNorm, SyncBatchNorm
)
from flowedu.nn.modules.dropout import AlphaDropout, Dropout, Dropout1d, Dropout2d, Dropout3d
from flowedu.nn.modules.pool import (
    AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveMaxPool1d, AdaptiveMaxPool2d,
    AdaptiveMaxPool3d, AvgPool1d, AvgPool2d, AvgPool3d, MaxPool1d, MaxPool2d, MaxPool3d, MaxUnpool1d,
    MaxUnpool2d, MaxUnpool3d
)
from flowedu.nn.modules.rnn import GRU, LSTM, RNN, GRUCell, LSTMCell, RNNCell
from flowedu.nn.modules.distance import CosineSimilarity, PairwiseDistance
from flowedu.nn.modules.fold import Fold, Unfold
from flowedu.nn.modules.padding import (
    CircularPad1d, CircularPad2d, CircularPad3d, ConstantPad1d, ConstantPad2d, ConstantPad3d,
    ReflectionPad1d, ReflectionPad2d, ReflectionPad3d, ReplicationPad1d, ReplicationPad2d, ReplicationPad3d,
    ZeroPad1d, ZeroPad2d, ZeroPad3d
)
from flowedu.nn.modules.pixelshuffle import ChannelShuffle, PixelShuffle, PixelUnshuffle
from flowedu.nn.modules.upsampling import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d
from flowedu.nn.modules.lazy import (
    LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d, LazyConv1d, LazyConv2d, LazyConv3d,
    LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d, LazyInstanceNorm1d, LazyInstanceNorm2d,
    LazyInstanceNorm3d, LazyLinear, UninitializedParameter
)

__all__ = [name for name in dir() if name[0].isupper()]
