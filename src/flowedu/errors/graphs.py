"""Errors of graphs: building, compiling, and calling them, for core to raise."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.errors import (
    ArgumentError,
    DeviceError,
    GradientError,
    GraphAttributeError,
    GraphError,
    JobBuildAndInferError,
    KernelError,
    ShapeError,
    UnsupportedError,
)


def cpu_only(context: str, name: str, device: str, x: Any) -> UnsupportedError:
    return UnsupportedError(f"{context}: {name} is on {device}, and this runs on the CPU",
                            got=f"{x.dtype.name}{list(x.shape)} on {device}", expected="tensors on the CPU",
                            fix="x.cpu(), module.cpu(); a graph made anew runs where its tensors are")


def no_kernel(name: str, op: str) -> KernelError:
    return KernelError(f"{name}: {op} has no kernel for these element types",
                       fix="op.need_kernel(specs, outs, attrs) where the graph is made")


def nested_call(name: str) -> UnsupportedError:
    return UnsupportedError(f"job {name} was called while it runs", got="a call of a job that runs",
                            expected="a Python kernel or signal handler that calls other jobs, or none",
                            fix="call it after the step")


def repeated_name(name: str, op_name: str) -> JobBuildAndInferError:
    return JobBuildAndInferError(f"{name}: the op name {op_name!r} already exists", got=f"{op_name!r} twice",
                                 expected="unique names in a job", fix="pass another name=")


def not_a_value(name: str, i: int, x: Any) -> ArgumentError:
    return ArgumentError(f"{name}: input {i} is not a value of this graph", expected="a blob",
                         got=type(x).__name__, fix="numbers may be mixed with blobs by + - * /; feed arrays "
                         "as arguments of the job")


def changed_value(graph: str, value: Any, got: Any) -> GraphError:
    return GraphError(f"{graph}: {value.name} has changed since the graph was compiled",
                      expected=str(value.spec), got=str(got), fix="convert modules before the first call")


def wrong_number_of_inputs(compiled: Any, inputs: Sequence) -> GraphError:
    return GraphError(f"nn.Graph {compiled.owner.name}: Number of inputs and NNGraph::inputs_op_names "
                      "mismatch",
                      expected=f"{len(compiled.specs)} inputs: {', '.join(n for n, _ in compiled.specs)}",
                      got=f"{len(inputs)} inputs", fix="call the graph as in its first call")


def other_names(graph: str, expected: Any, got: Any) -> GraphError:
    return GraphError(f"nn.Graph {graph}: the inputs have other names, or another order, than before",
                      expected=f"{expected}, as in the first call", got=got,
                      fix="the same keyword arguments, and dicts with the same keys in the same order")


def global_input(graph: str, name: str, placement: Any) -> GraphError:
    return GraphError(f"nn.Graph {graph}: {name} is a global tensor", expected="a local one, as in the first "
                      "call", got=f"{placement}", fix="x.to_local(), or another graph for global tensors")


def no_backward(name: str, line: Any) -> JobBuildAndInferError:
    return JobBuildAndInferError(f"nn.Graph {name}: an optimizer was added, but build calls no backward",
                                 expected="loss.backward() in build", got="none", at=line,
                                 fix="call loss.backward() in build, or leave add_optimizer out")


def no_optimizer(name: str, line: Any) -> JobBuildAndInferError:
    return JobBuildAndInferError(f"nn.Graph {name}: build calls backward, but there is no optimizer",
                                 expected="self.add_optimizer(...) in __init__", got="none", at=line,
                                 fix="add an optimizer, or leave backward out to predict")


def tensor_attribute(class_name: str, name: str) -> GraphAttributeError:
    return GraphAttributeError(f"{class_name} is not allowed to set Tensor attribute named '{name}'",
                               expected="modules", got="a Tensor", fix="Please use nn.Module to hold the "
                               "tensor, then add the nn.Module to nn.Graph: nn.Parameter or register_buffer")


def optimizer_attribute(class_name: str, name: str) -> GraphAttributeError:
    return GraphAttributeError(f"{class_name} is not allowed to set Optimizer attribute named '{name}'",
                               got="an optimizer", expected="modules",
                               fix="Please use add_optimizer(...) instead")


def graph_not_initialized(graph: Any, access: str) -> GraphAttributeError:
    return GraphAttributeError("Base class nn.Graph has not been initialized, please call super().__init__() "
                               "in subclass of nn.Graph before assigning any attribute",
                               expected="super().__init__() as the first line of "
                               f"{type(graph).__name__}.__init__", got=f"{access} before it",
                               fix="add that line")


def no_build(class_name: str) -> UnsupportedError:
    return UnsupportedError("nn.Graph.build() function must be overridden: Subclass must override `build`",
                            expected=f"def build(self, ...) in {class_name}", got="none",
                            fix="def build(self, x): return self.model(x)")


def already_compiled(name: str) -> GraphError:
    return GraphError(f"nn.Graph {name} has already been compiled", expected="one call of _compile",
                      got="a second one", fix="make another graph")


def nested_graph(name: str) -> GraphError:
    return GraphError(f"nn.Graph {name} is called inside the build of a graph, or with a lazy tensor",
                      expected="calls of modules in build; eager tensors outside", got=f"{name}(...)",
                      fix="call the module that the inner graph holds")


def not_a_tensor(op: Any, x: Any) -> JobBuildAndInferError:
    return JobBuildAndInferError(f"{op.name if op else 'nn.Graph'}: an input is not a tensor",
                                 expected="tensors", got=type(x).__name__,
                                 fix="flow.tensor(x), made in __init__")


def foreign_lazy_tensor(x: Any) -> JobBuildAndInferError:
    return JobBuildAndInferError("nn.Graph: a lazy tensor of another graph, or of an earlier build, is used",
                                 expected="tensors made in this build", got=repr(x),
                                 fix="return it from build, and pass the result of the call on")


def second_backward() -> JobBuildAndInferError:
    return JobBuildAndInferError("nn.Graph: backward is called twice in one build", expected="one backward()",
                                 got="a second one", fix="add the losses up: (loss1 + loss2).backward()")


def action_in_build(action: str) -> UnsupportedError:
    return UnsupportedError(f"nn.Graph: {action} inside build", expected="a description of one step",
                            fix="the graph clears gradients and updates by itself: add_optimizer in __init__ "
                            "and loss.backward() in build are all it needs")


def loss_without_history(op: str) -> GradientError:
    return GradientError(f"{op}: element 0 of tensors does not require grad and does not have a grad_fn",
                         expected="a loss computed from parameters", got="a loss without a history",
                         fix="compute the loss from parameters, outside no_grad()")


def loss_not_scalar(op: str, shape: Sequence) -> GradientError:
    return GradientError(f"{op}: grad can be implicitly created only for scalar outputs", got="a loss of "
                         f"shape {tuple(shape)}", fix="loss.mean().backward() or loss.sum().backward()")


def out_grad_shape(op: str, got: Any, expected: Any) -> ShapeError:
    return ShapeError(f"{op}: out_grad's shape must be same as output's ({tuple(got)} vs {tuple(expected)})",
                      expected=str(tuple(expected)), got=str(tuple(got)))


def state_misfit(name: str, expected: Any, got: Any) -> ArgumentError:
    return ArgumentError(f"{name} does not fit its parameter", expected=str(expected), got=str(got),
                         fix="make the optimizer after model.to(...)")


def device_name(place: int) -> str:
    """Return the name of a device from its number (Block.device)."""
    return f"cuda:{place - 1}" if place else "cpu"


def mixed_devices(placing: Any, name: str, place: int) -> DeviceError:
    return DeviceError(f"{placing.tracer.graph.name}: Expected all tensors to be on the same device",
                       expected="one device for inputs, parameters and buffers",
                       got=f"{placing.first} is on {device_name(placing.place)}, {name} on "
                       f"{device_name(place)}", fix='module.to("cuda") and x.to("cuda") bring them there')


def other_device(graph: str, name: str, expected: int, got: int) -> DeviceError:
    return DeviceError(f"nn.Graph {graph}: {name} is on another device than the graph",
                       expected=device_name(expected), got=device_name(got),
                       fix="move it, or make another graph")


def other_input(name: str, spec: Any, place: int, x: Any) -> GraphError:
    """Return the error for an input that had `spec` and was on device `place` in the first call."""
    is_tensor = hasattr(x, "spec")
    fix = "use batches of one size (DataLoader(..., drop_last=True)), or make another graph for this size"
    if spec is not None and not is_tensor:
        fix = f"pass a tensor of {spec}"
    elif spec is not None and x.shape == spec.shape:
        fix = f"x.to(flow.{spec.dtype.name}), or make another graph for {x.dtype.name}"
    got = _describe(x.spec, x._device) if is_tensor else type(x).__name__
    return GraphError("nn.Graph ONLY accepts static inputs tensor meta, please check whether your input "
                      "tensor meta each step is the same as the input of first call graph",
                      expected=f"{name}: {_describe(spec, place)}", got=f"{name}: {got}", fix=fix)


def _describe(spec: Any, place: int) -> str:
    where = device_name(place) if place else "cpu:0"
    return "None" if spec is None else f"shape={spec.shape}, dtype={spec.dtype!r}, device={where}"


def unsupported_item(class_name: str, kind: str, name: str, x: Any) -> UnsupportedError:
    fix = "return tensors, and compute the rest from them after the call; a constant: flow.tensor(value)"
    if kind == "INPUT":
        fix = f"make it an attribute in {class_name}.__init__, or pass flow.tensor(value)"
    return UnsupportedError(f"nn.Graph.build()'s {kind.lower()} item only supports types: Tensor/None",
                            got=f"{name} of type {type(x).__name__}",
                            expected="a Tensor, None, or lists, tuples and dicts of them", fix=fix)
