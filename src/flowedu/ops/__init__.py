"""Chapter 2: ops. Importing this package fills the registry (flow.ops.REGISTRY)."""
# Records of other families are built from `view` and `elementwise`, so these come first.
from flowedu.core.ops import view, elementwise  # isort: skip
from flowedu.core.ops import concat, matmul, update
from flowedu.ops import hint  # isort: skip
from flowedu.ops import (
    argmax,
    attention,
    bias,
    bounds,
    checks,
    composed,
    conv,
    exact,
    functions,
    index,
    norm,
    pool,
    random,
)
from flowedu.ops import resize, softmax, slice_part, activations, ctc, halves, order, recurrent, scatter
from flowedu.ops import factors, fourier, linalg, lu, scan, strided, update_adaptive, update_sgd
from flowedu.core.ops.define import REGISTRY, define
from flowedu.ops.formula import elementwise as define_elementwise
from flowedu.ops.sbp_signatures import signatures
from flowedu.core.ops.record import Effects, Kernel, Laws, Meaning, Split, View
