"""Errors of ops: their definition and their calls, for core to raise."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.errors import ArgumentError, DTypeError, FlowError, MissingAttributeError, ShapeError
from flowedu.errors.element_types import mixed


def no_interpreter() -> FlowError:
    return FlowError("ops: no interpreter runs calls", expected="an interpreter, or the engine", got="an "
                     "empty stack", fix="import flowedu.core.eager, or: with interpreter(Plain()): ...")


def slice_ranges(shape: Sequence, start: Any, stop: Any, step: Any) -> ShapeError:
    return ShapeError("slice: the ranges do not fit",
                      expected=f"0 <= start <= stop <= size for each axis of {shape}, step of 1 or more",
                      got=f"start={tuple(start)} stop={tuple(stop)} step={tuple(step)}")


def slice_grad_entries(rank: int, shape: Sequence, start: Any, stop: Any, step: Any) -> ShapeError:
    return ShapeError("slice_grad: shape, start, stop and step need one entry for each axis",
                      expected=f"{rank} entries", got=f"{len(shape)}, {len(start)}, {len(stop)}, {len(step)}")


def slice_grad_misfit(expected: Any, got: Any, shape: Sequence, start: Any, stop: Any,
                      step: Any) -> ShapeError:
    return ShapeError("slice_grad: dy does not fit the slice",
                      expected=f"dy of shape {expected}, 0 <= start <= stop <= shape, step of 1 or more",
                      got=f"dy {got}, shape={shape}, start={start}, stop={stop}, step={step}")


def number_of_axes(op: str, name: str, got: int, expected: int, equation: str, shapes: str) -> ShapeError:
    return ShapeError(f"{op}: {name} has {got} axes instead of {expected}", expected=equation, got=shapes,
                      fix=f"reshape {name} to {expected} axes")


def two_sizes(op: str, letter: str, one: int, other: int, equation: str, shapes: str) -> ShapeError:
    return ShapeError(f"{op}: axis {letter} has two sizes, {one} and {other}", expected=equation, got=shapes,
                      fix=f"make the {letter} axes equal, or transpose")


def repeated_axis(op: str, axis: tuple) -> ArgumentError:
    return ArgumentError(f"{op}: an axis is given twice", got=f"axis={axis}", fix="name each axis once")


def repeated_op(name: str) -> ArgumentError:
    return ArgumentError(f"define: an op named {name!r} exists already", fix="choose another name")


def assign_misfit(value: Any, ref: Any) -> ShapeError:
    return ShapeError("assign: value does not fit", expected=f"{ref}", got=f"{value}")


def nothing_to_join() -> ArgumentError:
    return ArgumentError("concat: nothing to join", expected="one value or more", got="none")


def concat_axis(rank: int, axis: Any) -> ShapeError:
    return ShapeError("concat: axis is out of range", expected=f"an axis in [0, {rank - 1}]", got=str(axis),
                      fix="join along an axis the values have, or reshape them first")


def concat_dtypes(xs: Any) -> DTypeError:
    return DTypeError("concat: the element types differ", expected=f"all {xs[0].dtype.name}",
                      got=", ".join(x.dtype.name for x in xs), fix="cast the others")


def concat_misfit(i: int, want: Any, shape: Sequence, axis: Any) -> ShapeError:
    return ShapeError(f"concat: value {i} does not fit the first one", expected=f"({want})", got=str(shape),
                      fix=f"only axis {axis} may differ")


def wrong_parts(name: str, parts: Any) -> ArgumentError:
    return ArgumentError(f"define {name}: the parts of its record do not fit",
                         expected="Kernel or View, Split, Effects, Laws, each once",
                         got=", ".join(type(p).__name__ for p in parts), fix="see flowedu/core/ops/record.py")


def record_is_complete(op: str, name: str, value: Any) -> MissingAttributeError:
    return MissingAttributeError(f"{op}.{name}: a record is complete when it is defined",
                                 expected="no change", got=f"{name} = {value!r}"[:80],
                                 fix="say it in define(...), or define another op")


def wrong_attributes(name: str, signature: Any, missing: Any, unknown: Any) -> ArgumentError:
    return ArgumentError(f"{name}: wrong attributes", expected=signature,
                         got=", ".join([f"no {n}" for n in missing] + [f"unknown {n}" for n in unknown]),
                         fix=f"see help(flow.ops.{name}) for the record")


def not_a_dtype(name: str, types: Any) -> DTypeError:
    return DTypeError(f"{name}: this is no element type", expected="flow.float32, say", got=repr(types)[:60],
                      fix="dtype=flow.float32")


def wrong_number_of_inputs(name: str, signature: Any, specs: Any, inputs: Sequence) -> ArgumentError:
    return ArgumentError(f"{name}: wrong number of inputs", expected=signature, got=str(len(specs)),
                         fix=f"pass {', '.join(inputs)}")


def not_a_mask(cond: Any) -> DTypeError:
    return DTypeError("where: the condition is not a mask", expected="int8, uint8 or bool", got=str(cond),
                      fix="compare first: where(cond != 0, x, y)")


def few_axes(name: str, a_shape: Sequence, b_shape: Sequence) -> ShapeError:
    return ShapeError(f"{name}: a and b need two axes or more", expected="a (m, k), b (k, n)",
                      got=f"a {a_shape}, b {b_shape}", fix="reshape a vector to (1, k) or (k, 1)")


def batch_axes(name: str, a_shape: Sequence, b_shape: Sequence) -> ShapeError:
    return ShapeError(f"{name}: the batch axes do not fit", got=f"a {a_shape}, b {b_shape}",
                      expected="equal numbers of axes, or an n-d a with a matrix b (and no transpose_a)",
                      fix="expand b to a's batch axes")


def number_overflow(what: str, dtype: Any, value: Any) -> DTypeError:
    return DTypeError(f"{what}: value cannot be converted to type {dtype} without overflow",
                      got=f"{value!r}"[:40], expected=f"a number of {dtype}",
                      fix="convert the tensor: x.double() or x.long()")


def bool_difference() -> DTypeError:
    return DTypeError("sub: the - of two bool tensors is not defined", expected="numbers",
                      got="bool and bool", fix="flow.logical_xor(a, b) tells where they differ; ~a negates")


def unreadable_signature(signature: Any) -> ArgumentError:
    return ArgumentError("define: the signature is not Python", expected='"name(a, b, *, attr=0) -> y"',
                         got=repr(signature))


def unknown_gradient_name(signature: Any, name: str) -> ArgumentError:
    return ArgumentError(f"define {signature.name}: a gradient asks for an unknown name", got=name,
                         expected=f"names of {signature.signature}, d<output>, <input>_shape or "
                         "<input>_dtype")


def not_axes(name: str, axis: Any) -> ArgumentError:
    return ArgumentError(f"{name}: axis is not a tuple of integers", expected="axis=(0,) or axis=(0, 2)",
                         got=f"axis={axis!r}", fix=f"write axis=({axis},)" if isinstance(axis, int) else "")


def axis_out_of_range(name: str, x: Any, axis: Any) -> ShapeError:
    return ShapeError(f"{name}: axis is out of range", expected=f"axes in [0, {x.ndim - 1}] of x {x.shape}",
                      got=f"axis={axis}", fix="count axes from the front: the last one is x.ndim - 1")


def empty_reduction(name: str, shape: Sequence, axis: Any) -> ShapeError:
    return ShapeError(f"{name}: there is no {name} of zero elements", got=f"x {shape}, axis={axis}",
                      expected="reduced axes of size 1 or more", fix="check that the input is not empty")


def update_inputs(name: str, xs: Any, group: Any, size: int) -> ArgumentError:
    return ArgumentError(f"{name}: wrong number of inputs", got=str(len(xs)), expected="lr, step, then "
                         f"({', '.join(group)}) for each parameter", fix=f"pass {size} values per parameter")


def lr_and_step(name: str, xs: Any) -> DTypeError:
    return DTypeError(f"{name}: lr and step do not fit", expected="one float, one int64",
                      got=f"{xs[0]}, {xs[1]}", fix="pass lr as float32[1] and step as int64[1]")


def update_dtype(name: str, xs: Any, i: int) -> DTypeError:
    return DTypeError(f"{name}: no kernel for this element type", expected="a floating type",
                      got=xs[i].dtype.name, fix="keep parameters in float32")


def reshape_size(x: Any, shape: Sequence) -> ShapeError:
    return ShapeError("reshape: the number of elements changes", expected=f"a shape of {x.size} elements",
                      got=f"{tuple(shape)} from {x.shape}",
                      fix="use -1 for one axis and let it be worked out")


def not_a_permutation(ndim: int, perm: Any) -> ArgumentError:
    return ArgumentError("transpose: perm is not a permutation of the axes",
                         expected=f"each of 0..{ndim - 1} once", got=str(tuple(perm)),
                         fix=f"for a matrix: perm={tuple(reversed(range(ndim)))}")


def expand_misfit(shape: Sequence, wanted: Sequence) -> ShapeError:
    return ShapeError("expand: the shape cannot be broadcast to the new one",
                      expected="axes that are equal, or 1 in x", got=f"{shape} to {tuple(wanted)}")


def no_array_form(dtype: Any) -> DTypeError:
    return DTypeError(f"cast: {dtype!r} has no array form", expected="a numeric dtype", got=repr(dtype))


def not_a_number(what: str, value: Any, dtype: Any, low: int, high: int, whole: Any) -> DTypeError:
    return DTypeError(f"{what}: {value!r} is not a number of {dtype}",
                      got=repr(value), expected=f"integers in [{low}, {high}]",
                      fix=f"use flow.{('int64' if whole else 'float32')}: flow.cast converts a blob")


def mixed_dtypes(name: str, a: Any, b: Any) -> DTypeError:
    return DTypeError(f"{name}: expected a and b to have the same dtype", expected="equal types",
                      got=f"a {a}, b {b}", fix=mixed("convert one with flow.cast (or .to)", a.dtype, b.dtype))


def contracted_axes(name: str, a_shape: Sequence, b_shape: Sequence, left: Sequence, right: Sequence,
                    equation: str, transpose_b: bool) -> ShapeError:
    """Return the error of matmul for matrices `left` (.., k) and `right` (k, ..) that disagree about k."""
    shapes = " and ".join("x".join(map(str, shape)) for shape in (left, right))
    fix = "make the k axes equal: transpose or reshape one of the two"
    if right[-1] == left[-1]:
        fix = f"transpose_b={not transpose_b}, or the transpose of b, makes them fit"
    return ShapeError(f"{name}: axis k has two sizes, {left[-1]} and {right[-2]}: mat1 and mat2 shapes "
                      f"cannot be multiplied ({shapes})", expected=equation, got=f"a {a_shape}, b {b_shape}",
                      fix=fix)


def update_misfit(name: str, member: str, number: int, dtype: Any, shape: Sequence, got: Any,
                  group: Sequence) -> ShapeError:
    """Return the error for an operand of parameter `number` with another shape or dtype than its weight."""
    scalars = ", and one number to names with _t" * any(n.endswith("_t") for n in group)
    return ShapeError(f"{name}: {member} of parameter {number} does not fit its weight",
                      expected=f"{dtype.name}{list(shape)}", got=str(got),
                      fix="give all arrays of a group one shape and dtype" + scalars)


def update_attribute(name: str, attr: str, parameters: int, values: Sequence) -> ArgumentError:
    return ArgumentError(f"{name}: {attr} does not fit", expected=f"{parameters} numbers, one or none",
                         got=str(len(values)), fix="give one number per parameter, or one for all")
