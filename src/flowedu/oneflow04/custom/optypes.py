"""Op types accepted by user_op_builder, with OneFlow's names of arguments and attributes.

Each type has one line with a signature, such as "in, b? -> out", and a function of the input values. An input
`xs*` takes any number of values, and an input `b?` is optional. Every record of the registry, including
custom ops, is also a type under its own names.
"""
from __future__ import annotations

import keyword
from collections.abc import Callable
from typing import Any, NamedTuple

from flowedu import nn  # noqa: F401  (data, detection, image: their records are types too)
from flowedu.core.ops.concat import concat
from flowedu.core.ops.concat import slice as slice_op
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.ops.elementwise import mul, neg
from flowedu.core.ops.elementwise import round as round_op
from flowedu.core.ops.record import REQUIRED
from flowedu.core.ops.view import constant, identity
from flowedu.errors import JobBuildAndInferError, ShapeError
from flowedu.errors.nearest import nearest
from flowedu.oneflow04 import math
from flowedu.oneflow04.functions import shapes_and_constants
from flowedu.oneflow04.functions.axes import normal_axis
from flowedu.oneflow04.image import detection, image  # noqa: F401
from flowedu.ops.bias import bias_add
from flowedu.ops.host import HOST
from flowedu.ops.index import gather
from flowedu.ops.random import dropout, random_mask_like
from flowedu.ops.softmax import softmax, softmax_cross_entropy, sparse_softmax_cross_entropy


class OpType(NamedTuple):
    """An op type. `run(*inputs, **attrs)` takes one value per input and returns one per output.

    The value of an input with `*` is a tuple. The value of a missing optional input is None.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: dict[str, Any]
    run: Callable


TYPES: dict[str, OpType] = {}


def _type(name: str, arguments: str, run: Callable, **attrs) -> None:
    ins, outs = ([n.strip() for n in side.split(",") if n.strip()] for side in arguments.split("->"))
    TYPES[name] = OpType(tuple(ins), tuple(outs), attrs, run)


def _body(f: Any) -> Callable:
    """Return the function inside `front`, which takes values."""
    return f.__wrapped__


# ---- elementwise
for _name in ("abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp expm1 floor lgamma log log1p "
              "log_sigmoid reciprocal reciprocal_no_nan rsqrt sign sin sinh softplus sqrt square tan "
              "tanh").split():
    _type(_name, "x -> y", REGISTRY[_name])
_type("negative", "x -> y", neg)
_type("rint", "x -> y", round_op)
_type("round", "x -> y", round_op)
for _name in ("relu", "sigmoid", "gelu"):
    _type(_name, "in -> out", REGISTRY[_name])
for _name in ("hardsigmoid", "hardswish", "mish"):
    _type(_name, "in -> out" if _name != "mish" else "x -> y", REGISTRY[_name])
_type("leaky_relu", "x -> y", _body(nn.leaky_relu), alpha=REQUIRED)
_type("elu", "in -> out", _body(nn.elu), alpha=1.0)
_type("hardtanh", "in -> out", _body(nn.hardtanh), min_val=-1.0, max_val=1.0)
for _name in ("pow", "atan2", "floordiv", "xdivy", "xlogy"):
    _type(_name, "x, y -> z", REGISTRY[_name])
for _name, _record in {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "minimum": "minimum",
                       "maximum": "maximum",
                       "floor_mod": "mod", "equal": "equal", "not_equal": "not_equal", "greater": "greater",
                       "greater_equal": "greater_equal", "less": "less", "less_equal": "less_equal",
                       "logical_and": "logical_and"}.items():
    _type(f"broadcast_{_name}", "x, y -> z", REGISTRY[_record])
_type("multiply", "x, y -> out", mul)
_type("add_n", "in* -> out", _body(math.add_n))
_type("where", "condition, x, y -> out", _body(shapes_and_constants.where))
_type("cast", "in -> out", _body(shapes_and_constants.cast), dtype=REQUIRED)
_type("identity", "in -> out", identity)


def _operand(has_int_operand, has_float_operand, int_operand, float_operand):
    return int(int_operand) if has_int_operand else float(float_operand)


_scalar = dict(has_int_operand=False, has_float_operand=False, int_operand=0, float_operand=0.0)
_type("scalar_add", "in -> out", lambda x, **a: x + _operand(**a), **_scalar)
_type("scalar_mul", "in -> out", lambda x, **a: x * _operand(**a), **_scalar)


# ---- shapes
_type("reshape", "in -> out", _body(shapes_and_constants.reshape), shape=REQUIRED)
_type("transpose", "input -> output", _body(shapes_and_constants.transpose), perm=REQUIRED)
_type("expand_dims", "in -> out", _body(shapes_and_constants.expand_dims), axis=REQUIRED)
_type("squeeze", "in -> out", lambda x, axes: _body(shapes_and_constants.squeeze)(x, axes), axes=REQUIRED)
_type("flatten", "in -> out", _body(shapes_and_constants.flatten), start_dim=0, end_dim=-1)
_type("concat", "in* -> out", lambda xs, axis, max_dim_size: concat(
      *xs, axis=normal_axis(axis, xs[0].ndim, "concat")), axis=REQUIRED, max_dim_size=0)
_type("slice", "x -> y", slice_op, start=REQUIRED, stop=REQUIRED, step=REQUIRED)
_type("gather", "in, indices -> out", gather, axis=0)
_type("zero_like", "like -> out", lambda x: constant(shape=x.shape, value=0, dtype=x.dtype))
_type("ones_like", "like -> out", lambda x: constant(shape=x.shape, value=1, dtype=x.dtype))
_type("constant", "-> out", lambda floating_value, integer_value, is_floating_value, dtype, shape: constant(
      shape=shape, value=floating_value if is_floating_value else integer_value, dtype=dtype),
      floating_value=0.0, integer_value=0, is_floating_value=True, dtype=REQUIRED, shape=REQUIRED)

# ---- products, layers
for _name in ("matmul", "batch_matmul"):
    _type(_name, "a, b -> out", _body(math.matmul), transpose_a=False, transpose_b=False, alpha=1.0)
_type("bias_add", "a, b -> out", bias_add, axis=REQUIRED)
_LAYOUT = {"channels_first": "NCHW", "channels_last": "NHWC"}


def _conv2d(x, weight, bias, filters, padding_before, data_format, kernel_size, strides, dilation_rate,
            groups):
    layout = _LAYOUT.get(data_format, data_format)
    around = [(p, p) for p in padding_before]
    pads = [(0, 0), *([(0, 0), *around] if layout == "NCHW" else [*around, (0, 0)])]
    if filters not in (None, weight.shape[0]):
        raise ShapeError("user_op_builder: conv2d's filters is not the first axis of weight",
                         expected=str(weight.shape[0]),
                         got=str(filters), fix="make the attribute filters the number of filters in weight")
    y = _body(nn.conv2d)(x, weight, strides, pads, layout, dilation_rate, groups)
    if bias is None:
        return y
    return bias_add(y, bias, axis=1 if layout == "NCHW" else 3)


_type("conv2d", "in, weight, bias? -> out", _conv2d, filters=None, padding_before=(0, 0),
      data_format="channels_first", kernel_size=None, strides=(1, 1), dilation_rate=(1, 1), groups=1)


def _pool(f: Callable) -> Callable:
    def run(x, padding, padding_before, padding_after, data_format, pool_size, strides, ceil_mode):
        layout = _LAYOUT.get(data_format, data_format)
        if padding == "customized":
            around = list(zip(padding_before, padding_after))
            padding = [(0, 0), *([(0, 0), *around] if layout == "NCHW" else [*around, (0, 0)])]
        return _body(f)(x, pool_size, strides, padding.upper() if isinstance(padding, str) else padding,
                        layout, ceil_mode)
    return run


for _name, _f in (("max_pool_2d", nn.max_pool2d), ("avg_pool_2d", nn.avg_pool2d)):
    _type(_name, "x -> y", _pool(_f), padding="valid", padding_before=(0, 0), padding_after=(0, 0),
          data_format="channels_first", pool_size=REQUIRED, strides=REQUIRED, ceil_mode=False)
_type("dropout", "in, mask -> out", dropout, scale=REQUIRED)
_type("random_mask_like", "like -> out", lambda x, rate, seed: random_mask_like(x, rate=rate, seed=seed),
      rate=REQUIRED, seed=0)

# ---- reductions, losses
for _name in ("sum", "max", "min", "prod", "any", "all"):
    _type(f"reduce_{_name}", "input_tensor -> output_tensor", _body(getattr(math, f"reduce_{_name}")),
          axis=REQUIRED, keepdims=False)
_type("argmax", "in -> out", lambda x: _body(math.argmax)(x))
_type("softmax", "in -> out", softmax)
_type("sparse_softmax_cross_entropy", "prediction, label -> prob, out",
      lambda x, label, depth: sparse_softmax_cross_entropy(label, x)[::-1], depth=0)
_type("softmax_cross_entropy", "prediction, label -> prob, out",
      lambda x, label: softmax_cross_entropy(label, x)[::-1])


# ---- lookup
def op_type(name: str) -> OpType:
    """Return the type with this name. Raise JobBuildAndInferError if it is unknown."""
    record = REGISTRY.get(name)
    if record is not None and record.role is not None:           # a custom op
        return of_record(record)
    if name in TYPES:
        return TYPES[name]
    record = record or HOST.get(name)
    if record is None:
        close = nearest(str(name), sorted({*TYPES, *REGISTRY, *HOST}))
        raise JobBuildAndInferError(f"user_op_builder: there is no op type {name!r}", got=repr(name),
                                    expected="a type of OneFlow that flowedu knows, or a custom op"
                                    + (f"; the nearest is {close!r}" if close else ""),
                                    fix=f"flow.custom_op({name!r}, forward, backward) makes one of NumPy "
                                    f"functions")
    return of_record(record)


def of_record(op: Op) -> OpType:
    """Return a record as an op type, under its own names."""
    def word(n: str) -> str:
        return n[:-1] if n.endswith("_") and keyword.iskeyword(n[:-1]) else n

    run = (lambda xs, **attrs: op(*xs, **attrs)) if op.variadic else op
    return OpType(tuple(map(word, op.inputs)) if not op.variadic else (f"{op.inputs[0]}*",),
                  tuple(map(word, op.outputs)), dict(op.attrs), run)
