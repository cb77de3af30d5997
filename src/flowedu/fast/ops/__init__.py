"""Ops that only passes put into graphs: several ops of a model done in one."""
from flowedu.fast.ops import conv_last, fused, inverted_residual, masked_softmax, matmul_update, moving, norm_clip
