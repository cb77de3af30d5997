"""The names of `flow.nn` that OneFlow 0.4 has: functions of blobs (chapter 3), records, images (chapter 7).

Importing this module adds the names to `flow.nn`, which does not import them itself. A name of a module or of
`functional` is not replaced.
"""
# ruff: noqa: F401, F403, I001
from flowedu.oneflow04.nn.functions import *
from flowedu.oneflow04.nn.conv import *
from flowedu.oneflow04.nn.fused import *
from flowedu.oneflow04.functions.gradients import softmax_grad
from flowedu.oneflow04.nn.feature_maps import *
from flowedu.oneflow04.nn.group_norm import *
from flowedu.oneflow04.nn.pool import *
from flowedu.oneflow04.functions.ranges_and_triangles import tril
from flowedu.oneflow04.nn.losses import *
from flowedu.diagnostics.lazy_imports import add_names as _add_names

_add_names("flowedu.nn", {_name: _value for _name, _value in vars().items() if not _name.startswith("_")}, {
    "image": "flowedu.oneflow04.nn.image",
    **dict.fromkeys(("CoinFlip", "CropMirrorNormalize", "OFRecordBytesDecoder", "OFRecordImageDecoder",
                     "OFRecordImageDecoderRandomCrop", "OFRecordRawDecoder", "OFRecordReader",
                     "OfrecordBytesDecoder",
                     "OfrecordRawDecoder", "OfrecordReader"), "flowedu.oneflow04.nn.ofrecord_modules")})
