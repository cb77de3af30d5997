"""Translations of records to ONNX (opset 18), one function per record.

Elementwise ops are translated from their formulas. A rule takes the Builder, the node's attributes by name,
its input Specs, and the names of its inputs in the ONNX graph. It returns the name of the result, or a list
of names, with None for a result that it does not write.
"""
from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.values import dtype as dt
from flowedu.errors import UnsupportedError
from flowedu.nn.graph import unroll  # noqa: F401  (its record, recompute, has a rule below)

OPSET = 18
RULES: dict[Op, Callable] = {}


def rule(*names: str):
    def enter(f):
        RULES.update((REGISTRY[n], f) for n in names)
        return f
    return enter


# ---- elementwise: tile -> ONNX op of the same operands
PLAIN = {n: n.capitalize() for n in (
    "add sub mul div neg pow abs sign relu exp log sqrt reciprocal sin cos tan asin acos atan sinh cosh tanh "
    "asinh acosh atanh erf ceil floor round sigmoid softplus").split()} | {"maximum": "Max", "minimum": "Min"}
TESTS = {"equal": "Equal", "eq": "Equal", "less": "Less", "lt": "Less", "less_equal": "LessOrEqual",
         "le": "LessOrEqual",
         "greater": "Greater", "gt": "Greater", "greater_equal": "GreaterOrEqual", "ge": "GreaterOrEqual"}
BOOLEAN = {"logical_and": "And", "both": "And", "logical_or": "Or", "either": "Or", "logical_xor": "Xor",
           "differ": "Xor"}
BITS = {"bit_and": "BitwiseAnd", "bit_or": "BitwiseOr", "bit_xor": "BitwiseXor"}


def tile(b, name: str, x: list[str], spec) -> str:
    """Translate one instruction of a formula. spec: Spec of the operands."""
    def one(value):
        return b.number(value, spec.dtype)

    if name in PLAIN:
        return b.add(PLAIN[name], [b.as_number(v, spec.dtype) for v in x])
    # ONNX cannot order booleans
    if name in TESTS and TESTS[name] != "Equal" and spec.dtype.name == "bool":
        x = [b.cast(v, dt.int32) for v in x]
    if name in TESTS:
        return b.add(TESTS[name], x, boolean=True)
    if name in ("not_equal", "ne"):
        return b.add("Not", [b.add("Equal", x, boolean=True)], boolean=True)
    if name in BOOLEAN:
        return b.add(BOOLEAN[name], [b.as_bool(v) for v in x], boolean=True)
    if name == "where":
        return b.add("Where", [b.as_bool(x[0]), *x[1:]])
    if name == "square":
        return b.add("Mul", [x[0], x[0]])
    if name == "squared_difference":
        return tile(b, "square", [b.add("Sub", x)], spec)
    if name == "rsqrt":
        return b.add("Reciprocal", [b.add("Sqrt", x)])
    if name == "expm1":
        return b.add("Sub", [b.add("Exp", x), one(1)])
    if name == "log1p":
        return b.add("Log", [b.add("Add", [x[0], one(1)])])
    if name == "erfc":
        return b.add("Sub", [one(1), b.add("Erf", x)])
    if name == "trunc":
        return b.add("Mul", [b.add("Sign", x), b.add("Floor", [b.add("Abs", x)])])
    if name == "exp2":
        return b.add("Pow", [one(2), x[0]])
    if name in ("log2", "log10"):
        return b.add("Mul", [b.add("Log", x), one(1 / math.log(2 if name == "log2" else 10))])
    if name == "gelu":
        bell = b.add("Add", [b.add("Erf", [b.add("Mul", [x[0], one(math.sqrt(0.5))])]), one(1)])
        return b.add("Mul", [b.add("Mul", [x[0], bell]), one(0.5)])
    if name == "softsign":
        return b.add("Softsign", x)
    if name in GATES:
        return b.add("Mul", [x[0], GATES[name](b, x[0], one)])
    if name == "hypot":
        return hypot(b, x[0], x[1], one)
    if name == "relu_grad":
        return b.add("Where", [b.add("Greater", [x[1], one(0)], boolean=True), x[0], one(0)])
    if name == "fmod":
        return b.add("Mod", x, fmod=1)
    if name in ("floordiv", "mod") and spec.dtype.is_floating_point:
        whole = b.add("Floor", [b.add("Div", x)])
        return whole if name == "floordiv" else b.add("Sub", [x[0], b.add("Mul", [whole, x[1]])])
    if name in ("floordiv", "mod"):         # as in ONNX, an integer mod has the sign of the divisor
        rest = b.add("Mod", x)
        return rest if name == "mod" else b.add("Div", [b.add("Sub", [x[0], rest]), x[1]])
    if name in BITS and spec.dtype.name != "bool":
        return b.add(BITS[name], x)
    raise UnsupportedError(f"onnx.export: {name} is not written yet", at="")


def sigmoid_of(b, x: str, rate: str) -> str:
    return b.add("Sigmoid", [b.add("Mul", [x, rate])])


def gelu_tanh_gate(b, x: str, one) -> str:
    cube = b.add("Mul", [b.add("Mul", [b.add("Mul", [x, x]), x]), one(0.044715)])
    return sigmoid_of(b, b.add("Add", [x, cube]), one(2 * math.sqrt(2 / math.pi)))


def hardswish_gate(b, x: str, one) -> str:
    above = b.add("Max", [b.add("Add", [x, one(3)]), one(0)])
    return b.add("Div", [b.add("Min", [above, one(6)]), one(6)])


# activations x * gate(x)
GATES = {"swish": lambda b, x, one: b.add("Sigmoid", [x]),
         "quick_gelu": lambda b, x, one: sigmoid_of(b, x, one(1.702)),
         "gelu_tanh": gelu_tanh_gate, "mish": lambda b, x, one: b.add("Tanh", [b.add("Softplus", [x])]),
         "hardswish": hardswish_gate}


def hypot(b, x: str, y: str, one) -> str:
    """Return sqrt(x * x + y * y), scaled by the larger magnitude where that is positive and finite."""
    size = b.add("Max", [b.add("Abs", [x]), b.add("Abs", [y])])
    above, below = (b.add(n, [size, one(v)], boolean=True) for n, v in (("Greater", 0), ("Less", math.inf)))
    usual = b.add("And", [above, below], boolean=True)
    size = b.add("Where", [usual, size, one(1)])
    ratios = [b.add("Div", [v, size]) for v in (x, y)]
    return b.add("Mul", [b.add("Sqrt", [b.add("Add", [b.add("Mul", [r, r]) for r in ratios])]), size])


def elementwise(b, op, specs, names: list[str]) -> str:
    """Translate a formula, instruction by instruction."""
    program, spec = op.program, specs[-1] if op is REGISTRY["where"] else specs[0]
    slots = dict(enumerate(names)) | {i: b.number(v, spec.dtype) for i, v in program.consts.items()}
    for name, out, operands in program.instrs:
        slots[out] = tile(b, name, [slots[o] for o in operands], spec)
    return slots[program.outs[0]]


def filled_with(b, x: str) -> float | None:
    """Return the number that all elements of the constant `x` have, or None for any other `x`."""
    node = next((n for n in b.nodes if x in n.output and n.op_type == "Expand"), None)
    number = None if node is None else next((t for t in b.numbers if t.name == node.input[0]), None)
    return None if number is None else float(b.onnx.numpy_helper.to_array(number))


@rule("bias_add")
def bias_add(b, a, s, x):
    shape = [1] * s[0].ndim
    shape[a["axis"]] = s[1].size
    return b.add("Add", [x[0], b.reshaped(x[1], shape)])


# ---- shapes
# Value checks are not exported.
@rule("identity", "contiguous", "distribute_hint", "recompute", "within", "require")
def same(b, a, s, x):
    return x[0]


@rule("reshape")
def reshape(b, a, s, x):
    return b.reshaped(x[0], a["shape"])


@rule("transpose")
def transpose(b, a, s, x):
    return b.add("Transpose", x, perm=list(a["perm"]))


@rule("expand")
def expand(b, a, s, x):
    return b.add("Expand", [x[0], b.ints(a["shape"])])


@rule("slice")
def slice_(b, a, s, x):
    axes = range(s[0].ndim)
    return b.add("Slice", [x[0], *(b.ints(v) for v in (a["start"], a["stop"], axes, a["step"]))])


@rule("slice_grad")
def padded(b, a, s, x):
    if any(n != 1 for n in a["step"]):
        raise UnsupportedError("onnx.export: slice_grad with steps", at="")
    return b.add("Pad", [x[0], b.ints([*a["start"], *(n - e for n, e in zip(a["shape"], a["stop"]))])])


@rule("concat")
def concat(b, a, s, x):
    return b.add("Concat", x, axis=a["axis"])


@rule("cast")
def cast(b, a, s, x):
    return b.cast(b.as_number(x[0], s[0].dtype), a["dtype"])


@rule("constant")
def constant(b, a, s, x):
    shape, value = tuple(a["shape"]), b.number(a["value"], a["dtype"])
    return b.add("Expand", [value, b.ints(shape)]) if shape else value


@rule("range")
def range_(b, a, s, x):
    return b.array((a["start"] + a["step"] * np.arange(a["size"])).astype(a["dtype"].numpy))


# ---- random numbers: the runtime draws new ones in each run
def draw(b, kind: str, shape, dtype, **attrs) -> str:
    y = b.add(kind, [], shape=list(shape) or [1], dtype=b.type(dtype.name), **attrs)
    return y if shape else b.reshaped(y, ())


@rule("random_uniform")
def random_uniform(b, a, s, x):
    return draw(b, "RandomUniform", a["shape"], a["dtype"], low=float(a["low"]), high=float(a["high"]))


@rule("random_normal")
def random_normal(b, a, s, x):
    return draw(b, "RandomNormal", a["shape"], a["dtype"], mean=float(a["mean"]), scale=float(a["std"]))


@rule("random_randint")
def random_randint(b, a, s, x):
    y = draw(b, "RandomUniform", a["shape"], b.dtypes["float64"], low=float(a["low"]), high=float(a["high"]))
    return b.cast(b.add("Floor", [y]), b.dtypes["int64"])


# ---- indexing
@rule("gather")
def gather(b, a, s, x):
    return b.add("Gather", x, axis=a["axis"])


@rule("dim_gather")
def dim_gather(b, a, s, x):
    return b.add("GatherElements", x, axis=a["axis"])


@rule("gather_nd")
def gather_nd(b, a, s, x):
    return b.add("GatherND", [x[0], b.add("Cast", [x[1]], to=b.type("int64"))])


@rule("scatter_nd_update")
def scatter_nd_update(b, a, s, x):
    return b.add("ScatterND", [x[0], b.add("Cast", [x[1]], to=b.type("int64")), x[2]])


@rule("one_hot")
def one_hot(b, a, s, x):
    is_hit = b.add("Equal", [b.reshaped(b.cast(x[0], b.dtypes["int64"]), (*s[0].shape, 1)),
                             b.ints(range(a["depth"]))])
    return b.add("Where", [is_hit, b.number(a["on_value"], b.out.dtype),
                           b.number(a["off_value"], b.out.dtype)])


@rule("argsort", "top_k")
def places(b, a, s, x):
    k = a.get("k", s[0].shape[-1])
    largest = int(a.get("descending", True))
    return b.cast(b.add("TopK", [x[0], b.ints([k])], 2, axis=-1, largest=largest, sorted=1)[1],
                  b.dtypes["int32"])


@rule("argmax")
def argmax(b, a, s, x):
    return b.cast(b.add("ArgMax", x, axis=a["axis"], keepdims=0), b.out.dtype)


@rule("cumsum")
def cumsum(b, a, s, x):
    return b.add("CumSum", [x[0], b.array(np.array(a["axis"]))], reverse=int(a["backwards"]))


# ---- reductions, products
@rule("sum", "max", "min", "prod")
def reduce(b, a, s, x):
    if not a["axis"]:
        return x[0]
    name = {"sum": "ReduceSum", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd"}[b.op]
    return b.add(name, [x[0], b.ints(a["axis"])], keepdims=int(a["keepdims"]))


@rule("det")
def det(b, a, s, x):
    return b.add("Det", x)


@rule("matmul")
def matmul(b, a, s, x):
    def transposed(name, spec, flag):
        perm = [*range(spec.ndim - 2), spec.ndim - 1, spec.ndim - 2]
        return b.add("Transpose", [name], perm=perm) if flag else name
    return b.add("MatMul", [transposed(x[0], s[0], a["transpose_a"]),
                            transposed(x[1], s[1], a["transpose_b"])])


# ---- layers
def _pads(p) -> list[int]:
    return [p[0], p[2], p[1], p[3]]                      # from top, bottom, left, right


@rule("conv2d")
def conv2d(b, a, s, x):
    return b.add("Conv", x, strides=list(a["strides"]), pads=_pads(a["pads"]), dilations=list(a["dilations"]),
                 group=a["groups"])


@rule("conv2d_input_grad")
def conv_transpose(b, a, s, x):
    p, k = _pads(a["pads"]), s[1].shape[2:]
    out = [n - ((s[0].shape[2 + i] - 1) * a["strides"][i] + (k[i] - 1) * a["dilations"][i] + 1
                - p[i] - p[i + 2])
           for i, n in enumerate(a["hw"])]
    return b.add("ConvTranspose", x, strides=list(a["strides"]), pads=p, dilations=list(a["dilations"]),
                 group=a["groups"], output_padding=out)


@rule("max_pool2d")
def max_pool(b, a, s, x):
    return [b.add("MaxPool", x, kernel_shape=list(a["ksize"]), strides=list(a["strides"]),
                  pads=_pads(a["pads"])), None]


@rule("avg_pool2d")
def avg_pool(b, a, s, x):
    if any(p >= k for p, k in zip(a["pads"], (a["ksize"][0],) * 2 + (a["ksize"][1],) * 2)):
        raise UnsupportedError("onnx.export: average pooling with a padding as large as its window", at="")
    return b.add("AveragePool", x, kernel_shape=list(a["ksize"]), strides=list(a["strides"]),
                 pads=_pads(a["pads"]), count_include_pad=0)


@rule("batch_norm_infer")
def batch_norm(b, a, s, x):
    axis = a["axis"] % s[0].ndim
    if axis == 1:
        return b.add("BatchNormalization", x, epsilon=a["epsilon"])
    shape = [-1 if i == axis else 1 for i in range(s[0].ndim)]
    gamma, beta = (b.reshaped(v, shape) for v in x[1:3])
    mean, var = (b.reshaped(v, shape) for v in x[3:])
    deviation = b.add("Sqrt", [b.add("Add", [var, b.number(a["epsilon"], s[0].dtype)])])
    return b.add("Add", [b.add("Mul", [b.add("Div", [b.add("Sub", [x[0], mean]), deviation]), gamma]), beta])


@rule("batch_norm")
def batch_statistics(b, a, s, x):
    """Normalize with batch statistics. export() rejects a layer in training that has running statistics."""
    rest, shape = [i for i in range(s[0].ndim) if i != a["axis"] % s[0].ndim], list(s[0].shape)
    for i in rest:
        shape[i] = 1
    mean = b.add("ReduceMean", [x[0], b.ints(rest)], keepdims=1)
    gap = b.add("Sub", [x[0], mean])
    var = b.add("ReduceMean", [b.add("Mul", [gap, gap]), b.ints(rest)], keepdims=1)
    deviation = b.add("Sqrt", [b.add("Add", [var, b.number(a["epsilon"], s[0].dtype)])])
    gamma, beta = (b.reshaped(v, shape) for v in x[1:])
    y = b.add("Add", [b.add("Mul", [b.add("Div", [gap, deviation]), gamma]), beta])
    return [y, b.reshaped(mean, s[1].shape), b.reshaped(var, s[1].shape)]


@rule("layer_norm")
def layer_norm(b, a, s, x):
    y = b.add("LayerNormalization", x, axis=a["begin_norm_axis"], epsilon=a["epsilon"])
    return [y, None, None]


@rule("softmax")
def softmax(b, a, s, x):
    return b.add("Softmax", x, axis=a["axis"])


@rule("log_softmax")
def log_softmax(b, a, s, x):
    return b.add("LogSoftmax", x, axis=a["axis"])


@rule("sparse_softmax_cross_entropy")
def cross_entropy(b, a, s, x):
    labels, ignored = x[0], None
    of, logits = s
    if a["ignore_index"] is not None:
        ignored = b.add("Equal", [labels, b.number(a["ignore_index"], of.dtype)])
        labels = b.add("Where", [ignored, b.number(0, of.dtype), labels])
    logs = b.add("LogSoftmax", [x[1]], axis=-1)
    chosen = b.add("GatherElements", [logs, b.reshaped(labels, [*of.shape, 1])], axis=-1)
    loss = b.add("Neg", [b.reshaped(chosen, of.shape)])
    if ignored is not None:
        loss = b.add("Where", [ignored, b.number(0, logits.dtype), loss])
    return [loss, b.add("Softmax", [x[1]], axis=-1)]


@rule("dropout")
def dropout(b, a, s, x):
    return b.add("Mul", [b.add("Mul", [x[0], b.cast(x[1], s[0].dtype)]), b.number(a["scale"], s[0].dtype)])


@rule("resize2d")
def resize(b, a, s, x):
    near = a["mode"] == "nearest"
    how = "align_corners" if a["align_corners"] else "half_pixel"
    if near:
        how = "asymmetric"
    exact = (all(n * f == out for n, f, out in zip(s[0].shape[2:], a["scale"], a["size"]))
             or how == "align_corners")
    fits = all(int(n * f) == out for n, f, out in zip(s[0].shape[2:], a["scale"], a["size"]))
    if not exact and not fits:
        raise UnsupportedError("onnx.export: resize2d whose size and scale contradict each other", at="")
    sizes = b.ints([*s[0].shape[:2], *a["size"]]) if exact else ""
    scales = "" if exact else b.array(np.array([1, 1, *a["scale"]], np.float32))
    return b.add("Resize", [x[0], "", scales, *([sizes] if exact else [])], mode="nearest" if near
                 else "linear", coordinate_transformation_mode=how, nearest_mode="floor")
