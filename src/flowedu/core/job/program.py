"""CompiledJob: a job after its body ran once on blobs."""
from __future__ import annotations

from flowedu.core.job.blob import JobBlob
from flowedu.core.job.compiled import Compiled
from flowedu.core.job.context import JobContext
from flowedu.core.job.session import Job, Session
from flowedu.core.layers import context as contexts
from flowedu.core.values import placeholder as ph
from flowedu.core.values.signature import MISSING, convert, leaves
from flowedu.core.values.spec import Spec
from flowedu.errors import jobs as errors


class CompiledJob:
    """A compiled job.

    `defs` is the tree of input definitions. `result` is the body's result, and `fetched` has the
    values of each blob in it. `plain` is True if calls just pass arrays to `only`, a Compiled.
    """

    context_type = JobContext
    plain = True

    def __init__(self, job: Job, session: Session):
        self.job, self.session = job, session
        self.context = context = self.context_type(session, job.name, job.type == "train",
                                                   job.config)
        self.defs = job.signature.input_defs()
        with contexts.use_context(context), context.graph.building(), context.computing():
            blobs = {id(d): self.input(d) for d in leaves(self.defs)}
            arguments = [convert(d, MISSING, lambda leaf, _: blobs[id(leaf)]) for d in self.defs]
            self.result = job.fn(*arguments)
            job.signature.check_return(self.result, lambda x: isinstance(x, JobBlob))
            returned = [context.check_blob(b) for b in leaves(self.result)]
            context.check_goal()
        self.fetched = [b.values for b in returned]
        self.dynamic = [b.is_dynamic for b in returned]
        self.off = tuple(job.config.passes_off) if job.config else ()
        self.complete()

    def input(self, d: ph.ArgBlobDef) -> JobBlob:
        """Return the blob of an argument."""
        if not isinstance(d, ph.FixedTensorDef):
            raise errors.unsupported_argument(self.context.name, d)
        return self.context.blob_type(self.context.graph.input(d.op_name, Spec(d.shape, d.dtype)),
                                      d.op_name, "out", self.context)

    def complete(self) -> None:
        """Complete the graph of the body, so that it can be planned."""
        self.only = Compiled(self.context, [v for values in self.fetched for v in values], self.off)

    def link(self) -> None:
        self.only.link(self.session)
