"""The arguments of OneFlow's functions: names, order, and defaults. Positional calls in old scripts rely on
them.
"""
import inspect

import numpy as np
import pytest

import flowedu as flow
from common import f32, fresh_session, run  # noqa: F401

BROADCAST = flow.distribute.broadcast()
_INITIALIZED = ("kernel_initializer=None, bias_initializer=None, kernel_regularizer=None, "
                "bias_regularizer=None")
_CONV_LAYER = ('inputs, filters, kernel_size=1, strides=1, padding="VALID", data_format="{}", '
               'dilation_rate=None, '
               f'groups=1, activation=None, use_bias=True, {_INITIALIZED}, trainable=True, name="{{}}", '
               "weight_name=None, bias_name=None")
_DECAY = "weight_decay=None, weight_decay_includes=None, weight_decay_excludes=None"
_REST = "grad_clipping=None, train_step_lbn=None, loss_scale_policy=None, variables=None"
_RATE = "base_lr, steps, decay_rate, staircase=False, warmup=None"
_PARTS = 'part_name_prefix="part-", part_name_suffix_length=-1'

SIGNATURES = {
    # variables and initial values
    "get_variable": "name, shape=None, dtype=flow.float32, initializer=None, regularizer=None, trainable=None, "
                    "model_name=None, random_seed=None, parallel_distribution=None, distribute=None, reuse=True",
    "constant_initializer": "value=0, dtype=flow.float", "zeros_initializer": "dtype=flow.float",
    "ones_initializer": "dtype=flow.float", "empty_initializer": "dtype=flow.float",
    "random_uniform_initializer": "minval=0, maxval=1, dtype=flow.float",
    "random_normal_initializer": "mean=0., stddev=1., seed=None, dtype=None",
    "truncated_normal_initializer": "mean=0., stddev=1.", "truncated_normal": "stddev=1.0",
    "variance_scaling_initializer": 'scale=1., mode="fan_in", distribution="truncated_normal", data_format=""',
    "xavier_uniform_initializer": 'data_format=""', "glorot_uniform_initializer": 'data_format=""',
    "xavier_normal_initializer": 'data_format=""', "glorot_normal_initializer": 'data_format=""',
    "kaiming_initializer": 'shape, distribution="random_normal", mode="fan_in", nonlinearity="leaky_relu", '
                           'negative_slope=0., data_format="NCHW"',
    "regularizers.l1": "l=0.01", "regularizers.l2": "l=0.01", "regularizers.l1_l2": "l1=0.01, l2=0.01",
    # layers
    "layers.dense": f'inputs, units, activation=None, use_bias=True, {_INITIALIZED}, trainable=True, name="Dense", '
                    "model_distribute=BROADCAST",
    "layers.conv1d": _CONV_LAYER.format("NCW", "Conv1d"),
    "layers.conv2d": _CONV_LAYER.format("NCHW", "Conv2d"),
    "layers.conv3d": _CONV_LAYER.format("NCDHW", "Conv3d"),
    "layers.batch_normalization": "inputs, axis=-1, momentum=0.99, epsilon=0.001, center=True, scale=True, "
        "beta_initializer=None, gamma_initializer=None, beta_regularizer=None, gamma_regularizer=None, "
        "moving_mean_initializer=None, moving_variance_initializer=None, trainable=True, training=True, "
        'name="BatchNorm", gamma_name=None, beta_name=None, moving_mean_name=None, moving_variance_name=None',
    "layers.layer_norm": "inputs, center=True, scale=True, trainable=True, begin_norm_axis=1, begin_params_axis=-1, "
                         'epsilon=1e-5, name="LayerNorm"',
    "layers.prelu": "inputs, alpha_initializer=None, alpha_regularizer=None, shared_axes=None, trainable=True, "
                    'name="PRelu", model_distribute=BROADCAST',
    "layers.upsample_2d": 'x, size=(2, 2), align_corners=False, data_format="NCHW", interpolation="nearest", '
                          'name="Upsample2D"',
    # math and arrays
    "math.add_n": "inputs, name=None", "math.argmax": None, "math.polyval": None, "math.l2_normalize":
    "x, axis, epsilon=1e-12, name=None",
    "math.clip_by_value": "values, min_value=None, max_value=None, name=None",
    "clip": "values, min_value=None, max_value=None, name=None",
    "math.in_top_k": "targets, predictions, k, name=None",
    "math.top_k": "input, axis=-1, k=1, sorted=True, name=None",
    "argsort": 'input, axis=-1, direction="ASCENDING", name=None',
    "sort": 'input, axis=-1, direction="ASCENDING", name=None',
    "matmul": "a, b, transpose_a=False, transpose_b=False, alpha=1.0, name=None",
    "linalg.matmul": "a, b, transpose_a=False, transpose_b=False, alpha=1.0, name=None",
    "constant": "value, dtype=None, shape=None, name=None", "constant_scalar": "value, dtype=None, name=None",
    "constant_like": "like, value, dtype=None, name=None", "zeros": "shape, dtype=flow.float, name=None",
    "ones": "shape, dtype=flow.float, name=None", "zeros_like": "like, dtype=None, name=None",
    "ones_like": "like, dtype=None, name=None",
    "range": 'start, limit=None, delta=1, dtype=None, name="range"',
    "where": "condition, x=None, y=None, name=None",
    "one_hot": "indices, depth, on_value=1, off_value=0, axis=-1, dtype=None, name=None",
    # None is replaced by batch_dims (0), as in OneFlow
    "gather": "params, indices, axis=None, batch_dims=0, name=None",
    "reshape": "x, shape, name=None", "flatten": "x, start_dim=0, end_dim=-1, name=None",
    "transpose": "a, perm=None, conjugate=False, batch_axis_non_change=False, name=None",
    "squeeze": "x, axis=None, name=None", "expand_dims": "x, axis, name=None",
    "concat": "inputs=None, axis=0, max_dim_size=None, name=None, values=None",
    "stack": "inputs, axis=0, name=None",
    "slice": "x, begin, size, name=None", "slice_v2": "x, slice_tup_list, name=None",
    "pad": "x, paddings, constant_value=0, name=None", "identity": "x, name=None",
    "cast": "x, dtype, name=None",
    # nn
    "nn.conv1d": 'input, filters, strides, padding, data_format="NCW", dilations=None, groups=1, name=None',
    "nn.conv2d": 'input, filters, strides, padding, data_format="NCHW", dilations=None, groups=1, name=None',
    "nn.compat_conv2d": 'input, filters, strides, padding, data_format="NCHW", dilations=None, groups=1, name=None',
    "nn.conv3d": 'input, filters, strides, padding, data_format="NCDHW", dilations=None, groups=1, name=None',
    "nn.conv2d_transpose": 'value=None, filter=None, output_shape=None, strides=None, padding="VALID", data_format="NCHW", '
                           "name=None, input=None, filters=None, dilations=None, groups=1",
    "nn.max_pool1d": 'input, ksize, strides, padding, data_format="NCW", ceil_mode=False, name=None',
    "nn.avg_pool2d": 'input, ksize, strides, padding, data_format="NCHW", ceil_mode=False, name=None',
    "nn.max_pool2d": 'input, ksize, strides, padding, data_format="NCHW", ceil_mode=False, name=None',
    "nn.max_pool3d": 'input, ksize, strides, padding, data_format="NCDHW", ceil_mode=False, name=None',
    "nn.bias_add": "value, bias, data_format=None, name=None",
    "nn.moments": "x, axes, keepdims=False, name=None",
    "nn.batch_normalization": "x, mean, variance, offset=None, scale=None, variance_epsilon=1e-5, axis=1, name=None",
    "nn.layer_norm": "inputs, gamma=None, beta=None, begin_norm_axis=1, begin_params_axis=-1, epsilon=1e-5, name=None",
    "nn.dropout": "x, rate, noise_shape=None, seed=None, name=None",
    "nn.leaky_relu": "x, alpha=0.2, name=None",
    "nn.elu": "x, alpha=1.0, name=None", "nn.swish": "x, beta=1.0, name=None", "nn.relu": "x, name=None",
    "nn.hardtanh": "x, min_val=-1.0, max_val=1.0, name=None", "nn.softmax": "logits, axis=None, name=None",
    "nn.logsoftmax": "logits, axis=None, name=None",
    "nn.sparse_softmax_cross_entropy_with_logits": "labels, logits, name=None",
    "nn.softmax_cross_entropy_with_logits": "labels, logits, name=None", "nn.sparse_cross_entropy":
    "labels, prediction, name=None", "nn.sigmoid_cross_entropy_with_logits": "labels, logits, name=None",
    # nn.L1Loss and the like are also modules (flowedu/oneflow04/names.py); called with blobs or tensors, they
    # are these functions.
    "oneflow04.nn.losses.L1Loss": 'input, target, reduction="mean", name=None',
    "oneflow04.nn.losses.MSELoss": 'input, target, reduction="mean", name=None',
    "oneflow04.nn.feature_maps.PixelShuffle": "input, upscale_factor, name=None",
    "smooth_l1_loss": "prediction, label, beta=1.0, name=None",
    # optimizers
    "optimizer.SGD": f"lr_scheduler, loss_scale_factor=None, momentum=0.9, {_REST}",
    "optimizer.SGDW": f"lr_scheduler, loss_scale_factor=None, momentum=0.9, {_DECAY}, {_REST}",
    "optimizer.Adam": "lr_scheduler, beta1=0.9, beta2=0.999, epsilon=1e-8, do_bias_correction=False, "
                      f"loss_scale_factor=None, {_REST}",
    "optimizer.AdamW": "lr_scheduler, beta1=0.9, beta2=0.999, epsilon=1e-8, do_bias_correction=False, "
                       f"loss_scale_factor=None, {_DECAY}, {_REST}",
    "optimizer.LazyAdam": f"lr_scheduler, beta1=0.9, beta2=0.999, epsilon=1e-8, loss_scale_factor=None, {_REST}",
    "optimizer.RMSProp": f"lr_scheduler, decay_rate=0.99, epsilon=1e-8, centered=False, loss_scale_factor=None, {_REST}",
    "optimizer.LARS": "lr_scheduler, momentum_beta=0.9, epsilon=1e-9, lars_coefficient=1e-4, loss_scale_factor=None, "
                      f"{_DECAY}, {_REST}",
    "optimizer.LAMB": f"lr_scheduler, beta1=0.9, beta2=0.999, epsilon=1e-6, loss_scale_factor=None, {_DECAY}, {_REST}",
    "optimizer.CombinedOptimizer": "optimizers, loss_scale_factor=None, train_step_lbn=None, loss_scale_policy=None",
    "optimizer.PiecewiseConstantScheduler": "boundaries, values, warmup=None",
    "optimizer.PiecewiseScalingScheduler": "base_lr, boundaries, scale, warmup=None",
    "optimizer.CosineScheduler": "base_lr, steps, alpha=0.0, warmup=None",
    "optimizer.PolynomialScheduler": "base_lr, steps, end_learning_rate=0.0001, power=1.0, cycle=False, warmup=None",
    "optimizer.PolynomialSchduler": "base_lr, steps, end_learning_rate=0.0001, power=1.0, cycle=False, warmup=None",
    "optimizer.LinearCosineScheduler": "base_lr, steps, num_periods=0.5, alpha=0.0, beta=0.001, warmup=None",
    "optimizer.ExponentialScheduler": _RATE, "optimizer.InverseTimeScheduler": _RATE,
    "optimizer.NaturalExpScheduler": _RATE, "optimizer.CustomScheduler": "lbn",
    "optimizer.LrScheduler": "base_lr=None, lr_lbn=None, warmup=None",
    "optimizer.warmup.constant": "steps, multiplier", "optimizer.warmup.linear": "steps, start_multiplier",
    "optimizer.loss_scale.static_loss_scale": "loss_scale_factor",
    "optimizer.loss_scale.dynamic_loss_scale": "initial_loss_scale=2**30, increment_period=2000, multiplier=2.0",
    # watch, checkpoints
    "watch": "blob_watched, handler_or_prompt=None", "watch_diff": "blob_watched, handler_or_prompt=None",
    "checkpoint.save": "path, var_dict=None", "checkpoint.get": "path",
    "save": "obj, path, global_dst_rank=None",
    "load": "path, global_src_rank=None, map_location=None, *, support_pytorch_format=True",
    "load_variables": "value_dict, ignore_mismatch=True", "get_all_variables": "", "train.CheckPoint": "",
    "train.SimpleCheckPointManager": 'root_path, prefix="snapshot_"',
    # TensorBuffers and images
    "tensor_to_tensor_buffer": "x, instance_dims, name=None",
    "tensor_buffer_to_tensor": "x, dtype, instance_shape, name=None",
    "gen_tensor_buffer": "shape, shape_list, value_list, data_type=flow.float32, dynamic_out=False, name=None",
    "tensor_buffer_to_list_of_tensors": "x, out_shape, out_dtype, dynamic_out=False, name=None",
    "tensor_list_to_tensor_buffer": "input, name=None", "tensor_list_split": "input_tensor_list, name=None",
    "tensor_buffer_to_tensor_list": "input, shape, dtype, name=None",
    "image.decode": 'images_bytes_buffer, dtype=flow.uint8, color_space="BGR", name=None',
    "image.Resize": "image, target_size=None, min_size=None, max_size=None, keep_aspect_ratio=False, "
                    'resize_side="shorter", channels=3, dtype=None, interpolation_type="auto", name=None, '
                    "color_space=None, interp_type=None, resize_shorter=0, resize_x=0, resize_y=0",
    "image.target_resize": 'images, target_size, min_size=None, max_size=None, resize_side="shorter", '
                           'interpolation_type="auto", name=None',
    "image.batch_align": "images, shape, dtype, alignment, name=None",
    "image.normalize": "image, std, mean, name=None",
    "image.flip": "image, flip_code, name=None",
    "image.CropMirrorNormalize": 'input_blob, mirror_blob=None, color_space="BGR", output_layout="NCHW", crop_h=0, '
                                 "crop_w=0, crop_pos_y=0.5, crop_pos_x=0.5, mean=(0.0,), std=(1.0,), "
                                 "output_dtype=flow.float, name=None",
    "random.CoinFlip": 'batch_size=1, seed=None, probability=0.5, name="CoinFlip"',
    # data
    "data.ofrecord_reader": f"ofrecord_dir, batch_size=1, data_part_num=1, {_PARTS}, random_shuffle=False, "
                            "shuffle_buffer_size=1024, shuffle_after_epoch=False, name=None",
    "data.OFRecordRawDecoder": "input_blob, blob_name, shape, dtype, dim1_varying_length=False, auto_zero_padding=False, "
                               "name=None",
    "data.OFRecordBytesDecoder": "input_blob, blob_name, name=None",
    "data.OFRecordImageDecoder": 'input_blob, blob_name, color_space="BGR", name=None',
    "data.OFRecordImageDecoderRandomCrop": 'input_blob, blob_name, color_space="BGR", num_attempts=10, seed=None, '
        'random_area=(0.08, 1.0), random_aspect_ratio=(0.75, 1.333333), name="OFRecordImageDecoderRandomCrop"',
}
SIGNATURES["math.argmax"], SIGNATURES["math.polyval"] = "x, axis=-1, name=None", "coeffs, x, name=None"
SIGNATURES |= {f"math.{n}": "x, name=None" for n in (
    "abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp expm1 floor lgamma log log1p "
    "log_sigmoid negative reciprocal reciprocal_no_nan rint round rsqrt sigmoid sign sin sinh softplus sqrt "
    "square tan tanh gelu relu").split()}
SIGNATURES |= {f"math.{n}": "x, y, name=None" for n in (
    "add subtract multiply divide mod maximum minimum atan2 floordiv pow xdivy xlogy squared_difference "
    "equal not_equal less less_equal greater greater_equal logical_and").split()}
SIGNATURES |= {f"math.reduce_{n}": "x, axis=None, keepdims=False, name=None" for n in
               "sum mean min max prod any all std variance euclidean_norm logsumexp".split()}


def find(name):
    thing = flow
    for part in name.split("."):
        thing = getattr(thing, part)
    return thing


def positional(signature):
    """Return [(name, default)] of the parameters that may be passed by position."""
    return [(p.name, p.default) for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]


@pytest.mark.parametrize("name", SIGNATURES)
def test_names_order_and_defaults(name):
    spoken = eval(f"lambda {SIGNATURES[name]}: 0", {"flow": flow, "BROADCAST": BROADCAST})
    assert positional(inspect.signature(find(name))) == positional(inspect.signature(spoken))


def test_load_mnist():
    want = {"train_batch_size": 100, "test_batch_size": 100, "data_format": "NCHW", "out_dir": ".",
            "hash_check": "63d4344077849053dc3036b247fa012b2b381de53fd055a66b539dffd76cf08e"}
    got = inspect.signature(flow.data.load_mnist).parameters
    assert list(got) == ["train_batch_size", "test_batch_size", "data_format", "url", "hash_check", "out_dir"]
    assert {n: got[n].default for n in want} == want


def test_the_name_may_come_last_without_its_keyword():
    names = []

    def body(x):
        y = flow.math.add(flow.nn.relu(x, "r"), 1.0, "a")
        names.extend([y.op_name, flow.math.reduce_sum(y, [0], True, "s").op_name,
                      flow.concat([x, y], 0, None, "c").op_name, flow.squeeze(y, None, "q").op_name])
        return y

    x = f32(2, 3)
    np.testing.assert_array_equal(run(body, x), np.maximum(x, 0) + 1)
    assert names == ["a", "s", "c", "q"]
    np.testing.assert_array_equal(flow.math.add(flow.tensor(x), 1.0, "a").numpy(), x + 1)
    with pytest.raises(TypeError):
        flow.nn.relu(flow.tensor(x), 0.1)
