"""OneFlow 0.9's signatures (its GetSbp functions), op by op: flowedu has all of them."""
import pytest

import flowedu as flow
from flowedu.core.sbp.signature import signatures
from flowedu.core.values.spec import Spec
from flowedu.ops import REGISTRY

M = (4, 6)
N = (6, 8)
V = (6,)
IMAGE = (4, 6, 5, 5)
ALL, SUM = ["S0 S0", "S1 S1"], ["P P"]
BOTH = ["S0 S0 S0", "S1 S1 S1"]
HEAD = {"begin_norm_axis": 1, "epsilon": 1e-5}
BAND = {"start": (0, 1), "stop": (4, 3), "step": (1, 1)}
POOL = {"ksize": (2, 2), "strides": (2, 2)}

# op, shapes of the inputs, attributes, OneFlow's signatures (inputs, then outputs); inputs named in `ints`
# are integers
TABLE = [
    ("matmul", [M, N], {}, ["S0 B S0", "B S1 S1", "S1 S0 P", "P B P", "B P P"]),
    ("matmul", [M, (8, 6)], {"transpose_b": True}, ["S0 B S0", "B S0 S1", "S1 S1 P", "P B P", "B P P"]),
    ("matmul", [(2, *M), (2, *N)], {}, ["S0 S0 S0", "S1 B S1", "B S2 S2", "S2 S1 P", "P B P", "B P P"]),
    ("matmul", [(2, *M), N], {}, ["S0 B S0", "S1 B S1", "B S1 S2", "S2 S0 P", "P B P", "B P P"]),
    ("add", [M, M], {}, [*BOTH, "P P P"]), ("sub", [M, V], {}, ["S0 B S0", "S1 S0 S1", "P P P"]),
    ("mul", [M, M], {}, [*BOTH, "P B P", "B P P"]), ("div", [M, V], {}, ["S0 B S0", "S1 S0 S1", "P B P"]),
    ("mul", [M, (4, 1)], {}, ["S0 S0 S0", "S1 B S1", "P B P", "B P P"]),
    *[(op, [M, M], {}, BOTH) for op in ("pow", "maximum", "minimum", "less", "equal", "logical_and", "fmod",
                                        "floordiv")],
    *[(op, [M], {}, ALL) for op in ("relu", "gelu", "sigmoid", "tanh", "exp", "log", "sqrt", "square", "abs",
                                    "neg", "sin", "softplus", "mish", "hardswish")],
    *[(op, [M, M], {}, BOTH) for op in ("relu_grad", "gelu_grad")],
    ("bias_add", [M, V], {"axis": 1}, ["S0 B S0", "S1 S0 S1"]),
    ("cast", [M], {"dtype": flow.float64}, [*ALL, *SUM]), ("identity", [M], {}, [*ALL, *SUM]),
    ("contiguous", [M], {}, [*ALL, *SUM]),
    ("sum", [M], {"axis": (0,)}, ["S0 P", "S1 S0", *SUM]),
    ("sum", [M], {"axis": (0,), "keepdims": True}, ["S0 P", "S1 S1", *SUM]),
    *[(op, [M], {"axis": (0,)}, ["S1 S0"]) for op in ("max", "min", "prod")],
    ("expand", [(4, 1)], {"shape": M}, ["S0 S0", "B S1", *SUM]), ("expand", [V], {"shape": M},
                                                                  ["S0 S1", *SUM]),
    ("reshape", [M], {"shape": (24,)}, ["S0 S0", *SUM]),
    ("reshape", [(2, 3, 4)], {"shape": (6, 4)}, ["S0 S0", "S2 S1", *SUM]),
    ("reshape", [M], {"shape": (4, 1, 6)}, ["S0 S0", "S1 S2", *SUM]), ("reshape", [(24,)], {"shape": M},
                                                                       ["S0 S0", *SUM]),
    ("transpose", [M], {"perm": (1, 0)}, ["S0 S1", "S1 S0", *SUM]),
    ("slice", [M], BAND, ["S0 S0", "S1 P", *SUM]), ("slice_grad", [(4, 2)], {"shape": M, **BAND},
                                                    ["S0 S0", *SUM]),
    ("concat", [M, M], {"axis": 0}, ["S1 S1 S1", "P P P"]),
    ("where", [M, M, M], {"dtypes": {0: flow.int8}}, ["S0 S0 S0 S0", "S1 S1 S1 S1", "B P P P"]),
    ("where", [V, M, M], {"dtypes": {0: flow.int8}}, ["B S0 S0 S0", "S0 S1 S1 S1", "B P P P"]),
    ("gather", [M, (8,)], {"ints": (1,)}, ["B S0 S0", "S0 B P", "S1 B S1", "P B P"]),
    ("gather", [M, (8,)], {"ints": (1,), "axis": 1}, ["B S0 S1", "S1 B P", "S0 B S0", "P B P"]),
    ("gather", [M, (2, 3)], {"ints": (1,)}, ["B S0 S0", "B S1 S1", "S0 B P", "S1 B S2"]),
    ("gather_grad", [(8, 6), (8,)], {"ints": (1,), "axis": 0, "size": 4}, ["S0 S0 P", "S1 B S1", "P B P"]),
    # the last one: nll
    ("dim_gather", [M, (4, 3)], {"ints": (1,), "axis": 1}, ["S0 S0 S0", "B S1 S1", "P B P", "S1 B P"]),
    ("dim_gather_grad", [(4, 3), (4, 3)], {"ints": (1,), "axis": 1, "size": 6},
     ["S0 S0 S0", "S1 S1 P", "P B P"]),
    ("scatter_nd", [(8, 6), (8, 1)], {"ints": (1,), "shape": M}, ["S0 S0 P", "S1 B S1", "P B P"]),
    ("scatter_nd_update", [M, (2, 1), (2, 6)], {"ints": (1,)}, ["S1 B S1 S1", "P B P P"]),
    *[(op, [M], {}, ["S0 S0"]) for op in ("softmax", "log_softmax", "argsort")],
    *[(op, [M, M], {}, ["S0 S0 S0"]) for op in ("softmax_grad", "log_softmax_grad")],
    ("argmax", [M], {"axis": 1}, ["S0 S0"]), ("top_k", [M], {"k": 2}, ["S0 S0"]),
    ("cumsum", [(2, *M)], {"axis": 1}, ["S2 S2"]), ("one_hot", [(4,)], {"ints": (0,), "depth": 5}, ["S0 S0"]),
    ("sparse_softmax_cross_entropy", [(4,), M], {"ints": (0,)}, ["S0 S0 S0 S0"]),
    ("sparse_softmax_cross_entropy_grad", [(4,), (4,), M], {"ints": (1,)}, ["S0 S0 S0 S0"]),
    ("softmax_cross_entropy", [M, M], {}, ["S0 S0 S0 S0"]), ("sigmoid_cross_entropy", [M, M], {}, BOTH),
    ("conv2d", [IMAGE, (8, 6, 3, 3)], {}, ["S0 B S0"]), ("conv2d", [IMAGE, (6, 1, 3, 3)], {"groups": 6},
                                                         ["S0 B S0"]),
    ("conv2d_input_grad", [(4, 8, 3, 3), (8, 6, 3, 3)], {"hw": (5, 5)}, ["S0 B S0"]),
    ("conv2d_weight_grad", [(4, 8, 3, 3), IMAGE], {"kernel": (3, 3)}, ["S0 S0 P"]),
    ("layer_norm", [M, V, V], HEAD, ["S0 B B S0 S0 S0"]),
    ("layer_norm_grad", [M, M, V, (4,), (4,)], {"begin_norm_axis": 1}, ["S0 S0 B S0 S0 S0 P P"]),
    ("batch_norm_infer", [M, V, V, V, V], {"epsilon": 1e-5}, ["S0 B B B B S0"]),
    ("max_pool2d", [IMAGE], POOL, ["S0 S0 S0", "S1 S1 S1"]), ("avg_pool2d", [IMAGE], POOL, ALL),
    ("resize2d", [IMAGE], {"size": (10, 10), "scale": (2.0, 2.0)}, ["S0 S0"]),
    ("dropout", [M, M], {"scale": 2.0, "dtypes": {1: flow.int8}}, BOTH),
    ("diagonal", [M], {}, SUM), ("unfold", [M], {"axis": 1, "size": 2, "step": 2}, ["S0 S0", *SUM]),
]


def derive_signatures(op, shapes, attrs):
    op, attrs = REGISTRY[op], dict(attrs)
    ints, types = attrs.pop("ints", ()), attrs.pop("dtypes", {})
    specs = [Spec(s, flow.int64 if i in ints else types.get(i, flow.float32)) for i, s in enumerate(shapes)]
    return {" ".join(s) for s in signatures(op, specs, op.complete(attrs))}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row[0])
def test_flowedu_has_oneflows_signatures(row):
    op, shapes, attrs, theirs = row
    ours = derive_signatures(op, shapes, attrs)
    assert set(theirs) <= ours and " ".join(["B"] * len(theirs[0].split())) in ours, ours


def test_intentionally_omitted_signatures():
    """OneFlow's batch norm splits the batch, and each device normalizes its rows separately, which is another
    function. flowedu splits the channels.
    """
    ours = derive_signatures("batch_norm", [M, V, V], {"epsilon": 1e-5})
    assert "S0 B B S0 B B" not in ours and "S1 S0 S0 S1 S0 S0" in ours


@pytest.mark.parametrize("op, shapes, attrs, more", [
    ("conv2d", [IMAGE, (8, 6, 3, 3)], {}, {"S1 S1 P", "B S0 S1", "P B P", "B P P"}),
    ("conv2d", [IMAGE, (6, 1, 3, 3)], {"groups": 6}, {"S1 S0 S1"}),
    ("gather_grad", [(8, 6), (8,)], {"ints": (1,), "axis": 0, "size": 4}, {"B B S0"}),
    ("max", [M], {"axis": (0,)}, {"S0 Pmax", "Pmax Pmax"}), ("min", [M], {"axis": (0,)}, {"S0 Pmin"}),
    ("relu", [M], {}, {"Pmax Pmax", "Pmin Pmin"}), ("searchsorted", [V, M], {}, {"S0 B P"}),
    ("where", [M, M, M], {"dtypes": {0: flow.int8}}, {"B P P P"})])
def test_signatures_that_oneflow_lacks(op, shapes, attrs, more):
    assert more <= derive_signatures(op, shapes, attrs)
