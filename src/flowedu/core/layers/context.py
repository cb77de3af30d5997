"""Context: creates the variables and names of layers, and distinguishes training from evaluation.

The default context stores tensors (`Eager`). During compilation, the job's context replaces it.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from flowedu.core.values.blob import BlobDef
from flowedu.core.values.spec import Spec
from flowedu.core.values.thread_state import during, register_fields, thread_state
from flowedu.errors import CheckError
from flowedu.errors.layers import missing_initializer

register_fields(context=None)                # the active context; None: the eager context
_ids = itertools.count()
_draws = itertools.count()
Initializer = Callable[..., Any]             # (shape, dtype, seed) -> array


def current() -> Any:
    """Return the active context of this thread."""
    return thread_state.context or EAGER


def use_context(context: Context | None) -> during:
    """Make `context` active in a with statement, in this thread only."""
    return during(context=context)


def unique_name(prefix: str) -> str:
    """Return `prefix` with a number that no other op of this process has."""
    return f"{prefix}_{next(_ids)}"


class Context:
    """Base class of contexts.

    Attributes: training; namespaces (see `flow.scope.namespace`); default_initializer; model_names
    {variable: the model_name passed to get_variable}; in_job; devices, the number of devices.
    """

    training = False
    default_initializer = None
    in_job = False
    devices = 1

    def __init__(self) -> None:
        self.namespaces: list[str] = []
        self.model_names: dict[str, str] = {}

    def full_name(self, name: str) -> str:
        return "-".join([*self.namespaces, name])


def blobs_in(arguments: Sequence) -> Iterator[BlobDef]:
    """Yield the blobs among the arguments of a call, including blobs in lists."""
    for x in arguments:
        if isinstance(x, BlobDef):
            yield x
        elif isinstance(x, (list, tuple)):
            yield from blobs_in(x)


class Eager(Context):
    """Context of eager calls: a dictionary of tensors. A name always returns the same tensor."""

    training = True

    def __init__(self) -> None:
        super().__init__()
        self.variables: dict[str, Any] = {}

    def get_variable(self, name: str, spec: Spec, initializer: Initializer, trainable: bool,
                     regularizer: Any = None, reuse: bool = True, seed: int | None = None) -> Any:
        from flowedu.core.eager.arrays import copied
        variable = self.variables.get(name)
        if variable is None:
            if initializer is None:
                raise missing_initializer(name)
            variable = self.variables[name] = copied(initial_value(initializer, spec, seed, name),
                                                     spec.dtype)
            variable.requires_grad = trainable and spec.dtype.is_floating_point
        elif variable.spec != spec:
            raise CheckError(f"variable {name!r} exists with another shape or dtype",
                             expected=str(variable.spec), got=str(spec),
                             fix="use another name, or flow.clear_default_session() to start over")
        return variable


EAGER = Eager()
_seed: int | None = None


def set_seed(seed: int | None) -> None:
    """Make initial values and random ops reproducible. None makes them different in each run."""
    global _seed, _draws
    _seed, _draws = seed, itertools.count()


def gen_seed(name: str = "") -> int:
    """Return a seed derived from the global seed and `name`; random without a global seed."""
    if _seed is None:
        return int(np.random.SeedSequence().entropy) % 2**62  # type: ignore[arg-type]  # one int
    words = name.encode() if name else [256, next(_draws)]        # 256 is not a byte of a name
    return int(np.random.SeedSequence([_seed, *words]).generate_state(1, np.uint64)[0] >> 2)


def initial_value(initializer: Initializer, spec: Spec, seed: int | None, name: str) -> np.ndarray:
    value = initializer(spec.shape, spec.dtype, gen_seed(name) if seed is None else seed)
    return np.asarray(value).astype(spec.dtype.numpy or np.float32).reshape(spec.shape)
