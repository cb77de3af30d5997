"""Loss of a train job whose optimizer is set in the function_config (OneFlow before 0.2): flow.losses."""
from __future__ import annotations

from flowedu.core.layers.context import current
from flowedu.core.values.blob import BlobDef
from flowedu.errors import CheckError, UnsupportedError


def add_loss(loss: BlobDef) -> None:
    """Train on `loss` with the optimizer of config.train.primary_lr and config.train.model_update_conf.

    The call must be inside a train job. The losses of several calls are summed, each as the mean of its
    elements. If the body also calls the minimize method of an optimizer, that optimizer is used instead.

    Args:
        loss: a blob of the job.

    Raises:
        UnsupportedError: the call is outside of a job.
        CheckError: `loss` is not a blob.
    """
    context = current()
    if not hasattr(context, "add_loss"):
        raise UnsupportedError("losses.add_loss: not inside a job",
                               expected="a call in the body of a job function", got="a call outside",
                               fix='put it into a function decorated with @flow.global_function("train", '
                               'config)')
    if not isinstance(loss, BlobDef):
        raise CheckError("losses.add_loss: the loss is not a blob", expected="a blob of the job",
                         got=type(loss).__name__,
                         fix="add_loss(loss) with the result of a loss function of flow.nn")
    context.add_loss(loss)
