"""Functions of neural networks on tensors (flow.nn.functional), one file per topic."""
from flowedu.nn.functional.activation import *
from flowedu.nn.functional.adaptive_pool import *
from flowedu.nn.functional.attention import *
from flowedu.nn.functional.bags import *
from flowedu.nn.functional.class_losses import *
from flowedu.nn.functional.conv import conv1d, conv2d, conv3d
from flowedu.nn.functional.conv_transpose import conv_transpose1d, conv_transpose2d, conv_transpose3d
from flowedu.nn.functional.ctc import *
from flowedu.nn.functional.dense import bilinear, embedding, linear
from flowedu.nn.functional.distance import *
from flowedu.nn.functional.dropouts import *
from flowedu.nn.functional.loss import *
from flowedu.nn.functional.margins import *
from flowedu.nn.functional.norm import (
    batch_norm, group_norm, instance_norm, layer_norm, local_response_norm, normalize, rms_norm)
from flowedu.nn.functional.pixelshuffle import *
from flowedu.nn.functional.pool import *
from flowedu.nn.functional.sampling import affine_grid, grid_sample
from flowedu.nn.functional.unpool import max_unpool1d, max_unpool2d, max_unpool3d
from flowedu.nn.functional.upsampling import *
from flowedu.nn.functional.windows import *
from flowedu.tensor.shapes.join_and_pad import pad
from flowedu.tensor.indexing.sort_and_search import one_hot
