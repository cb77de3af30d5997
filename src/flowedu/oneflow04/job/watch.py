"""flow.watch and flow.watch_diff: look at a value, or at its gradient, in every run of a job."""
from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.context import current
from flowedu.core.values.thread_state import thread_state
from flowedu.core.values.typing import Numpy
from flowedu.errors import CheckError, UnsupportedError
from flowedu.oneflow04.job.blob import LocalBlob
from flowedu.oneflow04.job.values import joined
from flowedu.oneflow04.typing import ListNumpy


def watch(blob_watched, handler_or_prompt: Callable | str | None = None) -> None:
    """Call the handler with the blob's value in each run (or print it, after the prompt if one is given).

    The handler takes one parameter: annotated tp.Numpy it gets an ndarray, tp.ListNumpy a list with one per device,
    without annotation a LocalBlob. Handlers run in the order they were registered, before the job's call returns; what
    they raise reaches the caller.
    """
    _context("watch", blob_watched).watch(blob_watched, deliverer(handler_or_prompt, blob_watched), False)


def watch_diff(blob_watched, handler_or_prompt: Callable | str | None = None) -> None:
    """The same for the gradient: d(sum of the loss's elements)/d(blob), before any averaging, penalty or clipping.
    Where the optimizer has a loss scale, times this scale.

    Never called in a predict job, for a blob the loss does not depend on, or for one that depends on no trainable
    variable (such as an input).
    """
    _context("watch_diff", blob_watched).watch(blob_watched, deliverer(handler_or_prompt, blob_watched), True)


def _context(what: str, watched):
    context = thread_state.tracer if thread_state.tracer is not None and isinstance(watched, Tensor) else current()
    if not hasattr(context, "watch"):
        eager = "x.register_hook(print)" if what == "watch_diff" else "print(x)"
        raise UnsupportedError(f"{what}: not inside a job", expected="a call in the body of a job "
                               "function, or in the build of an nn.Graph", got="a call outside",
                               fix=f"{eager} for an eager tensor" if isinstance(watched, Tensor) else
                               "move it into the function decorated with @flow.global_function")
    return context


def deliverer(handler, blob=None) -> Callable[[list[np.ndarray]], None]:
    """What to call with a watched blob's arrays, one per device, from the handler's signature or prompt."""
    if handler is None or isinstance(handler, str):
        return lambda arrays: print(*([handler] if handler else []), joined(arrays), sep="\n")
    if not callable(handler):
        raise CheckError("watch: the handler is not callable", expected="a function of one parameter, a prompt, or None",
                         got=repr(handler), fix="def handler(x: tp.Numpy): print(x)")
    parameters = list(inspect.signature(handler, eval_str=True).parameters.values())
    if len(parameters) != 1:
        raise CheckError("watch callback should accept only one parameter", expected="def handler(x: tp.Numpy)",
                         got=f"{len(parameters)} parameters", fix="bring the rest in by a closure or functools.partial")
    kind, dynamic = parameters[0].annotation, bool(getattr(blob, "is_dynamic", False))
    if kind is inspect.Parameter.empty:
        return lambda arrays: handler(LocalBlob(arrays, dynamic))
    if kind is Numpy:
        if dynamic:
            raise CheckError("watch: the blob's size may vary from call to call", expected="a handler of tp.ListNumpy",
                             got="tp.Numpy", fix="def handler(x: tp.ListNumpy), or leave the annotation out")
        return lambda arrays: handler(joined(arrays))
    if kind is ListNumpy:
        return lambda arrays: handler(list(arrays))
    raise UnsupportedError("invalid watch callback parameter annotation", expected="tp.Numpy, tp.ListNumpy or none",
                           got=repr(kind), fix="def handler(x: tp.Numpy)")
