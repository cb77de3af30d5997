"""Errors of the functions of nn.functional, with their messages."""
import numpy as np
import pytest

import flowedu as flow
from flowedu.nn import functional as F

X = np.zeros((2, 3, 5, 5), np.float32)


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: F.linear(flow.ones(2, 3), flow.ones(4, 5)), RuntimeError,
     "mat1 and mat2 shapes cannot be multiplied (2x3 and 5x4)"),
    (lambda: F.linear(flow.ones(2, 3), flow.ones(4, 3).double()), RuntimeError, "same dtype"),
    (lambda: F.conv2d(flow.tensor(X), flow.ones(4, 2, 3, 3)), RuntimeError,
     "to have 2 channels, but got 3 channels instead"),
    (lambda: F.conv2d(flow.ones(5, 5), flow.ones(4, 2, 3, 3)), RuntimeError, "Expected 3D (unbatched) or 4D"),
    (lambda: F.conv2d(flow.tensor(X), flow.ones(4, 3, 7, 7)), RuntimeError, "Kernel size can't be greater"),
    (lambda: F.conv2d(flow.tensor(X), flow.ones(4, 3, 3, 3), padding="same", stride=2), RuntimeError,
     "strided"),
    (lambda: F.conv2d(flow.tensor(X), flow.ones(4, 3, 3, 3), padding="full"), RuntimeError,
     "Invalid padding string"),
    (lambda: F.conv2d(flow.tensor(X), flow.ones(4, 3, 3, 3), stride=0), RuntimeError, "stride is not right"),
    (lambda: F.conv2d(flow.tensor(X), flow.ones(4, 3, 3, 3).double()), RuntimeError, "should be the same"),
    (lambda: F.conv_transpose2d(flow.tensor(X), flow.ones(3, 4, 3, 3), output_padding=1), RuntimeError,
     "output padding must be"),
    (lambda: F.max_pool2d(flow.tensor(X), 2, padding=2), RuntimeError, "pad should be at most half"),
    (lambda: F.max_pool2d(flow.tensor(X), 9), RuntimeError, "Output size is too small"),
    (lambda: F.embedding(flow.tensor([0, 7]), flow.ones(5, 2)), IndexError, "embedding: index out of range"),
    (lambda: F.embedding(flow.tensor([0.0]), flow.ones(5, 2)), RuntimeError, "not integers"),
    (lambda: F.softmax(flow.ones(2, 3), 2), IndexError, "Dimension out of range"),
    (lambda: F.softmax(flow.tensor([1, 2]), 0), RuntimeError, "not implemented"),
    (lambda: F.batch_norm(flow.ones(1, 3), None, None, training=True), ValueError,
     "Expected more than 1 value per channel"),
    (lambda: F.batch_norm(flow.ones(2, 3), flow.ones(4), flow.ones(4)), RuntimeError,
     "running_mean should contain 3 elements"),
    (lambda: F.batch_norm(flow.ones(2, 3)), RuntimeError, "training=False"),
    (lambda: F.layer_norm(flow.ones(2, 3), (4,)), RuntimeError,
     "Given normalized_shape=(4,), expected input with shape [*, 4]"),
    (lambda: F.group_norm(flow.ones(2, 3), 2), RuntimeError, "divisible by num_groups"),
    (lambda: F.dropout(flow.ones(2), 1.5), ValueError,
     "dropout probability has to be between 0 and 1, but got 1.5"),
    (lambda: F.glu(flow.ones(3)), RuntimeError, "Halving dimension must be even"),
    (lambda: F.interpolate(flow.tensor(X), size=3, scale_factor=2), ValueError,
     "only one of size or scale_factor"),
    (lambda: F.interpolate(flow.tensor(X), 3, mode="linear"), RuntimeError, "does not fit"),
    (lambda: F.interpolate(flow.tensor(X), 3, mode="bilinear", antialias=True), NotImplementedError,
     "antialias"),
    (lambda: F.linear([1.0], flow.ones(1, 1)), TypeError, "linear: input is not a tensor"),
    (lambda: F.conv2d([1.0], flow.ones(1, 1, 1, 1)), TypeError, "conv2d: input is not a tensor"),
    (lambda: F.conv2d(flow.tensor(X), flow.ones(4, 3, 3, 3), flow.ones(3)), RuntimeError,
     "the bias does not fit"),
    (lambda: F.pixel_shuffle(flow.tensor(X), 2), RuntimeError, "divisible by the square"),
    (lambda: F.gelu(flow.ones(2), "sigmoid"), RuntimeError, "none or tanh"),
    (lambda: F.relu([1.0]), TypeError, "not a tensor"),
    (lambda: F.prelu(flow.ones(2, 3), flow.ones(2)), RuntimeError, "Mismatch of parameter numbers"),
    (lambda: F.scaled_dot_product_attention(*[flow.ones(2, 2)] * 4, is_causal=True), RuntimeError,
     "should not be set"),
    # losses
    (lambda: F.cross_entropy(flow.ones(2, 3), flow.tensor([0, 3])), IndexError,
     "cross_entropy: a target class is out of range"),
    (lambda: F.cross_entropy(flow.ones(2, 3), flow.tensor([0, -1])), RuntimeError,
     "0 <= class < 3, or ignore_index=-100"),
    (lambda: F.nll_loss(flow.ones(2, 3), flow.tensor([0, 3])), IndexError,
     "nll_loss: a target class is out of range"),
    (lambda: F.cross_entropy(flow.ones(2, 3), flow.tensor([0.0, 1.0])), RuntimeError,
     "expected target being integer type"),
    (lambda: F.cross_entropy(flow.ones(2, 3), flow.tensor([[0], [1]])), RuntimeError,
     "Expected target size [2], got [2, 1]"),
    (lambda: F.cross_entropy(flow.ones(2, 3), flow.tensor([0, 1]), flow.ones(2)), RuntimeError,
     "all 3 classes"),
    (lambda: F.cross_entropy(flow.ones(2, 3), flow.tensor([0, 1]), reduction="avg"), ValueError,
     "avg is not a valid value"),
    (lambda: F.cross_entropy(flow.ones(2, 3), flow.tensor([0, 1]), label_smoothing=2.0), RuntimeError,
     "between 0.0 and 1.0"),
    (lambda: F.mse_loss(flow.ones(2), [1.0, 2.0]), TypeError, "target is not a tensor"),
    (lambda: F.binary_cross_entropy(flow.ones(2, 1), flow.ones(2)), ValueError,
     "Please ensure they have the same size"),
    (lambda: F.smooth_l1_loss(flow.ones(2), flow.ones(2), beta=-1.0), RuntimeError,
     "negative values for beta"),
    (lambda: F.triplet_margin_loss(*[flow.ones(2, 2)] * 3, margin=0.0), ValueError,
     "margin must be greater than 0"),
])
def test_invalid_calls_of_functions_are_refused(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_shapes_that_differ_warn():
    with pytest.warns(UserWarning, match="Using a target size"):
        F.mse_loss(flow.ones(3, 1), flow.ones(3))
