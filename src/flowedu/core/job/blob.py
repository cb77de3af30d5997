"""JobBlob: a value of a job whose body runs."""
from __future__ import annotations

from flowedu.core.layers.context import BETWEEN_JOBS, current, unique_name
from flowedu.core.values.blob import BlobDef
from flowedu.errors import CheckError


class JobBlob(BlobDef):
    """An argument of a job's body, or a result of an op or a layer in the body.

    Attributes in addition to BlobDef's: context, of the job; values, one per device; location, the line in the body.
    """

    def __init__(self, value, op_name: str, blob_name: str, context, is_dynamic: bool = False):
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

    def call_op(self, op, inputs: tuple, attrs: tuple):
        """Call an op record on blobs: unwrap the arguments, append a node to the graph, and wrap the results."""
        context = current()
        if not context.in_job:
            raise CheckError(f"a blob of job {self.job_name} is used outside any job", expected="blobs made in the body "
                             "that runs now", got=repr(self), fix=BETWEEN_JOBS)
        return context.apply(lambda *values: op.call(values, attrs), inputs, {}, unique_name(op.name.capitalize()), "out_0")
