"""JobBlob: a value of a job while its body runs."""
from __future__ import annotations

from typing import Any

from flowedu.core.graph.ir import GraphValue
from flowedu.core.layers.context import current, unique_name
from flowedu.core.ops.define import Op
from flowedu.core.values.blob import BlobDef
from flowedu.errors import jobs as errors


class JobBlob(BlobDef):
    """An argument of a job's body, or a result of an op or a layer in the body.

    Attributes: `context` of the job, `values` (one per device), `location` (the line in the body).
    """

    def __init__(self, value: GraphValue, op_name: str, blob_name: str, context: Any,
                 is_dynamic: bool = False):
        super().__init__(value, op_name, blob_name)
        self.context, self.is_dynamic = context, is_dynamic

    @property
    def values(self) -> tuple:
        return (self.value,)

    @property
    def job_name(self) -> str:
        return self.context.name

    @property
    def location(self) -> str:
        return getattr(getattr(self.value, "node", None), "line", "")

    def call_op(self, op: Op, inputs: tuple, attrs: tuple) -> Any:
        """Call an op record on blobs: append a node to the graph and wrap its outputs."""
        context = current()
        if not context.in_job:
            raise errors.foreign_blob(self, "outside any job")
        return context.apply(lambda *values: op.call(values, attrs), inputs, {},
                             unique_name(op.name.capitalize()), "out_0")
