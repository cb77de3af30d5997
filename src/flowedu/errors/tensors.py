"""Errors of tensors: conversion, attributes, writes, and backward, for core to raise."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.errors import (
    ArgumentError,
    CallError,
    DeviceError,
    DTypeError,
    FlowError,
    GradientError,
    LazyTensorError,
    ShapeError,
)


def not_an_array(a: Any) -> CallError:
    return CallError("from_numpy: expected an ndarray", expected="numpy.ndarray", got=type(a).__name__,
                     fix="flow.tensor(data) takes numbers and lists")


def negative_strides(strides: Any) -> ShapeError:
    return ShapeError("from_numpy: At least one stride in the given numpy array is negative, and "
                      "tensors with negative strides are not supported", got=str(strides),
                      fix="flow.from_numpy(a.copy())")


def foreign_byte_order(dtype: Any) -> ArgumentError:
    return ArgumentError("from_numpy: the array has not this machine's byte order", got=str(dtype),
                         fix="a.astype(a.dtype.newbyteorder('='))")


def too_many_axes(name: str, most: int, shape: Sequence) -> ShapeError:
    return ShapeError(f"{name}: the result has too many axes", expected=f"at most {most}", got=str(shape))


def large_attribute(name: str, n: int, most: int) -> ArgumentError:
    return ArgumentError(f"{name}: an attribute is too large", got=str(n), expected="integers in "
                         f"[-2**{most}, 2**{most})", fix="check strides, padding and sizes")


def large_number(name: str, reals: Any) -> ArgumentError:
    return ArgumentError(f"{name}: a number is too large for a float64", expected="numbers below 1.8e308",
                         got=f"{max(reals, key=abs)}"[:60], fix="use a smaller number")


def empty_slot(name: str, expected: Any, module: Any) -> FlowError:
    return FlowError(f"ops: the slot {name!r} is empty", expected=expected, got="None",
                     fix=f"import {module}")


def unknown_slot(name: str, hooks: Any) -> ArgumentError:
    return ArgumentError(f"connect: there is no slot {name!r}", expected=", ".join(hooks), got=name,
                         fix="a slot is a line of the table in core/eager/hooks.pxi")


def read_only(what: str) -> ArgumentError:
    return ArgumentError(f"{what}: the array this tensor was made from is read-only",
                         expected="memory that may be written", fix="write into a copy: x = x.clone()")


def mixed_devices(name: str, names: Sequence, devices: Any) -> DeviceError:
    return DeviceError(f"{name}: Expected all tensors to be on the same device",
                       expected="one device (a 0-d tensor on the CPU may join)",
                       got=", ".join([f"{n} is on {w}" for n, w in zip(names, devices)]),
                       fix=f'x.to("{max(devices)}") brings a tensor there')


def lazy_tensor(why: Any) -> LazyTensorError:
    return LazyTensorError("this tensor is lazy: it stands for a value of an nn.Graph that is being built, "
                           "or was built", got=why, expected="an eager tensor",
                           fix="return it from build() and look at what the graph's call returns")


def not_a_leaf() -> GradientError:
    return GradientError("you can only change requires_grad flags of leaf variables",
                         fix="use .detach() first")


def not_floating(dtype: Any) -> GradientError:
    return GradientError("only Tensors of floating point can require gradients", got=repr(dtype),
                         fix="make it of a floating dtype: x.float()")


def lazy_access(access: str, spec: Any) -> LazyTensorError:
    return LazyTensorError(f"tensor.{access} is not allowed to be called in nn.Graph.build(*args) "
                           "or be called by lazy tensor.", expected="an eager tensor", got=f"a lazy {spec}",
                           fix="return it from build() and look at what the graph's call returns")


def on_gpu(device: int) -> DTypeError:
    return DTypeError(f"numpy: can't convert cuda:{device - 1} device type tensor to numpy. Use Tensor.cpu() "
                      "to copy the tensor to host memory first", expected="a tensor on the CPU",
                      got=f"cuda:{device - 1}", fix="x.cpu().numpy()")


def lazy_item() -> LazyTensorError:
    return LazyTensorError("item: Only eager scalar tensor support GetItem.", got="a lazy tensor",
                           expected="an eager tensor",
                           fix="return it from build() and call item() on the result")


def item_of_many(numel: Any, shape: Sequence) -> ShapeError:
    return ShapeError("item: can only convert a tensor of size 1 to a Python scalar", expected="one element",
                      got=f"{numel} elements, shape {tuple(shape)}",
                      fix="x.tolist() for all, x[0].item() for one, x.sum().item() for their sum")


def not_an_index(name: str, shape: Sequence) -> DTypeError:
    return DTypeError("only integer tensors of a single element can be converted to an index",
                      got=f"{name}{list(shape)}")


def ambiguous_bool(numel: Any, shape: Sequence) -> ShapeError:
    return ShapeError("bool value of Tensor with more than one value is "
                      "ambiguous" if numel else "bool value of Tensor with no values is ambiguous",
                      got=f"shape {tuple(shape)}", fix="x.any() or x.all()")


def len_of_scalar() -> DTypeError:
    return DTypeError("len() of a 0-d tensor", expected="one axis or more", got="no axis",
                      fix="x.numel() is 1")


def iteration_over_scalar() -> DTypeError:
    return DTypeError("iteration over a 0-d tensor", expected="at least one axis", got="shape ()",
                      fix="x.item() is its number; x.reshape(1) has an axis")


def grad_not_a_tensor(value: Any) -> DTypeError:
    return DTypeError("grad: not a tensor", expected="a tensor or None", got=type(value).__name__,
                      fix="x.grad = flow.zeros_like(x), or None")


def grad_shape(expected: Any, got: Any) -> ShapeError:
    return ShapeError("grad: the gradient has another shape than the tensor", expected=str(expected),
                      got=str(got), fix="give a gradient of the tensor's shape: flow.zeros_like(x)")


def grad_dtype(expected: Any, got: Any) -> DTypeError:
    return DTypeError("grad: the gradient has another dtype than the tensor", expected=expected, got=got,
                      fix=f"give it as the tensor is: g.to(flow.{expected})")


def modified_in_place(what: str, kind: str, version: Any, then: Any, line: Any) -> GradientError:
    return GradientError("backward: one of the variables needed for gradient computation has been modified "
                         f"by an inplace operation: {what} saved a tensor {kind}, which is at version "
                         f"{version} now", expected=f"version {then}, as it was when {what} "
                         "ran" + (f" at {line}" if line else ""), got=f"version {version}", fix="write x = x "
                         "+ 1 for x += 1 where x is used before and after, or clone() it first")


def released_node(name: str) -> GradientError:
    return GradientError(f"backward: this node with name `{name}` has been released: an earlier backward "
                         "freed what it saved. Maybe you try to backward through the node a second time",
                         expected="one backward through each recorded op", got="a second one",
                         fix="Specify retain_graph=True in the earlier backward, or run the forward again")
