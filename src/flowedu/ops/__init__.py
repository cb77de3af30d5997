"""Chapter 2: ops. Importing this package fills the registry (flow.ops.REGISTRY)."""
# Records of other families are built from `view` and `elementwise`, so these come first.
from flowedu.ops import view, elementwise  # isort: skip
from flowedu.ops import concat, conv, distribute, index, matmul, norm, pool, random, reduce, resize, softmax, update
from flowedu.ops import activations, conv_last, ctc, masked_softmax, moving, norm_clip, order, scatter
from flowedu.ops import exact, fused, linalg, scan, strided, update_adaptive
from flowedu.ops.define import REGISTRY, define
from flowedu.ops.formula import elementwise as define_elementwise
