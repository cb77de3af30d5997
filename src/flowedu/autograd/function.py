"""Function: an operation with a user-defined backward.

    class Cube(flow.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, dy):
            x, = ctx.saved_tensors
            return 3 * x * x * dy

    y = Cube.apply(x)                                    # or Cube()(x)
"""
from __future__ import annotations

import functools
from collections.abc import Callable

from flowedu.core.eager.arrays import tensor_alias
from flowedu.core.eager.dispatch import is_grad_enabled, make_custom_node, set_history
from flowedu.core.eager.tensor import Tensor
from flowedu.core.grad.custom import Custom
from flowedu.core.ops.call import current_interpreter
from flowedu.errors import CallError, GradientError, LazyTensorError
from flowedu.tensor.gradients.grad_mode import no_grad
from flowedu.tensor.inplace.history import rewrite_history
from flowedu.tensor.inplace.tape_nodes import zeros
from flowedu.tensor.inplace.writing import check_writable, twin, view_steps


class Context:
    """State that forward passes to backward. Programs may set other attributes on it.

    Attributes: saved_tensors; needs_input_grad, a bool for each argument of forward.
    """

    def __init__(self):
        self.needs_input_grad: tuple[bool, ...] = ()
        self._to_save: tuple = ()
        self._plain: set[int] = set()
        self._dirty: tuple = ()
        self._materialize = True
        self._saved: Callable[[], tuple] | None = None

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save inputs or outputs (or None) for backward, which raises an error if one is changed in place."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise CallError("save_for_backward can only save variables", expected="tensors or None",
                                got=type(t).__name__, fix="keep other things as attributes: ctx.size = size")
        self._to_save = tensors

    @property
    def saved_tensors(self) -> tuple:
        """Tensors of save_for_backward, with their history, so that backward can be differentiated."""
        return self._to_save if self._saved is None else self._saved()

    saved_variables = saved_tensors                       # name in early versions of PyTorch

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Mark outputs, such as indices and masks, that get no gradient."""
        self._plain = {id(t) for t in outputs}

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Mark inputs that forward changes in place and returns."""
        self._dirty = inputs

    def set_materialize_grads(self, value: bool) -> None:
        """Set the gradients of unused outputs for backward: zeros (True, the default) or None (False)."""
        self._materialize = bool(value)


class _Call(Custom):
    """Tape node of one call of a Function."""

    def __init__(self, cls: type, ctx: Context, inputs: list, which: list[int], nargs: int):
        super().__init__(cls.__name__, inputs)
        self.cls, self.ctx = cls, ctx
        self.which, self.nargs = which, nargs
        self.specs: list = []                            # (shape, dtype) of the outputs
        # Of save_for_backward: ("in" | "out" | "free", number) or None.
        self.slots: tuple = ()
        self.node_saved: tuple = ()
        self.freed = False

    def saved(self, node) -> tuple:
        if self.freed or node.saved is None:
            raise GradientError(f"{self.name}: saved_tensors were freed by an earlier backward. Maybe you "
                                f"try to backward through the node a second time",
                                fix="pass retain_graph=True to the earlier backward")
        values, found = iter(s if isinstance(s, Tensor) else s.unpack() for s in node.saved), []
        for slot in self.slots:
            t = None if slot is None else next(values)
            if t is not None:
                t = tensor_alias(t)
                if slot[0] == "out":
                    set_history(t, node, slot[1])
                elif slot[0] == "in" and node.edges[slot[1]] is not None:
                    e = node.edges[slot[1]]
                    if isinstance(e, Tensor):
                        t = e
                    else:
                        set_history(t, e, node.slot(slot[1]))
            found.append(t)
        return tuple(found)

    def backward(self, node, douts):
        self.ctx._saved = functools.partial(self.saved, node)
        if self.ctx._materialize:
            douts = [zeros(*spec) if d is None and spec is not None else d
                     for d, spec in zip(douts, self.specs)]
        try:
            found = self.cls.backward(self.ctx, *douts)
        finally:
            # Otherwise node, call, and context would form a cycle.
            self.ctx._saved = None
        found = list(found) if isinstance(found, (tuple, list)) else [found]
        if len(found) > self.nargs and all(g is None for g in found[self.nargs:]):
            found = found[:self.nargs]
        if len(found) != self.nargs:
            raise GradientError(f"function {self.name}Backward returned an incorrect number of gradients",
                                expected=f"{self.nargs}, one for each argument of forward",
                                got=str(len(found)), fix="return None for arguments that are not tensors")
        grads = []
        for i, shape in zip(self.which, self.shapes):
            g = found[i]
            if g is not None and not isinstance(g, Tensor):
                raise GradientError(f"function {self.name}Backward returned something else than a tensor for "
                                    f"argument {i}", expected="a tensor or None", got=type(g).__name__)
            if g is not None and tuple(g.shape) != shape and not _broadcasts(shape, tuple(g.shape)):
                raise GradientError(f"function {self.name}Backward returned an invalid gradient at index "
                                    f"{i} - got {list(g.shape)} but expected shape compatible with "
                                    f"{list(shape)}", expected=str(shape), got=str(tuple(g.shape)))
            grads.append(g)
        return grads

    def release(self) -> bool:
        self.freed = True
        return bool(self.slots)


def _broadcasts(shape: tuple, to: tuple) -> bool:
    lead = len(to) - len(shape)
    return lead >= 0 and all(a == b or a == 1 for a, b in zip(shape, to[lead:]))


class Function:
    """Base class of operations with a user-defined backward.

    Define the static methods `forward(ctx, *args)` and `backward(ctx, *gradients of the outputs)`, and call
    `apply`. `forward(*args)` and `setup_context(ctx, inputs, output)` can replace `forward(ctx, *args)`.
    backward returns a gradient, or None, for every argument of forward. A backward written with ops can be
    differentiated again.
    """

    @staticmethod
    def forward(ctx: Context, *args):
        raise CallError("Function: forward is not defined", expected="@staticmethod def forward(ctx, ...)",
                        got="none", fix="define it in your subclass")

    @staticmethod
    def backward(ctx: Context, *grads):
        raise CallError("Function: backward is not defined", expected="@staticmethod def backward(ctx, ...)",
                        got="none", fix="define it in your subclass")

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple, output):
        """Save the values that backward needs.

        Subclasses whose forward takes no ctx define this method. It is called after forward.

        Args:
            ctx: the context that backward gets.
            inputs: the arguments of forward, as a tuple.
            output: the result of forward.
        """
        raise CallError("Function: setup_context is not defined", got="none",
                        fix="define it, or let forward take ctx",
                        expected="@staticmethod def setup_context(ctx, inputs, output)")

    @classmethod
    def _run(cls, ctx: Context, args: tuple):
        if cls.setup_context is Function.setup_context or cls.forward is Function.forward:
            return cls.forward(ctx, *args)
        output = cls.forward(*args)
        cls.setup_context(ctx, args, output)
        return output

    @classmethod
    def apply(cls, *args):
        """Call forward(ctx, *args) and record it for backward."""
        if current_interpreter() is not None:
            if any(isinstance(a, Tensor) and a.requires_grad for a in args) and is_grad_enabled():
                raise LazyTensorError(f"{cls.__name__}.apply: a Function with a backward of its own cannot "
                                      f"be part of an nn.Graph that trains", expected="ops",
                                      got="autograd.Function in build()",
                                      fix="compute it from ops, whose gradients the graph knows")
            return cls._run(Context(), args)
        ctx = Context()
        which = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        inputs = [args[i] for i in which]
        wants = is_grad_enabled() and any(x.requires_grad for x in inputs)
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and is_grad_enabled() and a.requires_grad
                                     for a in args)
        call = _Call(cls, ctx, inputs, which, len(args))
        edges = tuple(_edge_twin(x) for x in inputs) if wants else ()
        with no_grad():
            result = cls._run(ctx, args)
        outputs = result if isinstance(result, (tuple, list)) else (result,)
        if not wants:
            return result
        return _record(cls, ctx, call, edges, inputs, result, outputs)

    def __call__(self, *args):
        """Call apply(*args): OneFlow's other form, `Cube()(x)`.

        Attributes of the instance are not passed on; forward gets ctx alone.
        """
        return type(self).apply(*args)


def _edge_twin(x: Tensor) -> Tensor:
    """Return a stand-in of x as an input of the node, because forward may change x itself in place."""
    x.refresh_view()
    return x if x.node is None else twin(x)


def _record(cls, ctx: Context, call: _Call, edges: tuple, inputs: list, result, outputs):
    dirty = {id(t) for t in ctx._dirty}
    for t in ctx._dirty:
        check_writable(t, cls.__name__)
    fresh = []
    for t in outputs:                                    # a returned input becomes a separate output
        if isinstance(t, Tensor) and id(t) not in dirty and any(t is x for x in inputs):
            t = tensor_alias(t)
        fresh.append(t)
    number_in = {id(x): i for i, x in enumerate(inputs)}
    number_out = {id(t): i for i, t in enumerate(outputs) if isinstance(t, Tensor) and id(t) in dirty or
                  isinstance(t, Tensor) and id(t) not in number_in}

    def slot_of(tensor):
        if tensor is None:
            return None
        if id(tensor) in number_out:
            return "out", number_out[id(tensor)]
        if id(tensor) in number_in:
            return "in", number_in[id(tensor)]
        return "free", 0

    call.slots = tuple(slot_of(t) for t in ctx._to_save)
    saved = tuple(tensor_alias(t) for t in ctx._to_save if t is not None)
    call.outputs = len(fresh)
    call.specs = [(tuple(t.shape), t.dtype) if isinstance(t, Tensor) else None for t in fresh]
    node = make_custom_node(call, edges, saved)
    ctx._to_save = ()
    for i, (t, given) in enumerate(zip(fresh, outputs)):
        if isinstance(t, Tensor) and id(given) not in ctx._plain:
            if t._base is not None and id(given) not in dirty:
                # No longer a view of the input: the history is the Function's.
                t = fresh[i] = tensor_alias(t)
            if id(given) in dirty and t.link is not None:
                output = tensor_alias(t)
                set_history(output, node, i)
                rewrite_history(t, output, view_steps(t))
                continue
            set_history(t, node, i)
            if id(given) in dirty:
                t.epoch += 1
    if not isinstance(result, (tuple, list)):
        return fresh[0]
    return type(result)(fresh) if type(result) in (tuple, list) else type(result)(*fresh)


def once_differentiable(backward: Callable) -> Callable:
    """Decorate a backward that cannot be differentiated.

    The backward runs without history, and a second derivative raises an error.

    Args:
        backward: the static method backward.
    """
    @functools.wraps(backward)
    def once(ctx, *grads):
        if not is_grad_enabled():
            return backward(ctx, *grads)
        with no_grad():
            found = backward(ctx, *grads)
        listed = found if isinstance(found, (tuple, list)) else (found,)
        tracked = tuple(g for g in grads if isinstance(g, Tensor) and g.requires_grad)
        if not tracked:
            return found
        blocked = []
        for g in listed:
            if isinstance(g, Tensor):
                g = tensor_alias(g)
                set_history(g, make_custom_node(_Once(tracked), tracked))
            blocked.append(g)
        return tuple(blocked)

    return once


class _Once(Custom):
    def __init__(self, inputs):
        super().__init__("once_differentiable", inputs)

    def backward(self, node, douts):
        raise GradientError("trying to differentiate twice a function that was marked with "
                            "@once_differentiable", fix="write its backward with ops, without the decorator")


__all__ = ["Context", "Function", "once_differentiable"]
