"""Optional optimization passes. A graph runs without them, more slowly.

    norm_clip          replaces batch norm and relu or relu6 by one op
    layout             stores images channels-last where this is faster
    fold_norm          merges batch norm into the convolution before it, in inference
    inverted_residual  replaces a block of MobileNetV2 by one op, in inference
    pool_first         moves max pooling before bias and relu
    masked_softmax     merges scale and mask of attention into the softmax          (attention.py)
    bands              concatenates the gradients of slices                         (attention.py)
    packed             multiplies by packed weights, in inference
    fuse               replaces chains of elementwise ops by one kernel
    update             merges plain SGD into the product that computes the gradient

Each pass is in the file of its name, unless another is given. fuse_add and fuse_scale are parts of fuse that
can be disabled separately.
"""
from flowedu.fast.passes.attention import bands, masked_softmax
from flowedu.fast.passes.fold_norm import fold_norm
from flowedu.fast.passes.fuse import fuse
from flowedu.fast.passes.inverted_residual import inverted_residual
from flowedu.fast.passes.layout import layout
from flowedu.fast.passes.norm_clip import norm_clip
from flowedu.fast.passes.packed import packed
from flowedu.core.graph.passes import register_pass
from flowedu.core.ops.elementwise import add, div, mul
from flowedu.core.ops.view import cast
from flowedu.fast.passes.pool_first import pool_first
from flowedu.fast.passes.update import update

# in order of execution
for f in (norm_clip, layout, fold_norm, inverted_residual, pool_first, masked_softmax, bands, packed):
    register_pass(f)
register_pass(fuse, fuse_add=(add,), fuse_scale=(cast, mul, div))
register_pass(update)
