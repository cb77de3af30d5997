"""Gradients of tensors: backward, grad, hooks."""
from __future__ import annotations

import copyreg
import weakref
from collections.abc import Callable, Sequence

from flowedu.core.eager.arrays import detach, tensor_alias
from flowedu.core.eager.dispatch import Rare, TapeNode, scalar_tensor
from flowedu.core.eager.tensor import Tensor, attach
from flowedu.core.grad.tape import run_backward
from flowedu.core.ops.call import current_interpreter
from flowedu.core.ops.define import REGISTRY
from flowedu.core.values import thread_state
from flowedu.errors import CallError, GradientError, LazyTensorError, ShapeError, UnsupportedError, told_value
from flowedu.tensor.creation import zeros_like
from flowedu.tensor.devices import made_on
from flowedu.tensor.hooks import Handle, hook_table
from flowedu.tensor.modes import is_grad_enabled, no_grad

__all__ = ["Tensor", "backward", "grad", "is_grad_enabled", "no_grad", "tensor_alias"]

_IDENTITY, _CONSTANT = REGISTRY["identity"], REGISTRY["constant"]


def _list(xs) -> list:
    return list(xs) if isinstance(xs, (tuple, list)) else [xs]


def _one(t: Tensor) -> Tensor:
    """1, of t's shape and dtype, where t is."""
    if t.ndim == 0 and not t._device:
        return scalar_tensor(1, t.dtype)
    with made_on(t._device):
        return _CONSTANT.call((), (t._sizes(), 1, t.dtype))


def _seed(t: Tensor, gradient, number: int = 0) -> Tensor:
    """The gradient to start from at an output."""
    if not isinstance(t, Tensor):
        raise CallError("backward: not a tensor", expected="a tensor", got=told_value(t),
                        fix="give the output of a computation")
    if not t.requires_grad:
        raise GradientError(f"element {number} of tensors does not require grad and does not have a grad_fn",
                            expected="a tensor computed from one with requires_grad=True",
                            got=f"{told_value(t)} without a history",
                            fix="make an input with requires_grad=True, outside no_grad()")
    if gradient is None:
        if t._numel != 1:
            raise GradientError("Grad can be implicitly created only for scalar outputs", expected="a one-element output",
                                got=f"shape {tuple(t.shape)}",
                                fix="call .sum().backward(), or pass gradient=")
        return _one(t)
    if not isinstance(gradient, Tensor):
        raise CallError("backward: the gradient is not a tensor", expected="a tensor or None", got=told_value(gradient),
                        fix="flow.ones_like(y), for the output y")
    if gradient.shape != t.shape:
        raise ShapeError(f"out_grad's shape must be same as output's ({tuple(gradient.shape)} vs {tuple(t.shape)})",
                         expected=str(tuple(t.shape)), got=str(tuple(gradient.shape)),
                         fix="flow.ones_like(y), for the output y")
    if gradient.dtype is not t.dtype:
        gradient = REGISTRY["cast"](gradient, dtype=t.dtype)
    return _IDENTITY.call((gradient,), ())          # an alias: the given gradient remains the caller's


def _seeds(outs: list, grads, what: str) -> list:
    given = [None] * len(outs) if grads is None else _list(grads)
    if len(given) != len(outs):
        raise CallError(f"{what}: got {len(outs)} tensors and {len(given)} gradients", got=str(len(given)),
                        expected="one gradient for each output")
    return [_seed(t, g, i) for i, (t, g) in enumerate(zip(outs, given))]


def backward(self, gradient: Tensor | None = None, retain_graph: bool | None = None, create_graph: bool = False,
             inputs: Sequence[Tensor] | Tensor | None = None) -> None:
    """Add d(self)/d(leaf) to every leaf's `.grad`.

    Args:
        gradient: the gradient of self; needed unless self has one element.
        retain_graph: keep the saved tensors for another backward through the same calls (default:
            create_graph).
        create_graph: record the computation of the gradients, so that they can be differentiated.
        inputs: only these tensors get a gradient.

    Raises GradientError if nothing requires a gradient, or if saved tensors were freed or changed in place.
    """
    if gradient is None and inputs is None and self.ndim == 0 and self.node is not None and self.link is None:
        retain = create_graph if retain_graph is None else retain_graph          # the usual case, without detours
        run_backward([self], [_one(self) if self._device else scalar_tensor(1, self.dtype)], None, retain, create_graph)
        return
    if self.is_lazy:
        top = current_interpreter()
        if not hasattr(top, "backward"):
            raise LazyTensorError("backward: this tensor is lazy", expected="an eager tensor, or a graph being built",
                                  got="a lazy tensor outside nn.Graph.build", fix="call backward() in build()")
        if inputs is not None or create_graph or retain_graph:
            raise UnsupportedError("backward: inputs, create_graph and retain_graph are not for nn.Graph",
                                   fix="leave them out")
        top.backward(self, gradient)
        return
    backward_all([self], None if gradient is None else [gradient], retain_graph, create_graph, inputs)


def backward_all(tensors, grad_tensors=None, retain_graph: bool | None = None, create_graph: bool = False,
                 inputs=None) -> None:
    """flow.autograd.backward: the sum of the gradients of all `tensors`, weighted by `grad_tensors`, added to the leaves'
    `.grad` (see Tensor.backward)."""
    outs = _list(tensors)
    seeds = _seeds(outs, grad_tensors, "backward")
    retain = create_graph if retain_graph is None else retain_graph
    targets = None if inputs is None else _list(inputs)
    if targets == []:
        raise CallError("backward: inputs is empty", expected="at least one tensor, or None for all leaves", got="()")
    run_backward(outs, seeds, targets, retain, create_graph, True)


def grad(outputs, inputs, grad_outputs=None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> tuple:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; `.grad` is left alone.

    Args:
        grad_outputs: the gradient of each output; needed for those of more than one element.
        retain_graph, create_graph: as in Tensor.backward.
        allow_unused: None instead of an error for an input the outputs do not depend on.
        materialize_grads: zeros instead of None there.
    """
    if is_grads_batched or not only_inputs:
        raise UnsupportedError("grad: is_grads_batched and only_inputs=False are not supported",
                               fix="call grad once for each gradient")
    outs, ins = _list(outputs), _list(inputs)
    for i, x in enumerate(ins):
        if not isinstance(x, Tensor):
            raise CallError(f"grad: input {i} is not a tensor", expected="tensors", got=told_value(x),
                            fix="give the tensors made with requires_grad=True")
        if not x.requires_grad:
            raise GradientError("One of the differentiated Tensors does not require grad", got=f"input {i} of shape "
                                f"{tuple(x.shape)}", fix="x.requires_grad_() before the forward")
    if any(y.is_lazy for y in outs):
        found = _lazy_grad(outs, ins, grad_outputs, create_graph)
    else:
        found = run_backward(outs, _seeds(outs, grad_outputs, "grad"), ins,
                             create_graph if retain_graph is None else retain_graph, create_graph)
    for i, (x, g) in enumerate(zip(ins, found)):
        if g is None and (materialize_grads or _leads_to(outs, x)):
            found[i] = zeros_like(x)
        elif g is None and not allow_unused:
            raise GradientError("One of the differentiated Tensors appears to not have been used in the graph",
                                got=f"input {i} of shape {tuple(x.shape)}",
                                fix="Set allow_unused=True if this is the desired behavior")
    return tuple(found)


def _leads_to(outs: list, x: Tensor) -> bool:
    """Whether x is in the graph of outs. With no gradient it is one in which all is flat: the derivative of relu's, say."""
    todo, seen = [y.node for y in outs if y.node is not None], set()
    while todo:
        n = todo.pop()
        if n is x or n is x.node and n is not None:
            return True
        if id(n) not in seen and not isinstance(n, Tensor):
            seen.add(id(n))
            todo += [e for e in n.edges if e is not None]
    return False


def _lazy_grad(outs: list, ins: list, grad_outputs, create_graph: bool) -> list:
    """grad inside nn.Graph.build: the tracer appends the nodes."""
    top = current_interpreter()
    if not hasattr(top, "grad"):
        raise LazyTensorError("grad: an output is lazy", expected="eager tensors, or a graph being built", got="a lazy "
                              "tensor outside nn.Graph.build", fix="call grad() in build()")
    given = [None] * len(outs) if grad_outputs is None else _list(grad_outputs)
    if len(given) != len(outs):
        raise CallError(f"grad: got {len(outs)} tensors and {len(given)} gradients", got=str(len(given)),
                        expected="one gradient for each output")
    return top.grad(outs, ins, given, create_graph)


# ---- methods
def requires_grad_(self, requires_grad: bool = True) -> Tensor:
    """Set requires_grad; returns the tensor itself."""
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
        raise LazyTensorError(f"{what}: hooks are not run in nn.Graph", expected="an eager tensor", got="a lazy tensor",
                              fix="flow.watch_diff(x, print) in build gives the gradient of x, and flow.watch(x, print) x")


def register_hook(self, hook: Callable) -> Handle:
    """Call `hook(gradient)` when this tensor's gradient is known; it may return another one. Hooks run in the order they
    were registered, each on what the one before returned. Returns a handle with `remove()`."""
    _hookable(self, "register_hook")
    if self.node is not None:
        return Handle(hook_table(self.node, self.out_index), hook)
    rare = _rare(self)
    rare.hooks = {} if rare.hooks is None else rare.hooks
    thread_state.changes += 1                       # a compiled graph refuses parameters with hooks
    return Handle(rare.hooks, hook)


def register_post_accumulate_grad_hook(self, hook: Callable) -> Handle:
    """Call `hook(tensor)` after a gradient was added to this leaf's `.grad`. Returns a handle with `remove()`."""
    _hookable(self, "register_post_accumulate_grad_hook")
    if self.node is not None:
        raise GradientError("post accumulate grad hooks cannot be registered on non-leaf tensors",
                            fix="register_hook runs when the gradient of any tensor is known")
    rare = _rare(self)
    rare.after = {} if rare.after is None else rare.after
    thread_state.changes += 1
    return Handle(rare.after, hook)


def keep_grad(t: Tensor) -> None:
    """Let backward leave t's gradient in t.grad: t is what its node makes now."""
    if t.node.hooks is None:
        t.node.hooks = {}
    t.node.hooks["keep", t.out_index] = weakref.ref(t)


def forget_grad(t: Tensor) -> None:
    """The end of keep_grad: t is about to be made by another node."""
    if t.node is not None and t.node.hooks is not None:
        t.node.hooks.pop(("keep", t.out_index), None)


def retain_grad(self) -> None:
    """Let backward leave this tensor's gradient in `.grad`, as it does for leaves."""
    if not self.requires_grad:
        raise GradientError("can't retain_grad on Tensor that has requires_grad=False", fix="x.requires_grad_() first")
    if self.is_lazy:
        raise LazyTensorError("retain_grad: not in nn.Graph", expected="an eager tensor", got="a lazy tensor",
                              fix="flow.watch_diff(x, print) in build gives the gradient of x, and flow.watch(x, print) x")
    if self.node is not None:
        _rare(self).retains = True
        keep_grad(self)


attach(Tensor, {f.__name__: f for f in (backward, detach, requires_grad_, register_hook, retain_grad,
                                        register_post_accumulate_grad_hook)})
attach(Tensor, {"requires_grad_on": requires_grad_,
                "retains_grad": property(lambda self: self.rare is not None and self.rare.retains)})


def _refuse_copies(node: TapeNode):
    """Raise for copy.copy, copy.deepcopy, and pickle of a grad_fn."""
    raise GradientError(f"{node.name()}: the history of a tensor cannot be copied or pickled", expected="tensors",
                        got="a grad_fn", fix="copy the tensor: x.detach().clone()")


copyreg.pickle(TapeNode, _refuse_copies)
