"""Full backward hooks: functions that receive the gradients of the outputs and inputs of one module call.

The module's input tensors and its output tensors pass through an identity operation. The backward of that
operation receives all their gradients at once.
"""
from __future__ import annotations

from collections.abc import Callable

from flowedu.autograd.function import Function
from flowedu.errors import CallError
from flowedu.tensor import Tensor


class _Gate(Function):
    """Identity function whose backward replaces the gradients by hook(gradients)."""

    @staticmethod
    def forward(ctx, hook, *xs):
        ctx.hook = hook
        return tuple(x.view_as(x) for x in xs)

    @staticmethod
    def backward(ctx, *grads):
        return (None, *ctx.hook(grads))


def _through(hook: Callable, values: tuple) -> tuple[tuple, list[int]]:
    """Return `values` with gradient-requiring tensors passed through a gate, and their indices."""
    places = [i for i, x in enumerate(values) if isinstance(x, Tensor) and x.requires_grad]
    if not places:
        return values, places
    passed = list(values)
    for i, y in zip(places, _Gate.apply(hook, *[values[i] for i in places])):
        passed[i] = y
    return tuple(passed), places


class Watch:
    """One call of a module that has backward hooks."""

    def __init__(self, module, hooks):
        self.module, self.hooks = module, hooks
        self.grad_output: tuple | None = None
        self.count, self.entered = 0, []

    def inputs(self, args: tuple) -> tuple:
        """Return the arguments that are passed to forward."""
        self.count = len(args)
        args, self.entered = _through(self._leave, args)
        return args

    def outputs(self, out):
        """Return the result that the caller gets."""
        if not isinstance(out, (Tensor, tuple)):
            raise CallError("full backward hooks: the module's output is not a tensor or a tuple of tensors",
                            expected="a tensor or a tuple", got=type(out).__name__,
                            fix="register_forward_hook, and register_hook on the tensors in it")
        values = out if isinstance(out, tuple) else (out,)
        self.results = len(values)
        values, self.left = _through(self._arrive, values)
        return values if isinstance(out, tuple) else values[0]

    def _arrive(self, grads: tuple) -> tuple:
        """Call the pre-hooks with the gradients of the outputs."""
        whole = _spread(grads, self.left, self.results)
        for hook in list(self.hooks.backward_pre.values()):
            got = hook(self.module, whole)
            whole = whole if got is None else _checked(got, self.results, "grad_output")
        self.grad_output = whole
        if not self.entered:                             # no input needs a gradient, so _leave is not called
            self._ask((None,) * self.count)
        return tuple(whole[i] for i in self.left)

    def _leave(self, grads: tuple) -> tuple:
        """Call the hooks with the gradients of the inputs."""
        whole = self._ask(_spread(grads, self.entered, self.count))
        return tuple(whole[i] for i in self.entered)

    def _ask(self, grad_input: tuple) -> tuple:
        for hook in list(self.hooks.backward.values()):
            got = hook(self.module, grad_input, self.grad_output)
            grad_input = grad_input if got is None else _checked(got, self.count, "grad_input")
        return grad_input


def _spread(grads: tuple, places: list[int], count: int) -> tuple:
    whole = [None] * count
    for i, g in zip(places, grads):
        whole[i] = g
    return tuple(whole)


def _checked(got, count: int, name: str) -> tuple:
    got = got if isinstance(got, tuple) else (got,)
    if len(got) != count:
        raise CallError(f"Backward hook returned an invalid number of {name}",
                        expected=f"None, or {count} gradients",
                        got=str(len(got)), fix="return one for each, or None if a gradient is missing")
    return got
