"""The two views of several devices in one job.

Consistent view: a blob is one logical value. distributed/spread.py places it on the devices when the graph is
complete.

Mirrored view: a blob is one value per device. A front-end function that the body calls runs once per device.

Gradient accumulation works like a mirrored view, with micro-batches instead of devices. The body runs once,
each of its calls is made once per micro-batch, and the gradients are summed at the variables.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from flowedu.core.graph.ir import GraphValue
from flowedu.core.job.blob import JobBlob
from flowedu.core.job.values import flat, shaped_like
from flowedu.core.layers.context import unique_name
from flowedu.core.ops.concat import concat
from flowedu.core.ops.concat import slice as slice_op
from flowedu.core.values.place import Place, parts
from flowedu.errors import CheckError, UnsupportedError
from flowedu.oneflow04.job.placed_blobs import ConsistentBlob, MirroredBlob


class Views:
    """The views of one job under construction.

    Attributes:
        stack: for each entered scope, True if it is mirrored; the last one counts.
        micro_batches: the number of micro-batches of gradient accumulation.
    """

    def __init__(self, context):
        self.context = context
        settings = context.config.values if context.config else {}
        view = settings.get("default_logical_view") or settings.get("default_distribute_strategy")
        self.stack = [bool(getattr(view, "mirrored", False))]
        self.micro_batches = (int(settings.get("train.num_gradient_accumulation_steps", 1))
                              if context.training else 1)
        if self.micro_batches > 1 and self.stack[0]:
            raise UnsupportedError("num_gradient_accumulation_steps: not in the mirrored view", got="both",
                                   expected="a job in the consistent view",
                                   fix="leave out default_logical_view(flow.scope.mirrored_view())")
        self._pieces: dict[GraphValue, tuple[GraphValue, ...]] = {}
        self._joined: dict[tuple[GraphValue, ...], GraphValue] = {}

    @property
    def mirrored(self) -> bool:
        return self.stack[-1] or self.micro_batches > 1

    def places(self) -> list[Place]:
        """Return the devices of each value of a mirrored blob."""
        place = self.context.placement.place
        return ([place] * self.micro_batches if self.micro_batches > 1
                else [Place((d,), (1,)) for d in place.devices])

    # ---- a call in the mirrored view
    def apply(self, f: Callable, args: tuple, kwargs: dict, label: str, blob_name: str,
              given: Sequence[JobBlob]):
        places, per_place = self.places(), []
        for i, place in enumerate(places):
            mine = self.context.unwrap(args, kwargs, lambda b, i=i: self.pieces(b)[i])
            result, _ = self.context.call(f, *mine, label if len(places) == 1 else f"{label}_{i}", place)
            per_place.append(flat(result))
        blobs = [self._blob(values, label if len(per_place[0]) == 1 else f"{label}_{n}", blob_name, given)
                 for n, values in enumerate(zip(*per_place))]
        return shaped_like(result, blobs)

    def _blob(self, values: tuple[GraphValue, ...], name: str, blob_name: str,
              given: Sequence[JobBlob]) -> JobBlob:
        for b in given:
            if len(b.values) == len(values) and all(x is y for x, y in zip(b.values, values)):
                return b
        dynamic = self.context.is_dynamic(values[0], given)
        return MirroredBlob(values, name, blob_name, self.context, dynamic)

    # ---- conversions between the views
    def cast(self, blob: JobBlob) -> JobBlob:
        if self.mirrored and isinstance(blob, ConsistentBlob):
            return MirroredBlob(self.pieces(blob), blob.op_name, blob.blob_name, self.context,
                                blob.is_dynamic)
        if not self.mirrored and isinstance(blob, MirroredBlob):
            return self.consistent(blob)
        return blob

    def pieces(self, blob: JobBlob) -> tuple[GraphValue, ...]:
        """Return one value per device: variables and constants are copied to all, data is split along axis 0.
        """
        places = self.places()
        k, value = len(places), blob.value
        if isinstance(blob, MirroredBlob):
            if len(blob.values) != k:
                raise CheckError(f"{blob.op_name}: the blob is mirrored on {len(blob.values)} devices",
                                 got=repr(blob),
                                 expected=f"one value on each of the {k} devices of this placement",
                                 fix="use it in the placement where it was made, or return it from the job")
            return blob.values
        if k == 1 or not self.context.is_data(value):
            return (value,) * k
        if value not in self._pieces:
            if self.micro_batches > 1 and (not value.shape or value.shape[0] % k):
                raise CheckError(f"{blob.op_name}: the batch cannot be cut into {k} micro-batches",
                                 expected=f"a first axis that {k} divides", got=f"shape {value.shape}",
                                 fix="change the batch size, or num_gradient_accumulation_steps")
            if not value.shape or value.shape[0] < k:
                raise CheckError(f"{blob.op_name}: too few rows for {k} devices", got=f"shape {value.shape}",
                                 expected=f"{k} rows or more along axis 0",
                                 fix="feed a larger batch, or use fewer devices")
            self._pieces[value] = tuple(
                self.context.call(_piece(i, k), (value,), {}, unique_name("DistributeSplit"), place)[0]
                for i, place in enumerate(places))
        return self._pieces[value]

    def consistent(self, blob: JobBlob) -> ConsistentBlob:
        """Return the blob as one logical value: the values of the devices, joined along axis 0."""
        if isinstance(blob, ConsistentBlob):
            return blob
        if len(blob.values) == 1:
            value = blob.values[0]
        else:
            if blob.values not in self._joined:
                self._joined[blob.values] = self.context.call(_join, blob.values, {},
                                                              unique_name("DistributeConcat"),
                                                              self.context.placement.place)[0]
            value = self._joined[blob.values]
        return ConsistentBlob(value, blob.op_name, blob.blob_name, self.context, blob.is_dynamic)


def _join(*values):
    return concat(*values, axis=0)


def _piece(i: int, k: int) -> Callable:
    """Return a function that takes the i-th of k balanced parts along axis 0."""
    def piece(x):
        sizes = parts(x.shape[0], k)
        start = sum(sizes[:i])
        return slice_op(x, start=(start, *(0,) * (x.ndim - 1)), stop=(start + sizes[i], *x.shape[1:]),
                        step=(1,) * x.ndim)
    return piece
