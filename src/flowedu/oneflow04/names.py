"""Names with two meanings: a function of OneFlow 0.4 and a newer function or module for tensors.

For example, `flow.transpose` takes a blob and a permutation, or a tensor and two axes. `nn.MSELoss(x, y)` is
a function of OneFlow 0.4, and `nn.MSELoss()` is a module.

A public name refers to the newer function. That function looks up this table if a call does not match its
signature: the first argument is not a tensor, or other arguments have a form that it does not accept
(diagnostics/present.py and diagnostics/function.pyx). The choice depends on the arguments:

- With a blob, or in a job body without a tensor, the older function is called.
- With a tensor, the newer function is called, unless only the older one accepts the call. Such a call has a
  keyword or argument that only OneFlow 0.4 has (perm=, axis=, "DESCENDING").
- Outside jobs, creation functions (zeros, eye) are those of tensors.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import NamedTuple

from flowedu.core.eager.dispatch import TensorBase
from flowedu.core.layers.context import current
from flowedu.core.values.blob import BlobDef
from flowedu.core.values.dtype import bool_, dtype
from flowedu.core.values.size import Size
from flowedu.diagnostics.present import register_choices
from flowedu.oneflow04 import math
from flowedu.oneflow04.functions import (
    gather_scatter,
    pad_slice_broadcast,
    ranges_and_triangles,
    shapes_and_constants,
    sort_and_top_k,
)
from flowedu.oneflow04.nn import feature_maps, group_norm, losses


def _is_never_older(args: tuple) -> bool:
    return False


class Older(NamedTuple):
    """The meaning of a name in OneFlow 0.4.

    Attributes:
        function: the function of OneFlow 0.4.
        sure: types of a second argument that rule out the older function. Tuples and lists rule it out if
            they have only ints. None means that any second argument rules it out.
        means: a predicate of the arguments, True if the call is one of the older function although the first
            argument is a tensor.
        values: for classes, the number of tensors or blobs at the start of a call to the older function.
    """

    function: Callable
    sure: tuple[type, ...] | None = None
    means: Callable[[tuple], bool] = _is_never_older
    values: int = 0


def _second(*kinds: type) -> Callable[[tuple], bool]:
    """Return a predicate: True if the second argument has one of these types."""
    return lambda args: len(args) > 1 and isinstance(args[1], kinds)


def _a_word(args) -> bool:
    return any(isinstance(a, str) for a in args)


def _pairs(args) -> bool:
    return (len(args) > 1 and (not isinstance(args[1], (list, tuple)) or not args[1]
                               or not isinstance(args[1][0], int)))


def _no_sizes(args) -> bool:
    sizes = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else ()
    return any(type(n) in (bool, float, str) for n in sizes)


def _not_a_mask(args) -> bool:
    return len(args) > 1 and getattr(args[1], "dtype", bool_) is not bool_


def _no_axis(args) -> bool:
    return len(args) > 1 and not isinstance(args[1], int)


_clip, _matmul = Older(math.clip_by_value), Older(math.matmul)
OLDER = {
    "argsort": Older(sort_and_top_k.argsort, (), _a_word),
    "argwhere": Older(gather_scatter.argwhere),
    "clamp": _clip,
    "clip": _clip,
    "clip_by_scalar": _clip,
    "concat": Older(shapes_and_constants.concat),
    "diag": Older(ranges_and_triangles.diag),
    "eye": Older(ranges_and_triangles.eye),
    "flatten": Older(shapes_and_constants.flatten),
    "gather": Older(gather_scatter.gather, (int,), _no_axis),
    "linalg.matmul": _matmul,
    "masked_fill": Older(shapes_and_constants.masked_fill, (), _not_a_mask),
    "matmul": _matmul,
    "nonzero": Older(gather_scatter.nonzero),
    "ones": Older(shapes_and_constants.ones, (), _second(dtype, type)),
    "ones_like": Older(shapes_and_constants.ones_like),
    "pad": Older(pad_slice_broadcast.pad, (tuple, list), _pairs),
    "reshape": Older(shapes_and_constants.reshape, (int, tuple, list, Size), _no_sizes),
    "sort": Older(sort_and_top_k.sort, (), _a_word),
    "squeeze": Older(shapes_and_constants.squeeze, (int, tuple), _second(list)),
    "stack": Older(shapes_and_constants.stack),
    "swapaxes": Older(pad_slice_broadcast.swapaxes),
    "transpose": Older(shapes_and_constants.transpose, (int,), _second(list, tuple)),
    "tril": Older(ranges_and_triangles.tril),
    "triu": Older(ranges_and_triangles.triu),
    "where": Older(shapes_and_constants.where),
    "zeros": Older(shapes_and_constants.zeros, (), _second(dtype, type)),
    "zeros_like": Older(shapes_and_constants.zeros_like),
    **{f"nn.{name}": Older(getattr(home, name), values=count) for home, count, names in (
        (losses, 2, "BCELoss BCEWithLogitsLoss KLDivLoss L1Loss MSELoss"),
        (losses, 3, "MarginRankingLoss TripletMarginLoss"),
        (group_norm, 1, "GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d"),
        (feature_maps, 1, "PixelShuffle")) for name in names.split()},
}


class Choice:
    """The choice between the two meanings of a name: `newer` (a tensor function or a module) and `older`.

    Attributes for diagnostics/function.pyx:
        most: the number of positional arguments of the newer function.
        sure: see Older.
    """

    def __init__(self, path: str, newer: Callable):
        self.path, self.newer = path, newer
        self.older, self.sure, self.means, self.values = OLDER[path]
        parameters = inspect.signature(newer).parameters.values()
        starred = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        self.keywords = frozenset(p.name for p in parameters)
        self.most = (1 << 30 if starred else sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
                                                 for p in parameters))

    def __reduce__(self):
        return Choice, (self.path, self.newer)

    def fits(self, args: tuple, kwargs: dict) -> bool:
        """Return True if a call with tensors can mean the newer function."""
        return kwargs.keys() <= self.keywords and len(args) <= self.most and not self.means(args)

    def choose(self, args: tuple, kwargs: dict) -> Callable:
        """Return the function that a call means."""
        in_job, first = current().in_job, args[0] if args else None
        if type(first) is tuple and first:
            first = first[0]
        if type(first) is not int or in_job:                      # not zeros(2, 3): sizes
            values = [*args, *kwargs.values()]
            values += [y for x in values if isinstance(x, (list, tuple)) for y in x]
            if (any(isinstance(x, BlobDef) for x in values) or in_job
                and not any(isinstance(x, TensorBase) for x in values)):
                return self.older
        return self.newer if self.fits(args, kwargs) else self.older

    @property
    def text(self) -> str:
        """The documentation of both functions."""
        if self.values:
            return (f"{self.newer.__doc__}\n\n    Called with blobs or tensors it is the function of OneFlow "
                    f"0.4: {self.newer.__name__}{inspect.signature(self.older)}.")
        older, newer = (inspect.cleandoc(f.__doc__ or "") for f in (self.older, self.newer))
        return (f"Of blobs (OneFlow 0.4): {older}\n\n"
                f"Of tensors: {self.newer.__name__}{inspect.signature(self.newer)}. {newer}")

    def constructor(self) -> Callable:
        """Return a `__new__` for the class, which calls the older function if the first arguments are values.
        """
        cls, function, count = self.newer, self.older, self.values
        names = tuple(inspect.signature(function).parameters)[:count]

        def __new__(kind, *args, **kwargs):
            if kind is cls:                                       # not a subclass
                given = (*args[:count], *(kwargs[n] for n in names[len(args):] if n in kwargs))
                if len(given) == count and all(isinstance(x, (BlobDef, TensorBase)) for x in given):
                    return function(*args, **kwargs)
            return object.__new__(kind)

        return __new__


register_choices(lambda path, value: Choice(path, value) if path in OLDER else None)
