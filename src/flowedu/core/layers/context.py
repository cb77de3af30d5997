"""Context: where a layer gets variables and names, and whether this is training.

Eagerly that is a store of tensors (`Eager`). While a job is compiled, the job pushes its own context.
"""
from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from flowedu.core.values.blob import BlobDef
from flowedu.core.values.spec import Spec
from flowedu.core.values.thread_state import during, register_fields, thread_state
from flowedu.errors import CheckError, JobBuildAndInferError

register_fields(context=None)                # what layers get variables and names from; None: the eager one
_ids = itertools.count()
_draws = itertools.count()


def current():
    """The context in charge."""
    return thread_state.context or EAGER


def pushed(context) -> during:
    """`with pushed(context):` it is in charge, in this thread: while one compiles a job, others compute eagerly."""
    return during(context=context)


def unique(prefix: str) -> str:
    """`prefix` with a number no other op in this process has: names of ops the user did not name."""
    return f"{prefix}_{next(_ids)}"


class Context:
    """Names and variables.

    Attributes: training; namespaces (see `flow.scope.namespace`); default_initializer; model_names {variable: the
    model_name given to get_variable}; in_job; devices, how many there are where ops run now.
    """

    training = False
    default_initializer = None
    in_job = False
    devices = 1

    def __init__(self):
        self.namespaces: list[str] = []
        self.model_names: dict[str, str] = {}

    def full_name(self, name: str) -> str:
        return "-".join([*self.namespaces, name])


BETWEEN_JOBS = ("pass values between jobs as NumPy arrays: return one from the first job, feed it to the second; share "
                "weights by the names of variables")


def blobs_in(arguments) -> Iterator[BlobDef]:
    """The blobs among the arguments of a call, those in lists too."""
    for x in arguments:
        if isinstance(x, BlobDef):
            yield x
        elif isinstance(x, (list, tuple)):
            yield from blobs_in(x)


class Eager(Context):
    """Variables are tensors in a dictionary; asking again for a name gives the same tensor."""

    training = True

    def __init__(self):
        super().__init__()
        self.variables: dict = {}

    def get_variable(self, name, spec: Spec, initializer, trainable: bool, regularizer=None, reuse: bool = True,
                     seed: int | None = None):
        from flowedu.core.eager.arrays import copied
        found = self.variables.get(name)
        if found is None:
            if initializer is None:
                raise missing_initializer(name)
            found = self.variables[name] = copied(initial_value(initializer, spec, seed, name), spec.dtype)
            found.requires_grad = trainable and spec.dtype.is_floating_point
        elif found.spec != spec:
            raise CheckError(f"variable {name!r} exists with another shape or dtype", expected=str(found.spec),
                             got=str(spec), fix="use another name, or flow.clear_default_session() to start over")
        return found


EAGER = Eager()
_seed: int | None = None


def set_seed(seed: int | None) -> None:
    """Make initial values and random ops reproducible (None: different every time)."""
    global _seed, _draws
    _seed, _draws = seed, itertools.count()


def gen_seed(name: str = "") -> int:
    """A seed: derived from the global one and `name` if that is set, else random."""
    if _seed is None:
        return int(np.random.SeedSequence().entropy % (1 << 62))
    words = name.encode() if name else [256, next(_draws)]        # 256: no byte of a name
    return int(np.random.SeedSequence([_seed, *words]).generate_state(1, np.uint64)[0] >> 2)


def initial_value(initializer, spec: Spec, seed: int | None, name: str) -> np.ndarray:
    """The first value of a variable."""
    value = initializer(spec.shape, spec.dtype, gen_seed(name) if seed is None else seed)
    return np.asarray(value).astype(spec.dtype.numpy or np.float32).reshape(spec.shape)


def missing_initializer(name: str) -> JobBuildAndInferError:
    return JobBuildAndInferError(f"variable {name!r} has no initializer", expected="initializer=...", got="None",
                                 fix="pass one, e.g. flow.zeros_initializer(), or set the job's default_initializer_conf")
