"""Fused ops that only passes insert into graphs. Each replaces several ops of a model."""
from flowedu.fast.ops import (
    conv_last,
    fused,
    inverted_residual,
    masked_softmax,
    matmul_update,
    moving,
    norm_clip,
)
