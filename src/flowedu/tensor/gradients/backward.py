"""Gradients of tensors: backward, grad, and hooks."""
from __future__ import annotations

import copyreg
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from flowedu.core.eager.arrays import detach, tensor_alias
from flowedu.core.eager.dispatch import Rare, TapeNode, scalar_tensor
from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.grad.tape import run_backward
from flowedu.core.ops import view
from flowedu.core.ops.call import current_interpreter
from flowedu.core.values import thread_state
from flowedu.errors import (
    CallError,
    GradientError,
    LazyTensorError,
    ShapeError,
    UnsupportedError,
    format_value,
)
from flowedu.tensor.construction.creation import zeros_like
from flowedu.tensor.devices.conversion import made_on
from flowedu.tensor.gradients.grad_mode import is_grad_enabled, no_grad
from flowedu.tensor.gradients.hooks import Handle, hook_table

__all__ = ["Tensor", "backward", "grad", "is_grad_enabled", "no_grad", "tensor_alias"]

_IDENTITY, _CONSTANT = view.identity, view.constant


def _list(xs: Any) -> list:
    return list(xs) if isinstance(xs, (tuple, list)) else [xs]


def _one(t: Tensor) -> Tensor:
    """Return a tensor of ones with t's shape, dtype, and device."""
    if t.ndim == 0 and not t._device:
        return scalar_tensor(1, t.dtype)
    with made_on(t._device):
        return _CONSTANT.call((), (t._sizes(), 1, t.dtype))


def _seed(t: Tensor, gradient: Tensor | None, number: int = 0) -> Tensor:
    """Return the gradient of an output with which the backward pass starts."""
    if not isinstance(t, Tensor):
        raise CallError("backward: not a tensor", expected="a tensor", got=format_value(t),
                        fix="give the output of a computation")
    if not t.requires_grad:
        raise GradientError(f"element {number} of tensors does not require grad and does not have a grad_fn",
                            expected="a tensor computed from one with requires_grad=True",
                            got=f"{format_value(t)} without a history",
                            fix="make an input with requires_grad=True, outside no_grad()")
    if gradient is None:
        if t._numel != 1:
            raise GradientError("Grad can be implicitly created only for scalar outputs",
                                expected="a one-element output", got=f"shape {tuple(t.shape)}",
                                fix="call .sum().backward(), or pass gradient=")
        return _one(t)
    if not isinstance(gradient, Tensor):
        raise CallError("backward: the gradient is not a tensor", expected="a tensor or None",
                        got=format_value(gradient), fix="flow.ones_like(y), for the output y")
    if gradient.shape != t.shape:
        raise ShapeError(f"out_grad's shape must be same as output's ({tuple(gradient.shape)} vs "
                         f"{tuple(t.shape)})", expected=str(tuple(t.shape)), got=str(tuple(gradient.shape)),
                         fix="flow.ones_like(y), for the output y")
    if gradient.dtype is not t.dtype:
        gradient = view.cast(gradient, dtype=t.dtype)
    return _IDENTITY.call((gradient,), ())          # an alias, because the gradient belongs to the caller


def _gradient_per_output(outs: list, grads: Sequence[Tensor] | Tensor | None, what: str) -> list:
    """Return the list of gradients, None for each output if grads is None."""
    given = [None] * len(outs) if grads is None else _list(grads)
    if len(given) != len(outs):
        raise CallError(f"{what}: got {len(outs)} tensors and {len(given)} gradients", got=str(len(given)),
                        expected="one gradient for each output")
    return given


def _seeds(outs: list, grads: Sequence[Tensor] | Tensor | None, what: str) -> list:
    return [_seed(t, g, i) for i, (t, g) in enumerate(zip(outs, _gradient_per_output(outs, grads, what)))]


def backward(self: Tensor, gradient: Tensor | None = None, retain_graph: bool | None = None,
             create_graph: bool = False, inputs: Sequence[Tensor] | Tensor | None = None) -> None:
    """Add the gradient of this tensor to `.grad` of every leaf.

    Args:
        gradient: gradient of this tensor; default: 1, which requires a tensor with one element.
        retain_graph: keep the saved tensors for another backward pass; default: create_graph.
        create_graph: record the computation of the gradients, so that they can be differentiated.
        inputs: the only tensors whose `.grad` is changed; default: all leaves.

    Raises:
        GradientError: this tensor does not require a gradient, or saved tensors were freed or changed in
            place.

    Example:
        >>> x = flow.tensor([2.0], requires_grad=True)
        >>> (x * x).backward()
        >>> x.grad.item()
        4.0
    """
    if gradient is None and inputs is None and self.ndim == 0 and self.node is not None and self.link is None:
        retain = create_graph if retain_graph is None else retain_graph          # fast path of the usual case
        run_backward([self], [_one(self) if self._device else scalar_tensor(1, self.dtype)], None, retain,
                     create_graph)
        return
    if self.is_lazy:
        top = current_interpreter()
        if not hasattr(top, "backward"):
            raise LazyTensorError("backward: this tensor is lazy",
                                  expected="an eager tensor, or a graph being built",
                                  got="a lazy tensor outside nn.Graph.build",
                                  fix="call backward() in build()")
        if inputs is not None or create_graph or retain_graph:
            raise UnsupportedError("backward: inputs, create_graph and retain_graph are not for nn.Graph",
                                   fix="leave them out")
        top.backward(self, gradient)
        return
    backward_all([self], None if gradient is None else [gradient], retain_graph, create_graph, inputs)


def backward_all(tensors: Sequence[Tensor] | Tensor, grad_tensors: Sequence[Tensor] | Tensor | None = None,
                 retain_graph: bool | None = None, create_graph: bool = False,
                 inputs: Sequence[Tensor] | Tensor | None = None) -> None:
    """Add the gradients of several tensors to `.grad` of every leaf; see Tensor.backward.

    Args:
        tensors: tensor or sequence of tensors.
        grad_tensors: gradient of each tensor; default: 1, which requires tensors with one element.
        retain_graph: keep the saved tensors for another backward pass; default: create_graph.
        create_graph: record the computation of the gradients.
        inputs: the only tensors whose `.grad` is changed; default: all leaves.
    """
    outs = _list(tensors)
    seeds = _seeds(outs, grad_tensors, "backward")
    retain = create_graph if retain_graph is None else retain_graph
    targets = None if inputs is None else _list(inputs)
    if targets == []:
        raise CallError("backward: inputs is empty", expected="at least one tensor, or None for all leaves",
                        got="()")
    run_backward(outs, seeds, targets, retain, create_graph, True)


def grad(outputs: Sequence[Tensor] | Tensor, inputs: Sequence[Tensor] | Tensor,
         grad_outputs: Sequence[Tensor] | Tensor | None = None, retain_graph: bool | None = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
         is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple[Tensor, ...]:
    """Return a tuple of the gradients of outputs with respect to inputs; `.grad` is not changed.

    Args:
        outputs: tensor or sequence of tensors.
        inputs: tensor or sequence of tensors.
        grad_outputs: gradient of each output; default: 1, which requires outputs with one element.
        retain_graph: keep the saved tensors for another backward pass; default: create_graph.
        create_graph: record the computation of the gradients.
        only_inputs: must be True.
        allow_unused: return None for inputs that the outputs do not depend on, instead of raising an error;
            default: materialize_grads.
        is_grads_batched: must be False.
        materialize_grads: return zeros instead of None for inputs that the outputs do not depend on.
    """
    if is_grads_batched or not only_inputs:
        raise UnsupportedError("grad: is_grads_batched and only_inputs=False are not supported",
                               fix="call grad once for each gradient")
    outs, ins = _list(outputs), _list(inputs)
    for i, x in enumerate(ins):
        if not isinstance(x, Tensor):
            raise CallError(f"grad: input {i} is not a tensor", expected="tensors", got=format_value(x),
                            fix="give the tensors made with requires_grad=True")
        if not x.requires_grad:
            raise GradientError("One of the differentiated Tensors does not require grad",
                                got=f"input {i} of shape {tuple(x.shape)}",
                                fix="x.requires_grad_() before the forward")
    if any(y.is_lazy for y in outs):
        found = _lazy_grad(outs, ins, grad_outputs, create_graph)
    else:
        found = run_backward(outs, _seeds(outs, grad_outputs, "grad"), ins,
                             create_graph if retain_graph is None else retain_graph, create_graph)
    for i, (x, g) in enumerate(zip(ins, found)):
        if g is None and (materialize_grads or _leads_to(outs, x)):
            found[i] = zeros_like(x)
        elif g is None and not allow_unused:
            raise GradientError(
                "One of the differentiated Tensors appears to not have been used in the graph",
                got=f"input {i} of shape {tuple(x.shape)}",
                fix="Set allow_unused=True if this is the desired behavior")
    return tuple(found)


def _leads_to(outs: list, x: Tensor) -> bool:
    """Return True if x is in the graph of outs. Ops with a zero gradient, such as comparisons, end a path."""
    todo, seen = [y.node for y in outs if y.node is not None], set()
    while todo:
        n = todo.pop()
        if n is x or n is x.node and n is not None:
            return True
        if id(n) not in seen and not isinstance(n, Tensor):
            seen.add(id(n))
            todo += [e for e in n.edges if e is not None]
    return False


def _lazy_grad(outs: list, ins: list, grad_outputs: Sequence[Tensor] | Tensor | None,
               create_graph: bool) -> list:
    """Compute grad inside nn.Graph.build: the tracer appends the nodes."""
    top = current_interpreter()
    if not hasattr(top, "grad"):
        raise LazyTensorError("grad: an output is lazy", expected="eager tensors, or a graph being built",
                              got="a lazy tensor outside nn.Graph.build", fix="call grad() in build()")
    return top.grad(outs, ins, _gradient_per_output(outs, grad_outputs, "grad"), create_graph)


# ---- methods
def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set requires_grad and return the tensor.

    Args:
        requires_grad: True if the backward pass computes the tensor's gradient; default: True.

    Raises:
        GradientError: True for a tensor without a floating dtype, or False for a tensor that is not a leaf.
    """
    self.requires_grad = requires_grad
    return self


def _rare(t: Tensor) -> Rare:
    if t.rare is None:
        t.rare = Rare()
    return t.rare


def _hookable(t: Tensor, what: str) -> None:
    if not t.requires_grad:
        raise GradientError(f"{what}: cannot register a hook on a tensor that doesn't require gradient",
                            fix="x.requires_grad_() first")
    if t.is_lazy:
        raise LazyTensorError(f"{what}: hooks are not run in nn.Graph", expected="an eager tensor",
                              got="a lazy tensor",
                              fix="flow.watch_diff(x, print) in build gives the gradient of x, and "
                              "flow.watch(x, print) x")


def register_hook(self: Tensor, hook: Callable) -> Handle:
    """Register a hook that is called as hook(gradient) when the gradient of this tensor has been computed.

    Hooks run in the order of registration. If a hook returns a tensor, it replaces the gradient.

    Args:
        hook: function of the gradient.

    Returns:
        A handle; `remove()` unregisters the hook.
    """
    _hookable(self, "register_hook")
    if self.node is not None:
        return Handle(hook_table(self.node, self.out_index), hook)
    rare = _rare(self)
    rare.hooks = {} if rare.hooks is None else rare.hooks
    thread_state.changes += 1                       # a compiled graph refuses parameters with hooks
    return Handle(rare.hooks, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable) -> Handle:
    """Register a hook that is called as hook(tensor) after a gradient was added to this leaf's `.grad`.

    Args:
        hook: function of the tensor.

    Returns:
        A handle; `remove()` unregisters the hook.
    """
    _hookable(self, "register_post_accumulate_grad_hook")
    if self.node is not None:
        raise GradientError("post accumulate grad hooks cannot be registered on non-leaf tensors",
                            fix="register_hook runs when the gradient of any tensor is known")
    rare = _rare(self)
    rare.after = {} if rare.after is None else rare.after
    thread_state.changes += 1
    return Handle(rare.after, hook)


def keep_grad(t: Tensor) -> None:
    """Let the backward pass store the gradient of t, the output of its current tape node, in t.grad."""
    if t.node.hooks is None:
        t.node.hooks = {}
    t.node.hooks["keep", t.out_index] = weakref.ref(t)


def forget_grad(t: Tensor) -> None:
    """Undo keep_grad before t becomes the output of another tape node."""
    if t.node is not None and t.node.hooks is not None:
        t.node.hooks.pop(("keep", t.out_index), None)


def retain_grad(self: Tensor) -> None:
    """Let the backward pass store this tensor's gradient in `.grad`, as it does for leaves."""
    if not self.requires_grad:
        raise GradientError("can't retain_grad on Tensor that has requires_grad=False",
                            fix="x.requires_grad_() first")
    if self.is_lazy:
        raise LazyTensorError("retain_grad: not in nn.Graph", expected="an eager tensor", got="a lazy tensor",
                              fix="flow.watch_diff(x, print) in build gives the gradient of x, and "
                              "flow.watch(x, print) x")
    if self.node is not None:
        _rare(self).retains = True
        keep_grad(self)


attach(Tensor, {f.__name__: f for f in (backward, detach, requires_grad_, register_hook, retain_grad,
                                        register_post_accumulate_grad_hook)})
attach(Tensor, {"requires_grad_on": requires_grad_,
                "retains_grad": property(lambda self: self.rare is not None and self.rare.retains)})


def _refuse_copies(node: TapeNode) -> NoReturn:
    """Raise for copy.copy, copy.deepcopy, and pickle of a grad_fn."""
    raise GradientError(f"{node.name()}: the history of a tensor cannot be copied or pickled",
                        expected="tensors", got="a grad_fn", fix="copy the tensor: x.detach().clone()")


copyreg.pickle(TapeNode, _refuse_copies)
