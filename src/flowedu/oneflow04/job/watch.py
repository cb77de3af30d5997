"""flow.watch and flow.watch_diff: inspect a value, or its gradient, in each run of a job."""
from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.context import current
from flowedu.core.values.thread_state import thread_state
from flowedu.core.values.typing import Numpy
from flowedu.errors import CheckError, UnsupportedError
from flowedu.oneflow04.job.containers import join_devices
from flowedu.oneflow04.job.placed_blobs import LocalBlob
from flowedu.oneflow04.typing import ListNumpy


def watch(blob_watched, handler_or_prompt: Callable | str | None = None) -> None:
    """Call a handler with the value of a blob in each run.

    Handlers run in the order of registration, before the call of the job returns. An exception of a handler
    is raised by that call.

    Args:
        blob_watched: a blob of the job.
        handler_or_prompt: a function of one parameter. With the annotation tp.Numpy it gets an ndarray, with
            tp.ListNumpy a list with one ndarray per device, and without an annotation a LocalBlob. If a
            string is given, it is printed as a prompt before the value. None prints the value only.
    """
    _context("watch", blob_watched).watch(blob_watched, deliverer(handler_or_prompt, blob_watched), False)


def watch_diff(blob_watched, handler_or_prompt: Callable | str | None = None) -> None:
    """Call a handler with the gradient of a blob in each run.

    The gradient is d(sum of the elements of the loss) / d(blob), before averaging, penalties, and clipping,
    multiplied by the loss scale of the optimizer. The handler is not called in a predict job, for a blob that
    the loss does not depend on, or for a blob that depends on no trainable variable (such as an input).

    Args:
        blob_watched: a blob of the job.
        handler_or_prompt: as for flow.watch.
    """
    _context("watch_diff", blob_watched).watch(blob_watched, deliverer(handler_or_prompt, blob_watched), True)


def _context(what: str, watched):
    context = (thread_state.tracer if thread_state.tracer is not None and isinstance(watched, Tensor)
               else current())
    if not hasattr(context, "watch"):
        eager = "x.register_hook(print)" if what == "watch_diff" else "print(x)"
        raise UnsupportedError(f"{what}: not inside a job", expected="a call in the body of a job "
                               "function, or in the build of an nn.Graph", got="a call outside",
                               fix=f"{eager} for an eager tensor" if isinstance(watched, Tensor) else
                               "move it into the function decorated with @flow.global_function")
    return context


def deliverer(handler, blob=None) -> Callable[[list[np.ndarray]], None]:
    """Return a function of a watched blob's arrays, one per device, for a handler or a prompt."""
    if handler is None or isinstance(handler, str):
        return lambda arrays: print(*([handler] if handler else []), join_devices(arrays), sep="\n")
    if not callable(handler):
        raise CheckError("watch: the handler is not callable",
                         expected="a function of one parameter, a prompt, or None",
                         got=repr(handler), fix="def handler(x: tp.Numpy): print(x)")
    parameters = list(inspect.signature(handler, eval_str=True).parameters.values())
    if len(parameters) != 1:
        raise CheckError("watch callback should accept only one parameter",
                         expected="def handler(x: tp.Numpy)",
                         got=f"{len(parameters)} parameters",
                         fix="pass other values with a closure or functools.partial")
    kind, dynamic = parameters[0].annotation, bool(getattr(blob, "is_dynamic", False))
    if kind is inspect.Parameter.empty:
        return lambda arrays: handler(LocalBlob(arrays, dynamic))
    if kind is Numpy:
        if dynamic:
            raise CheckError("watch: the blob's size may vary from call to call",
                             expected="a handler of tp.ListNumpy",
                             got="tp.Numpy", fix="def handler(x: tp.ListNumpy), or leave the annotation out")
        return lambda arrays: handler(join_devices(arrays))
    if kind is ListNumpy:
        return lambda arrays: handler(list(arrays))
    raise UnsupportedError("invalid watch callback parameter annotation",
                           expected="tp.Numpy, tp.ListNumpy or none",
                           got=repr(kind), fix="def handler(x: tp.Numpy)")
