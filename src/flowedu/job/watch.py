"""flow.watch and flow.watch_diff: look at a value, or at its gradient, in every run of a job."""
from __future__ import annotations

from collections.abc import Callable

from flowedu.context import current
from flowedu.errors import UnsupportedError
from flowedu.job.context import deliverer


def watch(blob_watched, handler_or_prompt: Callable | str | None = None) -> None:
    """Call the handler with the blob's value in each run (or print it, after the prompt if one is given).

    The handler takes one parameter: annotated tp.Numpy it gets an ndarray, without annotation a LocalBlob. Handlers run
    in the order they were registered, before the job's call returns; what they raise reaches the caller.
    """
    _context("watch").watch(blob_watched, deliverer(handler_or_prompt), False)


def watch_diff(blob_watched, handler_or_prompt: Callable | str | None = None) -> None:
    """The same for the gradient: d(sum of the loss's elements)/d(blob), before any scaling, penalty or clipping.

    Never called in a predict job, for a blob the loss does not depend on, or for one that depends on no trainable
    variable (such as an input).
    """
    _context("watch_diff").watch(blob_watched, deliverer(handler_or_prompt), True)


def _context(what: str):
    context = current()
    if not hasattr(context, "watch"):
        raise UnsupportedError(f"{what}: not inside a job", expected="a call in the body of a job function",
                               got="a call outside", fix="move it into the function decorated with @flow.global_function")
    return context
