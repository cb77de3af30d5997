"""Law: a job compiled for its largest batch replays on smaller ones. For every function of the front end, a
job whose batch varies (tp.ListNumpy) returns for each batch the same result as the eager function.
"""
import functools
import inspect

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import constant, fresh_session, job  # noqa: F401
from flowedu.core.layers.context import current
from flowedu.core.values.dtype import as_dtype
from flowedu.oneflow04.functions import gather_scatter, sort_and_top_k

_RNG = np.random.default_rng(0)
SIZES = (5, 2, 1)


def real(*shape):
    return (_RNG.uniform(0.1, 0.9, (5, *shape))).astype(np.float32)


def whole(high, *shape, dtype=np.int32):
    return _RNG.integers(0, high, (5, *shape)).astype(dtype)


def get_weights(name, *shape):
    """Return a variable that has the same initial values in every context."""
    value = np.cos(np.arange(np.prod(shape))).reshape(shape).astype(np.float32)
    return flow.get_variable(name, shape, initializer=constant(value))


def bytes_of(*shape):
    return whole(200, *shape, dtype=np.uint8)


X, Y, B = real(4), real(4), real(4)
IMAGES = real(2, 6, 6)
LABELS = whole(4)
nn, math, layers = flow.nn, flow.math, flow.layers

TABLE = {
    # arrays
    "argsort": (lambda x: sort_and_top_k.argsort(x, 0), X),
    "sort": (lambda x: flow.sort(x, 0, "DESCENDING"), X),
    "argwhere": (lambda x: gather_scatter.argwhere(x), whole(2, 4)),
    "nonzero": (lambda x: gather_scatter.nonzero(x), whole(2, 4)),
    "where": (lambda c, x, y: flow.where(c, x, y), whole(2, 4), X, Y),
    "broadcast_like": (lambda x, y: flow.broadcast_like(x, y, [1]), real(), X),
    "math.broadcast_to_compatible_with": (lambda x, y: math.broadcast_to_compatible_with(x, [y]), real(1), X),
    "cast": (lambda x: flow.cast(x * 9, flow.int32), X), "concat": (lambda x, y: flow.concat([x, y], 0), X,
                                                                    Y),
    "constant_like": (lambda x: flow.constant_like(x, 3.0) + x, X),
    "zeros_like": (lambda x: flow.zeros_like(x), X),
    "ones_like": (lambda x: flow.ones_like(x, flow.int32), X), "diag": (lambda x: flow.diag(x), real()),
    "dim_gather": (lambda x, i: flow.dim_gather(x, 1, i), X, whole(4, 3)),
    "elem_cnt": (lambda x: flow.elem_cnt(x), X),
    "reshape": (lambda x: flow.reshape(x, [-1, 2]), X),
    "dynamic_reshape": (lambda x: flow.dynamic_reshape(x, [-1]), X),
    "reshape_like": (lambda x, y: flow.reshape_like(x, y), X, real(2, 2)),
    "expand_dims": (lambda x: flow.expand_dims(x, 0), X), "flatten": (lambda x: flow.flatten(x), IMAGES),
    "squeeze": (lambda x: flow.squeeze(x, [1]), real(1, 3)), "stack": (lambda x, y: flow.stack([x, y], 1), X,
                                                                       Y),
    "swapaxes": (lambda x: flow.swapaxes(x, 0, 1), X), "transpose": (lambda x: flow.transpose(x, [1, 0]), X),
    "gather": (lambda x, i: flow.gather(x, i, axis=1), X, whole(4)),
    "constant_pad2d": (lambda x: flow.constant_pad2d(x, [1, 2, 0, 1], 2.0), IMAGES),
    "zero_pad2d": (lambda x: flow.zero_pad2d(x, 1), IMAGES),
    "pad_grad": (lambda x: flow.pad_grad(x, [(0, 0), (1, 1)]), X),
    "reflection_pad2d": (lambda x: flow.reflection_pad2d(x, [1, 2, 0, 1]), IMAGES),
    "replication_pad2d": (lambda x: flow.replication_pad2d(x, [1, 2, 0, 1]), IMAGES),
    "same_padding": (lambda x: flow.same_padding(x, "SAME_UPPER", "NCHW", (3, 3), (1, 1), (1, 1)), IMAGES),
    "multi_count_not_finite": (lambda x, y: flow.multi_count_not_finite([x, y]), X, Y),
    "math.gelu_grad": (lambda x, y: math.gelu_grad(x, y), X, Y),
    "math.sigmoid_grad": (lambda x, y: math.sigmoid_grad(x, y), X, Y),
    "nn.softmax_grad": (lambda x, y: nn.softmax_grad(x, y), X, Y),
    "nn.fused_bias_add_gelu": (lambda x: nn.fused_bias_add_gelu(x, get_weights("w", 4)), X),
    "nn.fused_scale_tril": (lambda x: nn.fused_scale_tril(x, 0, 0.0, 2.0), real(4, 4)),
    "layers.layer_norm_grad": (lambda y, x, m, s: layers.layer_norm_grad(y, x, m, s), X, Y, real(), real()),
    "layers.layer_norm_param_grad": (lambda y, x: layers.layer_norm_param_grad(y, x, get_weights("w", 4))[0],
                                     X, Y),
    "batch_gather": (lambda x, i: flow.batch_gather(x, i), X, whole(4, 3)),
    "gather with batch axes": (lambda x, i: flow.gather(x, i, batch_dims=1), X, whole(4, 3)),
    "gather_nd": (lambda x, i: flow.gather_nd(get_weights("w", 4, 3), i), X, whole(3, 1)),
    "scatter_nd": (lambda i, x: flow.scatter_nd(i, x, (4, 4)), whole(4, 1), X),
    "tensor_scatter_nd_add": (lambda i, x: flow.tensor_scatter_nd_add(get_weights("w", 4, 4), i, x),
                              whole(4, 1), X),
    "tensor_scatter_nd_update": (lambda i, x: flow.tensor_scatter_nd_update(get_weights("w", 5, 4), i, x),
                                 np.arange(5, dtype=np.int32)[:, None], X),
    "unsorted_segment_sum": (lambda x, i: flow.unsorted_segment_sum(x, i, 4), X, LABELS),
    "unsorted_segment_sum_like": (lambda x, i,
                                  y: flow.unsorted_segment_sum_like(x, i, get_weights("w", 4, 4)), X, LABELS,
                                  Y),
    "unsorted_batch_segment_sum": (lambda x, i: flow.unsorted_batch_segment_sum(x, i, 3), X, whole(3, 4)),
    "one_hot": (lambda i: flow.one_hot(i, 4, axis=0), LABELS), "identity": (lambda x: flow.identity(x), X),
    "identity_n": (lambda x, y: flow.identity_n([x, y])[1], X, Y), "masked_fill": (
        lambda x, m: flow.masked_fill(x, m, 7.0), X, whole(2, 4)),
    "matmul": (lambda x: flow.matmul(x, get_weights("w", 4, 3)), X),
    "pad": (lambda x: flow.pad(x, [(0, 0), (1, 2)]), X),
    "pad with a number": (lambda x: flow.pad(x, [(1, 0), (1, 2)], 2.0), X),
    "reverse": (lambda x: flow.reverse(x, 0), X), "slice": (lambda x: flow.slice(x, [None, 1], [-1, 2]), X),
    "slice_v2": (lambda x: flow.slice_v2(x, [(None, None, -1), (1, None, 2)]), X),
    "slice_update": (lambda x, y: flow.slice_update(x, y, [(None, None, None), (1, 3, 1)]), X, real(2)),
    "tril": (lambda x: flow.tril(x, 1), X), "triu": (lambda x: flow.triu(x), X),
    # math
    "math.add_n": (lambda x, y: math.add_n([x, y, x]), X, Y), "math.argmax": (lambda x: math.argmax(x, 0), X),
    "math.clip_by_value": (lambda x: math.clip_by_value(x, 0.3, 0.6), X), "math.in_top_k": (
        lambda t, x: math.in_top_k(t, x, 2), LABELS, X),
    "math.l2_normalize": (lambda x: math.l2_normalize(x, 0), X),
    "math.polyval": (lambda x: math.polyval([1., 2.], x), X),
    "math.top_k": (lambda x: math.top_k(x, 1, 3), X), "math.divide": (lambda x, y: x / y + 1.0 / x + x / 2, X,
                                                                      Y),
    # nn
    "nn.BCELoss": (lambda x, y: nn.BCELoss(x, y, reduction="mean"), X, Y), "nn.BCEWithLogitsLoss": (
        lambda x, y, w: nn.BCEWithLogitsLoss(x, y, w, get_weights("w", 4)), X, Y, real(4)),
    "nn.KLDivLoss": (lambda x, y: nn.KLDivLoss(x, y), X, Y), "nn.L1Loss": (lambda x, y: nn.L1Loss(x, y), X,
                                                                           Y),
    "nn.MSELoss": (lambda x, y: nn.MSELoss(x, y), X, Y), "nn.MarginRankingLoss": (
        lambda x, y, z: nn.MarginRankingLoss(x, y, z, 0.1), X, Y, B),
    "nn.TripletMarginLoss": (lambda x, y, z: nn.TripletMarginLoss(x, y, z), X, Y, B),
    "nn.PixelShuffle": (lambda x: nn.PixelShuffle(x, 2), real(4, 2, 2)),
    "nn.PixelShufflev2": (lambda x: nn.PixelShufflev2(x, 2, 1), real(4, 2, 2)),
    "nn.avg_pool1d": (lambda x: nn.avg_pool1d(x, 2, 1, "SAME"), real(2, 6)),
    "nn.max_pool1d": (lambda x: nn.max_pool1d(x, 2, 1, "SAME"), real(2, 6)),
    "nn.avg_pool2d": (lambda x: nn.avg_pool2d(x, 3, 2, "SAME"), IMAGES),
    "nn.max_pool2d": (lambda x: nn.max_pool2d(x, 2, 2, "VALID", "NHWC"), IMAGES),
    "nn.avg_pool3d": (lambda x: nn.avg_pool3d(x, 2, 1, "SAME"), real(2, 3, 3, 3)),
    "nn.max_pool3d": (lambda x: nn.max_pool3d(x, 2, 1, "SAME"), real(2, 3, 3, 3)),
    "nn.conv1d": (lambda x: nn.conv1d(x, get_weights("w", 3, 2, 3), 1, "SAME"), real(2, 6)),
    "nn.conv2d": (lambda x: nn.conv2d(x, get_weights("w", 3, 2, 3, 3), 2, "SAME"), IMAGES),
    "nn.compat_conv2d": (lambda x: nn.compat_conv2d(x, get_weights("w", 3, 2, 3, 3), 2, "SAME"), IMAGES),
    "nn.conv3d": (lambda x: nn.conv3d(x, get_weights("w", 3, 2, 2, 2, 2), 1, "SAME"), real(2, 3, 3, 3)),
    "nn.conv2d_transpose": (lambda x: nn.conv2d_transpose(x, get_weights("w", 2, 3, 3, 3), None, 2, "SAME"),
                            IMAGES),
    "nn.conv2d_transpose, its output_shape": (lambda x: nn.conv2d_transpose(
        x, get_weights("w", 2, 3, 3, 3), (x.shape[0], 3, 12, 12), 2, "SAME"), IMAGES),
    "nn.batch_normalization": (lambda x: nn.batch_normalization(x, get_weights("m", 2),
                                                                get_weights("v", 2) + 2.0), IMAGES),
    "nn.bias_add": (lambda x: nn.bias_add(x, get_weights("b", 4)), X),
    "nn.moments": (lambda x: nn.moments(x, [0])[1], X),
    "nn.layer_norm": (lambda x: nn.layer_norm(x, get_weights("g", 4), get_weights("b", 4)), X),
    "nn.layer_norm of images": (lambda x: nn.layer_norm(x), IMAGES),
    "nn.dropout": (lambda x: nn.dropout(x, 0.0), X), "nn.elu": (lambda x: nn.elu(x - 0.5), X),
    "nn.hardtanh": (lambda x: nn.hardtanh(x, 0.2, 0.4), X),
    "nn.leaky_relu": (lambda x: nn.leaky_relu(x - 0.5), X),
    "nn.swish": (lambda x: nn.swish(x, 2.0), X), "nn.softmax": (lambda x: nn.softmax(x, 0), X),
    "nn.logsoftmax": (lambda x: nn.logsoftmax(x), X),
    "nn.prelu": (lambda x: nn.prelu(x - 0.5, get_weights("a", 4)), X),
    "nn.sigmoid_cross_entropy_with_logits": (lambda x, y: nn.sigmoid_cross_entropy_with_logits(x, y), X, Y),
    "nn.softmax_cross_entropy_with_logits": (lambda x, y: nn.softmax_cross_entropy_with_logits(x, y), X, Y),
    "nn.sparse_softmax_cross_entropy_with_logits": (
        lambda t, x: nn.sparse_softmax_cross_entropy_with_logits(t, x), whole(4, 1), X),
    "nn.distributed_sparse_softmax_cross_entropy_with_logits": (
        lambda t, x: nn.distributed_sparse_softmax_cross_entropy_with_logits(t, x), LABELS, X),
    "nn.sparse_cross_entropy": (lambda t, x: nn.sparse_cross_entropy(t, x), LABELS, X),
    "smooth_l1_loss": (lambda x, y: flow.smooth_l1_loss(x, y), X, Y), "combined_margin_loss": (
        lambda x, t: flow.combined_margin_loss(x, t, 1.0, 0.1, 0.1), X, LABELS),
    "ctc_loss": (lambda x, t, n, m: flow.ctc_loss(flow.transpose(nn.logsoftmax(x), [1, 0, 2]), t, n, m),
                 real(6, 4), whole(3, 2) + 1, np.full(5, 6, np.int32), np.full(5, 2, np.int32)),
    "nn.GroupNorm": (lambda x: nn.GroupNorm(x, 2, name="g"), IMAGES),
    "nn.InstanceNorm2d": (lambda x: nn.InstanceNorm2d(x, name="g"), IMAGES),
    # layers
    "layers.dense": (lambda x: layers.dense(x, 3, nn.relu, kernel_initializer=constant(0.5)), X),
    "layers.dense of sequences": (lambda x: layers.dense(x, 3, kernel_initializer=constant(0.5)), IMAGES),
    "layers.conv2d": (lambda x: layers.conv2d(x, 3, 3, kernel_initializer=constant(0.5), padding="SAME"),
                      IMAGES),
    "layers.batch_normalization": (lambda x: layers.batch_normalization(x, 1, trainable=False), IMAGES),
    "layers.layer_norm": (lambda x: layers.layer_norm(x), X),
    "layers.prelu": (lambda x: layers.prelu(x - 0.5), X),
    "layers.upsample_2d": (lambda x: layers.upsample_2d(x, (2, 3), interpolation="bilinear"), IMAGES),
    # data of varying size
    "tensor_buffer_to_tensor": (lambda x: flow.tensor_buffer_to_tensor(
        flow.tensor_to_tensor_buffer(x, 1), flow.float32, (4,)), X),
    "image.CropMirrorNormalize": (lambda x: flow.image.CropMirrorNormalize(x, mean=[1.], std=[2.]),
                                  bytes_of(4, 4, 3)),
    "cast_to_current_logical_view": (lambda x: flow.cast_to_current_logical_view(x) * 2.0, X),
}
_BINARY = ("add subtract multiply mod maximum minimum floordiv squared_difference atan2 xdivy xlogy pow "
           "equal not_equal less less_equal greater greater_equal logical_and").split()
TABLE.update({f"math.{n}": (getattr(math, n), X, Y) for n in _BINARY})
_REDUCTIONS = [n for n in vars(math) if n.startswith("reduce_")]
TABLE.update({f"math.{n}": (functools.partial(getattr(math, n), axis=[0], keepdims=True), X)
              for n in _REDUCTIONS})
TABLE.update({f"math.{n}, all": (getattr(math, n), X) for n in _REDUCTIONS})


def is_front(f) -> bool:
    return getattr(f, "__code__", None) is math.relu.__code__


def fronts():
    """Return {function: its names} for the whole front end."""
    found = {}
    for space, prefix in ((flow, ""), (math, "math."), (nn, "nn."), (layers, "layers.")):
        for name, f in vars(space).items():
            # for functions with two meanings, take the older one
            if callable(f) and getattr(f, "choice", None) is not None:
                f = f.choice.older
            f = getattr(f, "function", f)                        # unwrap the user-facing decorator
            if is_front(f) and not name.startswith("_"):
                found.setdefault(f, []).append(prefix + name)
    return found


UNARY = {names[-1]: (f, X + (1 if names[-1] == "math.acosh" else 0)) for f, names in fronts().items()
         if list(inspect.signature(f).parameters) == ["x", "name"] and not {*names} & {*TABLE}}
# Excluded functions take no blobs (only records or buffers), or are tested in test_dynamic_jobs,
# test_tensor_buffer, and test_image_ops, or, where the first axis is not a batch axis, in test_small_ops.
ON_DEVICE = """constant eye gen_tensor_buffer tensor_to_tensor_buffer tensor_buffer_to_list_of_tensors
tensor_list_split tensor_buffer_to_tensor_list tensor_list_to_tensor_buffer image_batch_align image_decode
image_flip image_normalize image_random_crop object_bbox_flip object_bbox_scale
object_segmentation_polygon_flip object_segmentation_polygon_scale object_segmentation_polygon_to_mask
sync_dynamic_resize nn.fused_self_attention_query_mul_key_and_value""".split()


def dynamic_job(body, arrays):
    config = flow.function_config()
    config.default_logical_view(flow.scope.mirrored_view())
    plain = inspect.Parameter.POSITIONAL_OR_KEYWORD

    def job(*blobs):
        return body(*blobs)

    job.__signature__ = inspect.Signature(
        [inspect.Parameter(f"x{i}", plain, annotation=tp.ListNumpy.Placeholder(a.shape, as_dtype(a.dtype)))
         for i, a in enumerate(arrays)], return_annotation=tp.ListNumpy)
    return flow.global_function("predict", config)(job)


def call_eagerly(body, arrays):
    context = current()
    context.variables.clear()
    context.training, before = False, context.training
    try:
        return body(*map(flow.tensor, arrays)).numpy()
    finally:
        context.training = before


def assert_same_array(got, want):
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", [*TABLE, *UNARY])
def test_a_smaller_batch_equals_the_eager_function(name):
    body, *arrays = {**TABLE, **UNARY}[name]
    job = dynamic_job(body, arrays)
    for n in SIZES:
        part = [np.ascontiguousarray(a[:n]) for a in arrays]
        (got,) = job(*[[a] for a in part])
        assert_same_array(got, call_eagerly(body, part))


@pytest.mark.parametrize("name", [*TABLE, *UNARY])
def test_two_devices_with_batches_of_different_sizes(name):
    body, *arrays = {**TABLE, **UNARY}[name]
    flow.config.cpu_device_num(2)
    job = dynamic_job(body, arrays)
    got = job(*[[a[:3], a[3:]] for a in arrays])
    for mine, part in zip(got, ([a[:3] for a in arrays], [a[3:] for a in arrays]), strict=True):
        assert_same_array(mine, call_eagerly(body, part))


# Of varying size.
@pytest.mark.parametrize("name", [n for n in (*TABLE, *UNARY) if n not in ("argwhere", "nonzero")])
def test_two_devices_share_a_batch(name):
    """A batch of 5 is split into 3 and 2, or not split at all; the result is the same."""
    body, *arrays = {**TABLE, **UNARY}[name]
    flow.config.cpu_device_num(2)
    assert_same_array(job(body, *arrays)(*arrays), call_eagerly(body, arrays))


def test_no_front_end_function_is_left_out():
    tested = {*TABLE, *UNARY, *ON_DEVICE}
    assert not [names for f, names in fronts().items() if not tested & {*names}]


def test_squeeze_keeps_a_batch_that_happens_to_be_one():
    x = real(1, 3)
    job = dynamic_job(flow.squeeze, [x])
    assert [job([x[:n]])[0].shape for n in SIZES] == [(5, 3), (2, 3), (1, 3)]
