"""Every name in OneFlow 0.4's documentation exists here and has a docstring."""
import importlib
import inspect

import pytest

import flowedu as flow

NAMES = """
global_function function_config FunctionConfig ExecutionConfig enable_eager_execution eager_execution_enabled
config.gpu_device_num config.cpu_device_num config.machine_num config.enable_legacy_model_io
config.enable_debug_mode config.load_library config.load_library_now config.ctrl_port env.ctrl_port
env.machine env.data_port env.log_dir env.init current_resource current_machine_id scope.placement
scope.mirrored_view scope.consistent_view scope.namespace scope.current_scope scope.mirrored_view_enabled
scope.consistent_view_enabled name_scope cast_to_current_logical_view distribute.split distribute.broadcast
distribute.auto distribute.assert_is_valid_distribute distribute.mirrored_strategy
distribute.consistent_strategy parallel_cast hierarchical_parallel_cast advanced.distribute_clone
advanced.distribute_add advanced.distribute_split advanced.distribute_concat advanced.distribute_map
typing.Numpy typing.ListNumpy typing.ListListNumpy typing.Callback typing.Bundle typing.Numpy.Placeholder
typing.ListNumpy.Placeholder typing.ListListNumpy.Placeholder float float32 double float64 half float16 int
int32 long int64 int8 uint8 char record tensor_buffer dtypes convert_oneflow_dtype_to_numpy_dtype reshape
transpose flatten squeeze expand_dims concat stack slice slice_v2 pad identity identity_n cast assign range
constant constant_scalar constant_like zeros ones zeros_like ones_like where one_hot gather gather_nd
scatter_nd matmul argwhere sort argsort clip clip_by_value clamp clip_by_scalar repeat pack unpack acc
broadcast_add get_variable get_all_variables load_variables layers.dense layers.conv1d layers.conv2d
layers.conv3d layers.batch_normalization layers.batch_normalization_relu layers.batch_normalization_add_relu
layers.layer_norm layers.prelu layers.upsample_2d nn.relu nn.max_pool2d nn.avg_pool2d nn.max_pool3d
nn.avg_pool3d nn.dropout nn.conv1d nn.conv2d nn.conv3d nn.conv2d_transpose nn.compat_conv2d nn.bias_add
nn.moments nn.batch_normalization nn.layer_norm nn.softmax nn.logsoftmax
nn.sparse_softmax_cross_entropy_with_logits nn.softmax_cross_entropy_with_logits nn.sparse_cross_entropy
nn.sigmoid_cross_entropy_with_logits nn.leaky_relu nn.elu nn.relu6 nn.swish nn.mish nn.hardsigmoid
nn.hardswish nn.hardtanh nn.L1Loss nn.MSELoss nn.BCELoss nn.BCEWithLogitsLoss nn.KLDivLoss
nn.MarginRankingLoss nn.TripletMarginLoss nn.PixelShuffle nn.GroupNorm nn.InstanceNorm1d nn.InstanceNorm2d
nn.InstanceNorm3d smooth_l1_loss ctc_loss combined_margin_loss math.add math.subtract math.multiply
math.divide math.mod math.equal math.not_equal math.less math.less_equal math.greater math.greater_equal
math.logical_and math.maximum math.minimum math.add_n math.abs math.acos math.acosh math.asin math.asinh
math.atan math.atanh math.ceil math.cos math.cosh math.erf math.erfc math.exp math.expm1 math.floor
math.lgamma math.log math.log1p math.log_sigmoid math.negative math.reciprocal math.reciprocal_no_nan
math.rint math.round math.rsqrt math.sigmoid math.sign math.sin math.sinh math.softplus math.sqrt math.square
math.tan math.tanh math.gelu math.relu math.atan2 math.floordiv math.pow math.xdivy math.xlogy
math.squared_difference math.reduce_sum math.reduce_mean math.reduce_min math.reduce_max math.reduce_prod
math.reduce_any math.reduce_all math.reduce_std math.reduce_variance math.reduce_euclidean_norm
math.reduce_logsumexp math.argmax math.top_k math.in_top_k math.clip_by_value math.l2_normalize linalg.matmul
truncated_normal truncated_normal_initializer random_uniform_initializer random_normal_initializer
zeros_initializer ones_initializer constant_initializer variance_scaling_initializer
xavier_uniform_initializer xavier_normal_initializer glorot_uniform_initializer glorot_normal_initializer
kaiming_initializer empty_initializer regularizers.l1 regularizers.l2 regularizers.l1_l2 optimizer.SGD
optimizer.SGDW optimizer.Adam optimizer.AdamW optimizer.LazyAdam optimizer.RMSProp optimizer.LARS
optimizer.LAMB optimizer.CombinedOptimizer optimizer.PiecewiseConstantScheduler
optimizer.PiecewiseScalingScheduler optimizer.CosineScheduler optimizer.PolynomialScheduler
optimizer.PolynomialSchduler optimizer.LinearCosineScheduler optimizer.ExponentialScheduler
optimizer.InverseTimeScheduler optimizer.NaturalExpScheduler optimizer.CustomScheduler
optimizer.warmup.constant optimizer.warmup.linear optimizer.grad_clipping.by_global_norm
optimizer.loss_scale.static_loss_scale optimizer.loss_scale.dynamic_loss_scale losses.add_loss watch
watch_diff checkpoint.save checkpoint.get save load train.CheckPoint train.SimpleCheckPointManager
clear_default_session sync_default_session tensor_to_tensor_buffer tensor_buffer_to_tensor gen_tensor_buffer
tensor_buffer_to_list_of_tensors tensor_list_to_tensor_buffer tensor_buffer_to_tensor_list tensor_list_split
image.decode image.Resize image.resize image.target_resize image.batch_align image.normalize image.flip
image.random_crop image.CropMirrorNormalize image.crop_mirror_normalize image_decode image_resize
image_batch_align image_normalize image_flip image_random_crop detection.object_bbox_flip
detection.object_bbox_scale detection.object_segmentation_polygon_flip
detection.object_segmentation_polygon_scale detection.object_segmentation_polygon_to_mask object_bbox_flip
object_bbox_scale data.load_mnist data.ofrecord_reader data.OFRecordRawDecoder data.OFRecordBytesDecoder
data.OFRecordImageDecoder data.OFRecordImageDecoderRandomCrop data.ofrecord_raw_decoder data.decode_ofrecord
random.CoinFlip user_op_builder consistent_user_op_builder user_op_module_builder custom_op
experimental.custom_op_module experimental.enable_typing_check sysconfig.get_include sysconfig.get_lib
sysconfig.get_compile_flags sysconfig.get_link_flags BlobDef ConsistentBlob MirroredBlob ArgBlobDef LocalBlob
FixedTensorDef MirroredTensorDef MirroredTensorListDef current_global_function_desc current_scope""".split()
CONFIG = """default_data_type default_logical_view default_distribute_strategy default_placement_scope
default_initializer_conf allow_cpu_return_op enable_auto_mixed_precision prune_parallel_cast_ops
enable_inplace enable_reuse_mem enable_fuse_add_to_output enable_cudnn concurrency_width train.primary_lr
train.secondary_lr train.model_update_conf train.loss_scale_factor train.num_gradient_accumulation_steps
optimizer_placement_optimization_mode exp_run_conf""".split()


def find(root, name):
    for part in name.split("."):
        root = getattr(root, part)
    return root


@pytest.mark.parametrize("name", NAMES)
def test_every_documented_name_exists_and_is_described(name):
    found = find(flow, name)
    if callable(found) and not isinstance(found, flow.dtype):
        doc = inspect.getdoc(found) or (inspect.getdoc(type(found)) if not inspect.isclass(found) else None)
        assert doc, f"flow.{name} has no docstring"


@pytest.mark.parametrize("name", CONFIG)
def test_every_setting_of_a_job_is_callable(name):
    assert callable(find(flow.function_config(), name))


def test_record_messages_have_oneflows_module_paths():
    module = importlib.import_module("flowedu.core.record.record_pb2")
    feature = module.Feature(int64_list=module.Int64List(value=[1, 2]))
    again = module.OFRecord.FromString(module.OFRecord(feature={"x": feature}).SerializeToString())
    assert list(again.feature["x"].int64_list.value) == [1, 2]
