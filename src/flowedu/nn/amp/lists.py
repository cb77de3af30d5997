"""In which type an op computes inside autocast.

NARROW: products, whose sums are float32 whatever their operands are: in autocast's 16-bit type. WIDE: what exceeds 16 bits
easily, or loses what it sums: in float32. AS_FIRST: in the type of the first input. MIXED: they take 16-bit numbers beside
float32 parameters as they come, and what they write in place is itself written, no copy in another type. All others: in the
type of their inputs; of two, in the wider one.
(After PyTorch's lists for CUDA, as of 2.13. What passes make of these ops in a graph has its casts already.)
"""
from flowedu.core.ops.define import REGISTRY, Op


def _ops(names: str) -> frozenset[Op]:
    return frozenset([REGISTRY[n] for n in names.split()])


NARROW = _ops("""matmul conv2d conv2d_input_grad conv2d_weight_grad attention attention_grad lstm lstm_grad gru gru_grad rnn
rnn_grad""")

WIDE = _ops("""acos asin cosh exp expm1 log log10 log2 log1p reciprocal reciprocal_no_nan rsqrt sinh tan pow softplus
sum prod cumsum linear_scan softmax log_softmax layer_norm squared_difference xlogy erfinv
sparse_softmax_cross_entropy softmax_cross_entropy sigmoid_cross_entropy binary_cross_entropy ctc_loss
inverse det solve slogdet cholesky leading_minor eigh svd qr lu pseudo_inverse matrix_exp rfft irfft
exp2 xdivy lgamma""")

AS_FIRST = _ops("bias_add")

MIXED = _ops("batch_norm batch_norm_infer batch_norm_grad cast") | {op for op in REGISTRY.values() if op.mutates}
