"""flow.return_types: the named results of max, min, sort, ... along an axis: `values` and `indices`."""
from __future__ import annotations

from collections import namedtuple


def _pair(name: str):
    base = namedtuple(name, ["values", "indices"])

    def __repr__(self) -> str:
        return f"flowedu.return_types.{name}(\nvalues={self.values!r},\nindices={self.indices!r})"

    return type(name, (base,), {"__slots__": (), "__repr__": __repr__, "__module__": __name__,
                                "__doc__": f"What flow.{name} along an axis gives: values and indices."})


max, min, sort, topk, kthvalue, median, mode, cummax, cummin = map(_pair, (
    "max", "min", "sort", "topk", "kthvalue", "median", "mode", "cummax", "cummin"))
nanmedian = _pair("nanmedian")
