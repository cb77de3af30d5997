"""nn.functional against PyTorch: values and gradients."""
import numpy as np
import pytest

import flowedu as flow
from flowedu.nn import functional as F

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from .peers import check_function  # noqa: E402

IMAGE, LINE, VOLUME = (2, 4, 7, 6), (2, 4, 9), (2, 4, 5, 6, 7)
FUNCTIONS = [
    ("F.linear(x, y, z)", (2, 3, 5), (4, 5), (4,)), ("F.linear(x, y)", (2, 5), (5,)),
    ("F.linear(x, y)", (5,), (4, 5)),
    ("F.bilinear(x, y, z)", (2, 3), (2, 4), (5, 3, 4)), ("F.embedding(x, y)", ("int", 5, (2, 3)), (5, 4)),
    ("F.embedding(x, y, padding_idx=1)", ("int", 3, (9,)), (5, 4)), ("F.one_hot(x)", ("int", 4, (3, 2))),
    ("F.one_hot(x, 6)", ("int", 4, (3, 2))),
    ("F.conv1d(x, y, z, 2, 1)", LINE, (6, 4, 3), (6,)), ("F.conv2d(x, y, padding='same')", IMAGE,
                                                         (6, 4, 2, 3)),
    ("F.conv2d(x, y, z, (1, 2), (2, 0), (2, 1), 2)", IMAGE, (6, 2, 3, 3), (6,)),
    ("F.conv3d(x, y)", VOLUME, (2, 4, 2, 3, 1)),
    ("F.conv_transpose1d(x, y, z, stride=2)", LINE, (4, 3, 3), (3,)),
    ("F.conv_transpose2d(x, y, None, 2, 1, 1, 2)", IMAGE, (4, 3, 3, 3)),
    ("F.conv_transpose3d(x, y, z)", VOLUME, (4, 2, 2, 1, 2), (2,)),
    ("F.max_pool1d(x, 3, 1, 1)", LINE), ("F.max_pool2d(x, 2, return_indices=True)", IMAGE),
    ("F.max_pool3d(x, 2)", VOLUME),
    ("F.avg_pool1d(x, 3)", LINE), ("F.avg_pool2d(x, 3, 1, 1, False, False)", IMAGE),
    ("F.avg_pool3d(x, 2, 1)", VOLUME),
    ("F.adaptive_avg_pool1d(x, 2)", LINE), ("F.adaptive_avg_pool2d(x, (1, 1))", IMAGE),
    ("F.adaptive_max_pool2d(x, 3)", IMAGE),
    ("F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)", (2, 4, 6, 6)),
    ("F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2, output_size=(9,))", LINE),
    ("F.max_unpool3d(*F.max_pool3d(x, 2, return_indices=True), 2)", (1, 2, 4, 4, 4)),
    ("F.batch_norm(x, y.detach(), z.detach(), u, v)", IMAGE, (4,), ("positive", (4,)), (4,), (4,)),
    ("F.batch_norm(x, None, None, training=True)", LINE), ("F.instance_norm(x, weight=y, bias=z)", IMAGE,
                                                           (4,), (4,)),
    ("F.layer_norm(x, (6,), y)", IMAGE, (6,)), ("F.layer_norm(x, (7, 6), None, y)", IMAGE, (7, 6)),
    ("F.group_norm(x, 2, y, z)", IMAGE, (4,), (4,)), ("F.rms_norm(x, (6,), y)", IMAGE, (6,)),
    ("F.local_response_norm(x, 3)", IMAGE), ("F.normalize(x)", (3, 4)), ("F.normalize(x, p=1.0, dim=0)",
                                                                         (3, 4)),
    ("F.normalize(x, 3, dim=-1, eps=0.5)", (3, 4)),
    *[(f"F.{name}(x)", (3, 6)) for name in (
        "relu", "relu6", "selu", "silu", "mish", "hardsigmoid", "hardswish", "sigmoid", "tanh", "logsigmoid",
        "softsign",
        "tanhshrink", "gelu", "leaky_relu", "elu", "celu", "hardtanh", "softplus", "softshrink", "hardshrink",
        "softmax", "log_softmax", "softmin", "glu")],
    ("F.gelu(x, approximate='tanh')", (3, 6)), ("F.prelu(x, y)", LINE, (4,)), ("F.prelu(x, y)", LINE, (1,)),
    ("F.threshold(x, 0.2, -1.0)", (3, 6)), ("F.leaky_relu(x, 0.3)", (3, 6)), ("F.rrelu(x)", (3, 6)),
    ("F.softmax(x, dim=0)", (3, 6)), ("F.softmax(x.float(), dim=-2, dtype=flow.float64)", LINE),
    ("F.log_softmax(x, 1)", IMAGE),
    ("F.softmax(x, dim=0)", ()), ("F.glu(x, 0)", (4, 3)), ("F.softplus(x, 3.0, 0.5)", (3, 6)),
    ("F.dropout(x, 0.3, training=False)", (3, 6)), ("F.dropout(x, 0.0)", (3, 6)),
    ("F.dropout(x, 1.0)", (3, 6)),
    ("F.pad(x, (1, 2))", LINE), ("F.pad(x, (1, 2, 0, 1), 'constant', 2.5)", IMAGE),
    ("F.pad(x, (-1, 2))", LINE),
    ("F.pad(x, (2, 1), mode='reflect')", LINE), ("F.pad(x, (1, 1, 2, 0), mode='replicate')", IMAGE),
    ("F.pad(x, (3, 1), mode='circular')", LINE),
    ("F.interpolate(x, scale_factor=2)", IMAGE), ("F.interpolate(x, size=(3, 4), mode='bilinear')", IMAGE),
    ("F.interpolate(x, size=11, mode='linear', align_corners=True)", LINE),
    ("F.interpolate(x, size=(3, 2), mode='area')", IMAGE),
    ("F.interpolate(x, scale_factor=(1.5, 0.7), mode='bilinear', recompute_scale_factor=True)", IMAGE),
    ("F.interpolate(x, scale_factor=1.3, mode='bilinear', align_corners=False)", IMAGE),
    ("F.interpolate(x, (3, 4, 5), mode='nearest')", VOLUME),
    ("F.interpolate(x, scale_factor=2, mode='bicubic')", IMAGE), ("F.interpolate(x, (3, 11), mode='bicubic')",
                                                                  IMAGE),
    ("F.interpolate(x, (9, 4), mode='bicubic', align_corners=True)", IMAGE),
    ("F.interpolate(x, scale_factor=1.7, mode='nearest-exact')", IMAGE),
    ("F.interpolate(x, 4, mode='nearest-exact')", LINE),
    ("F.pixel_shuffle(x, 2)", (1, 4, 3, 3)), ("F.pixel_unshuffle(x, 2)", (3, 4, 6)),
    ("F.unfold(x, 3, stride=2)", IMAGE),
    ("F.fold(x, (5, 5), 3, padding=1, stride=2)", (2, 18, 9)), ("F.fold(x, (3, 3), 2)", (8, 4)),
    ("F.affine_grid(x, (2, 3, 4, 5), align_corners=False)", (2, 2, 3)),
    ("F.affine_grid(x, (2, 3, 4, 5), align_corners=True)", (2, 2, 3)),
    *[(f"F.grid_sample(x, y * 0.8, padding_mode='{p}', align_corners={c})", (2, 3, 5, 4), (2, 4, 3, 2))
      for p in ("zeros", "border", "reflection") for c in (False, True)],
    ("F.grid_sample(x, y * 0.8, mode='nearest', align_corners=False)", (2, 3, 5, 4), (2, 4, 3, 2)),
    ("F.cosine_similarity(x, y)", (4, 5), (4, 5)), ("F.cosine_similarity(x, y, dim=-1)", (2, 4, 5), (5,)),
    ("F.pairwise_distance(x, y)", (4, 5), (4, 5)), ("F.pairwise_distance(x, y, p=float('inf'))", (4, 5),
                                                    (4, 5)),
    ("F.scaled_dot_product_attention(x, y, z)", (2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7)),
    ("F.scaled_dot_product_attention(x, y, z, is_causal=True)", (2, 4, 5), (2, 4, 5), (2, 4, 5)),
    ("F.scaled_dot_product_attention(x, y, z, is_causal=True)", (2, 4, 5), (2, 6, 5), (2, 6, 5)),
    ("F.scaled_dot_product_attention(x, y, z, u, scale=0.3)", (2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7),
     (4, 6)),
    ("F.scaled_dot_product_attention(x, y, z, u > 0.1)", (2, 4, 5), (2, 4, 5), (2, 4, 5),
     np.abs(np.random.default_rng(1).normal(size=(4, 4))) + np.eye(4)),
    ("F.scaled_dot_product_attention(x, y, z, enable_gqa=True)", (2, 4, 3, 5), (2, 2, 3, 5), (2, 2, 3, 5)),
]


@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda c: f"{c[0]} {c[1]}")
def test_functions_equal_pytorchs(case):
    check_function(*case)


def test_float16_activations_and_pools():
    a = np.random.default_rng(0).normal(size=(2, 4, 6, 6)).astype(np.float16)
    for text in ("F.relu(x)", "F.gelu(x)", "F.softmax(x, 1)", "F.leaky_relu(x, 0.2)", "F.max_pool2d(x, 2)",
                 "F.avg_pool2d(x, 2)",
                 "F.silu(x)"):
        got = eval(text, {"F": F, "x": flow.tensor(a)})
        want = eval(text, {"F": torch.nn.functional, "x": torch.tensor(a)})
        assert got.dtype is flow.float16
        np.testing.assert_allclose(got.numpy().astype(np.float32), want.numpy().astype(np.float32), rtol=2e-3,
                                   atol=2e-3)
