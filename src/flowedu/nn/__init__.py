"""flow.nn: lower-case functions of chapter 3 (blobs, job functions), and modules and `functional` of chapter 5."""
# chapter 3: functions of the job-function generation
from flowedu.oneflow04.nn.functions import *
from flowedu.oneflow04.nn.conv import *
from flowedu.oneflow04.nn.fused import *
from flowedu.oneflow04.gradients import softmax_grad
from flowedu.oneflow04.nn.maps import *
from flowedu.oneflow04.nn.norms import *
from flowedu.oneflow04.nn.pool import *
from flowedu.oneflow04.matrix_ops import tril
from flowedu.oneflow04.nn.losses import *

# chapter 5: modules
from flowedu.nn import methods
from flowedu.nn import functional, init, modules, utils
from flowedu.nn.containers import ModuleDict, ModuleList, Sequential
from flowedu.core.layers.module import Module
from flowedu.nn.modules import *
from flowedu.core.layers.parameter import Parameter
from flowedu.nn.parameter_lists import ParameterDict, ParameterList
from flowedu.diagnostics.lazy_imports import lazy_import

__getattr__, __dir__ = lazy_import(__name__, {"Graph": "flowedu.nn.graph", "graph": "flowedu.nn.graph",
                                           "parallel": "flowedu.nn.parallel",
    # records and pictures, as OneFlow has them in nn
    "image": "flowedu.oneflow04.nn.image",
    **dict.fromkeys(("CoinFlip", "CropMirrorNormalize", "OFRecordBytesDecoder", "OFRecordImageDecoder",
                     "OFRecordImageDecoderRandomCrop", "OFRecordRawDecoder", "OFRecordReader", "OfrecordBytesDecoder",
                     "OfrecordRawDecoder", "OfrecordReader"), "flowedu.oneflow04.nn.records")})
