"""Every layer at least once: its text, and the specs of its inputs (see `array`)."""
import numpy as np


def array(spec, seed: int):
    """Return one input from its spec: a shape, ("int", high, shape), ("bool", shape), ("positive", shape),
    ("unit", shape), or an array.
    """
    rng = np.random.default_rng(seed)
    if isinstance(spec, np.ndarray):
        return spec
    kind, *rest = spec if spec and isinstance(spec[0], str) else ("normal", spec)
    if kind == "int":
        return rng.integers(0, rest[0], rest[1])
    if kind == "bool":
        return rng.random(rest[0]) < 0.5
    if kind == "sign":
        return np.where(rng.random(rest[0]) < 0.5, -1.0, 1.0)
    if kind == "positive":
        return rng.random(rest[0]) + 0.1
    if kind == "unit":
        return rng.random(rest[0]) * 0.98 + 0.01
    if kind == "simplex":
        a = rng.random(rest[0]) + 0.05
        return a / a.sum(1, keepdims=True)
    return rng.normal(size=rest[0])


IMAGE, VOLUME, LINE = (2, 4, 7, 6), (2, 4, 5, 6, 7), (2, 4, 9)
LAYERS = [
    # linear
    ("nn.Linear(5, 3)", (4, 5)), ("nn.Linear(5, 3, bias=False)", (2, 3, 5)), ("nn.Linear(5, 3)", (5,)),
    ("nn.Bilinear(4, 5, 3)", (6, 4), (6, 5)), ("nn.Bilinear(4, 5, 3, bias=False)", (2, 3, 4), (2, 3, 5)),
    ("nn.Identity(54, unused=1)", (2, 3)), ("nn.Flatten()", (2, 3, 4)), ("nn.Flatten(0, 1)", (2, 3, 4)),
    ("nn.Unflatten(1, (2, 3))", (2, 6, 4)), ("nn.Embedding(7, 3)", ("int", 7, (4, 2))),
    ("nn.Embedding(7, 3, padding_idx=2)", ("int", 4, (5, 3))), ("nn.Embedding(5, 2, padding_idx=-1)",
                                                                ("int", 5, (9,))),
    ("nn.Embedding(5, 2, scale_grad_by_freq=True)", ("int", 3, (9,))),
    ("nn.Embedding(5, 2, max_norm=0.5)", ("int", 4, (3,))),
    *[(f"nn.EmbeddingBag(7, 3, mode={mode!r}, padding_idx=1)", ("int", 4, (5, 3)))
      for mode in ("sum", "mean", "max")],
    ("nn.EmbeddingBag(7, 3, include_last_offset=True)", ("int", 7, (6,)), np.array([0, 2, 2, 6])),
    # convolutions
    ("nn.Conv1d(4, 6, 3)", LINE), ("nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2)", LINE),
    ("nn.Conv1d(4, 6, 4, padding='same')", LINE), ("nn.Conv1d(4, 2, 3, padding=2, padding_mode='circular')",
                                                   LINE),
    ("nn.Conv1d(4, 6, 3)", (4, 9)),
    ("nn.Conv2d(4, 6, 3)", IMAGE), ("nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0))", IMAGE),
    ("nn.Conv2d(4, 8, 3, padding=1, groups=4, bias=False)", IMAGE),
    ("nn.Conv2d(4, 6, 3, dilation=2, padding='same')", IMAGE),
    ("nn.Conv2d(4, 6, (2, 4), padding='same')", IMAGE), ("nn.Conv2d(4, 6, 3, padding='valid')", IMAGE),
    ("nn.Conv2d(4, 6, 1)", IMAGE), ("nn.Conv2d(4, 6, 3)", (4, 7, 6)),
    ("nn.Conv2d(4, 6, 3, padding=1, padding_mode='reflect')", IMAGE),
    ("nn.Conv2d(4, 6, 3, padding='same', padding_mode='replicate')", IMAGE),
    ("nn.Conv3d(4, 6, 3)", VOLUME),
    ("nn.Conv3d(4, 6, (1, 3, 2), stride=(1, 2, 1), padding=(0, 1, 1), groups=2)", VOLUME),
    ("nn.Conv3d(4, 2, 3, dilation=(2, 1, 2), padding=2)", VOLUME), ("nn.Conv3d(4, 2, 1, bias=False)", VOLUME),
    ("nn.ConvTranspose1d(4, 6, 3)", LINE), ("nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2)", LINE),
    ("nn.ConvTranspose2d(4, 6, 3)", IMAGE),
    ("nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1)", IMAGE),
    ("nn.ConvTranspose2d(4, 6, (3, 2), stride=(1, 3), dilation=(2, 1), groups=2, bias=False)", IMAGE),
    ("nn.ConvTranspose2d(4, 2, 2, stride=1, dilation=3, output_padding=2)", IMAGE),
    ("nn.ConvTranspose2d(4, 6, 3)", (4, 5, 5)),
    ("nn.ConvTranspose3d(4, 6, 2)", (2, 4, 3, 4, 3)),
    ("nn.ConvTranspose3d(4, 2, 3, stride=2, padding=1, output_padding=1, groups=2)", (2, 4, 3, 4, 3)),
    ("nn.ConvTranspose3d(4, 2, 2, stride=(1, 2, 1), dilation=(2, 1, 2), bias=False)", (1, 4, 3, 4, 3)),
    # pools
    ("nn.MaxPool1d(2)", LINE), ("nn.MaxPool1d(3, 2, 1, ceil_mode=True)", LINE),
    ("nn.MaxPool1d(2, 1, dilation=3)", LINE),
    ("nn.MaxPool2d(2)", IMAGE), ("nn.MaxPool2d(3, 2, 1)", IMAGE), ("nn.MaxPool2d((3, 2), ceil_mode=True)",
                                                                   IMAGE),
    ("nn.MaxPool2d(3, 1, padding=1, dilation=2)", IMAGE), ("nn.MaxPool2d(2, return_indices=True)", IMAGE),
    ("nn.MaxPool2d(2, 1, dilation=(2, 1), return_indices=True, padding=1)", IMAGE),
    ("nn.MaxPool2d(2)", (4, 7, 6)),
    ("nn.MaxPool3d(2)", VOLUME), ("nn.MaxPool3d((2, 3, 2), 2, padding=1, return_indices=True)", VOLUME),
    ("nn.MaxPool3d(2, dilation=2, return_indices=True)", VOLUME), ("nn.MaxPool1d(3, 2, return_indices=True)",
                                                                   LINE),
    ("nn.AvgPool1d(2)", LINE), ("nn.AvgPool1d(3, 2, 1, count_include_pad=False)", LINE),
    ("nn.AvgPool2d(2)", IMAGE),
    ("nn.AvgPool2d(3, 2, 1)", IMAGE), ("nn.AvgPool2d(3, 2, 1, ceil_mode=True)", IMAGE),
    ("nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False)", IMAGE),
    ("nn.AvgPool2d((2, 3), 2, divisor_override=5)", IMAGE),
    ("nn.AvgPool2d(3, 2, 1, ceil_mode=True, divisor_override=4)",
     IMAGE),
    ("nn.AvgPool3d(2)", VOLUME), ("nn.AvgPool3d(3, 2, 1, ceil_mode=True)", VOLUME),
    ("nn.AvgPool3d(3, 2, 1, count_include_pad=False)", VOLUME),
    ("nn.AdaptiveAvgPool1d(3)", LINE), ("nn.AdaptiveAvgPool1d(4)", LINE), ("nn.AdaptiveAvgPool2d(1)", IMAGE),
    ("nn.AdaptiveAvgPool2d((7, 3))", IMAGE), ("nn.AdaptiveAvgPool2d((None, 4))", IMAGE),
    ("nn.AdaptiveAvgPool2d(9)", IMAGE),
    ("nn.AdaptiveAvgPool3d((2, 3, 7))", VOLUME), ("nn.AdaptiveAvgPool2d(2)", (4, 6, 6)),
    ("nn.AdaptiveMaxPool1d(4)", LINE), ("nn.AdaptiveMaxPool1d(3, return_indices=True)", LINE),
    ("nn.AdaptiveMaxPool2d((7, 3), return_indices=True)", IMAGE),
    ("nn.AdaptiveMaxPool2d((4, 5), return_indices=True)", IMAGE),
    ("nn.AdaptiveMaxPool3d((2, 3, 4), return_indices=True)", VOLUME),
    # normalisation
    ("nn.BatchNorm1d(4)", (6, 4)), ("nn.BatchNorm1d(4, eps=1e-3, momentum=0.3)", LINE),
    ("nn.BatchNorm2d(4)", IMAGE),
    ("nn.BatchNorm2d(4, affine=False)", IMAGE), ("nn.BatchNorm2d(4, track_running_stats=False)", IMAGE),
    ("nn.BatchNorm2d(4, momentum=None)", IMAGE), ("nn.BatchNorm3d(4)", VOLUME),
    ("nn.InstanceNorm1d(4)", LINE), ("nn.InstanceNorm2d(4, affine=True)", IMAGE),
    ("nn.InstanceNorm2d(4)", (4, 7, 6)),
    ("nn.InstanceNorm2d(4, affine=True, track_running_stats=True)", IMAGE),
    ("nn.InstanceNorm3d(4, eps=1e-2)", VOLUME),
    ("nn.GroupNorm(2, 4)", IMAGE), ("nn.GroupNorm(4, 4, affine=False)", LINE), ("nn.GroupNorm(1, 6)", (5, 6)),
    ("nn.LayerNorm(6)", IMAGE), ("nn.LayerNorm([7, 6], eps=1e-3)", IMAGE),
    ("nn.LayerNorm(6, elementwise_affine=False)", (6,)),
    ("nn.LayerNorm((4, 9), bias=False)", LINE), ("nn.RMSNorm(6, 1e-5)", IMAGE),
    ("nn.RMSNorm((7, 6), eps=1e-2)", IMAGE),
    ("nn.RMSNorm(9, 1e-5, elementwise_affine=False)", LINE),
    ("nn.LocalResponseNorm(3, alpha=0.1, beta=0.5, k=2.0)", IMAGE), ("nn.LocalResponseNorm(2)", LINE),
    # activations
    *[(f"nn.{name}()", (3, 5)) for name in (
        "ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardsigmoid", "Hardswish", "Sigmoid", "Tanh", "LogSigmoid",
        "Softsign",
        "Tanhshrink", "GELU", "LeakyReLU", "ELU", "CELU", "Hardtanh", "Softplus", "Softshrink", "Hardshrink",
        "PReLU", "LogSoftmax", "Softmax", "Softmin")],
    ("nn.GELU('tanh')", (3, 5)), ("nn.LeakyReLU(0.3)", (3, 5)), ("nn.ELU(0.7)", (3, 5)),
    ("nn.CELU(0.7)", (3, 5)),
    ("nn.Hardtanh(-0.5, 0.2)", (3, 5)), ("nn.Softplus(2.0, 1.0)", (3, 5)), ("nn.Softshrink(0.1)", (3, 5)),
    ("nn.Hardshrink(0.9)", (3, 5)), ("nn.Threshold(0.1, 2.0)", (3, 5)), ("nn.PReLU(4)", LINE),
    ("nn.PReLU()", (6,)),
    ("nn.GLU()", (3, 6)), ("nn.GLU(1)", (2, 4, 3)), ("nn.Softmax(dim=1)", LINE), ("nn.Softmax(dim=0)", LINE),
    ("nn.LogSoftmax(dim=-1)", LINE), ("nn.Softmax2d()", IMAGE),
    # pads and images
    *[(f"nn.{kind}Pad{n}d({p})", s) for kind in ("Reflection", "Replication", "Circular", "Zero")
      for n, p, s in (
          (1, "2", LINE), (1, "(1, 3)", LINE), (2, "(1, 2, 0, 3)", IMAGE), (3, "1", VOLUME))],
    ("nn.ConstantPad1d(2, 3.5)", LINE), ("nn.ConstantPad2d((1, -1, 0, 2), 0.5)", IMAGE),
    ("nn.ConstantPad3d(1, -1.0)", VOLUME),
    ("nn.Upsample(scale_factor=2)", IMAGE), ("nn.Upsample(size=(5, 11))", IMAGE),
    ("nn.Upsample(scale_factor=1.7)", LINE),
    ("nn.Upsample(scale_factor=2, mode='bilinear')", IMAGE),
    ("nn.Upsample((3, 13), mode='bilinear', align_corners=True)",
     IMAGE),
    ("nn.Upsample(scale_factor=1.5, mode='linear')", LINE), ("nn.Upsample(scale_factor=2, mode='trilinear')",
                                                             VOLUME),
    ("nn.Upsample((3, 9, 4), mode='trilinear', align_corners=True)", VOLUME),
    ("nn.Upsample(scale_factor=2)", VOLUME),
    ("nn.UpsamplingNearest2d(scale_factor=3)", IMAGE), ("nn.UpsamplingBilinear2d(scale_factor=2)", IMAGE),
    ("nn.PixelShuffle(2)", (2, 8, 3, 4)), ("nn.PixelShuffle(2)", (8, 3, 4)),
    ("nn.PixelUnshuffle(3)", (2, 2, 6, 9)), ("nn.ChannelShuffle(2)", IMAGE), ("nn.Unfold(2)", IMAGE),
    ("nn.Unfold((3, 2), dilation=(1, 2), padding=(2, 1), stride=2)", IMAGE),
    ("nn.Fold((4, 5), 2)", (2, 8, 12)),
    ("nn.Fold((6, 7), (3, 2), dilation=(1, 2), padding=(1, 0), stride=2)", (2, 12, 9)),
    ("nn.Unfold(3)", (4, 7, 6)),
    ("nn.CosineSimilarity()", (4, 5), (4, 5)), ("nn.CosineSimilarity(dim=2)", (2, 3, 4), (1, 3, 4)),
    ("nn.PairwiseDistance()", (4, 5), (4, 5)), ("nn.PairwiseDistance(p=1.0, keepdim=True)", (4, 5), (4, 5)),
    ("nn.PairwiseDistance(p=3.0)", (5,), (5,)),
]

RECURRENT = [
    ("nn.RNN(3, 4)", (5, 2, 3)), ("nn.RNN(3, 4, 2, nonlinearity='relu', batch_first=True)", (2, 5, 3)),
    ("nn.LSTM(3, 4)", (5, 2, 3)), ("nn.LSTM(3, 4, 2, bidirectional=True)", (4, 2, 3)),
    ("nn.LSTM(3, 4, bias=False)", (4, 3)),
    ("nn.LSTM(3, 4, proj_size=2, num_layers=2)", (4, 2, 3)), ("nn.GRU(3, 4)", (5, 2, 3)),
    ("nn.GRU(3, 4, 2, bidirectional=True, batch_first=True)", (2, 5, 3)),
    ("nn.RNNCell(3, 4)", (2, 3)), ("nn.RNNCell(3, 4, nonlinearity='relu', bias=False)", (2, 3)),
    ("nn.LSTMCell(3, 4)", (2, 3)),
    ("nn.GRUCell(3, 4)", (2, 3)), ("nn.GRUCell(3, 4)", (3,)),
]
