"""Lists of the dtype in which each op computes inside autocast.

NARROW: products, computed in autocast's 16-bit dtype; their sums are float32 for every operand dtype.

WIDE: ops that easily exceed the 16-bit range or lose precision in sums, computed in float32.

AS_FIRST: ops computed in the dtype of the first input.

MIXED: ops that take 16-bit inputs together with float32 parameters without a cast, and write in place into
the original tensor instead of a converted copy.

All other ops compute in the dtype of their inputs, or in the wider one of two. The lists are based on those
of PyTorch 2.13 for CUDA. Ops created by graph passes are not listed, because their casts exist already.
"""
from flowedu.core.ops.define import REGISTRY, Op


def _ops(names: str) -> frozenset[Op]:
    return frozenset([REGISTRY[n] for n in names.split()])


NARROW = _ops(
    """matmul conv2d conv2d_input_grad conv2d_weight_grad attention attention_grad
lstm lstm_grad gru gru_grad rnn rnn_grad""")

WIDE = _ops(
    """acos asin cosh exp expm1 log log10 log2 log1p reciprocal reciprocal_no_nan rsqrt sinh tan pow softplus
sum prod cumsum linear_scan softmax log_softmax layer_norm squared_difference xlogy erfinv
sparse_softmax_cross_entropy softmax_cross_entropy sigmoid_cross_entropy binary_cross_entropy ctc_loss
inverse det solve slogdet cholesky leading_minor eigh svd qr lu pseudo_inverse matrix_exp rfft irfft
exp2 xdivy lgamma""")

AS_FIRST = _ops("bias_add")

MIXED = _ops("batch_norm batch_norm_infer batch_norm_grad cast") | {op for op in REGISTRY.values()
                                                                    if op.mutates}
