"""The call one device makes of an op: local attributes and the Specs of its results."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flowedu.blob.spec import Spec
from flowedu.dist.sbp import local_shape
from flowedu.dist.signature import Signature
from flowedu.errors import FlowError
from flowedu.ops.define import Op


class LocalCall(NamedTuple):
    """Attributes and output Specs on one device."""

    attrs: tuple
    outs: tuple[Spec, ...]


def local_calls(op: Op, specs: Sequence[Spec], attrs: tuple, outs: Sequence[Spec], signature: Signature,
                k: int) -> list[LocalCall] | None:
    """One call per device, or None where the devices' parts do not make up the result.

    The last happens when a cut is uneven: 5 rows of 12 numbers on two devices are 36 and 24 numbers, but 60 numbers
    are cut into 30 and 30, so a reshape from one to the other cannot be done in place.
    """
    known: dict[tuple, LocalCall | None] = {}
    calls = []
    for i in range(k):
        mine = tuple(Spec(local_shape(s, x.shape, k, i), x.dtype) for x, s in zip(specs, signature))
        want = tuple(Spec(local_shape(s, y.shape, k, i), y.dtype) for y, s in zip(outs, signature[len(specs):]))
        if (mine, want) not in known:
            known[mine, want] = _local(op, specs, attrs, mine, want)
        if known[mine, want] is None:
            return None
        calls.append(known[mine, want])
    return calls


def _local(op: Op, specs, attrs, mine, want) -> LocalCall | None:
    try:
        if op.localize is not None:
            names = op.bind(mine, attrs, out=want[0] if want else None, full=specs[0].shape if specs else ())
            changed = op.ask(op.localize, names)
            attrs = tuple(changed.get(n, v) for n, v in zip(op.attrs, attrs))
        return LocalCall(attrs, want) if op.infer(mine, attrs) == want else None
    except FlowError:
        return None
