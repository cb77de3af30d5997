"""The passes that know faster ways. A graph runs without them, more slowly.

    norm_clip       batch norm and relu or relu6 become one op                               (norm_clip.py)
    layout          images are kept channels last where that is faster                       (layout.py)
    fold_norm       in inference, batch norm becomes the last step of a convolution          (fold_norm.py)
    inverted_residual  a block of MobileNetV2 becomes one op, in inference                   (inverted_residual.py)
    pool_first      max pooling moves before bias and relu                                   (pool_first.py)
    masked_softmax  scale and mask of attention go into the softmax                          (attention.py)
    bands           gradients of slices are joined                                           (attention.py)
    packed          products with a weight run on its packed form, in inference              (packed.py)
    fuse            chains of elementwise ops become one kernel                              (fuse.py)
    update          plain SGD goes into the matrix product that makes the gradient           (update.py)

fuse_add and fuse_scale are parts of fuse that can be switched off.
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

for f in (norm_clip, layout, fold_norm, inverted_residual, pool_first, masked_softmax, bands, packed):      # in this order
    register_pass(f)
register_pass(fuse, fuse_add=(add,), fuse_scale=(cast, mul, div))
register_pass(update)
