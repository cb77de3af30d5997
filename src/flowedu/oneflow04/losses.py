"""flow.losses: the loss of a train job whose optimizer the function_config describes (OneFlow before 0.2)."""
from __future__ import annotations

from flowedu.core.layers.context import current
from flowedu.core.values.blob import BlobDef
from flowedu.errors import CheckError, UnsupportedError


def add_loss(loss: BlobDef) -> None:
    """Train on `loss`: the optimizer is made from config.train.primary_lr and config.train.model_update_conf.

    Only inside a train job; several calls add up, each loss by the mean of its elements. Where the body calls an
    optimizer's minimize, that counts instead.
    """
    context = current()
    if not hasattr(context, "add_loss"):
        raise UnsupportedError("losses.add_loss: not inside a job", expected="a call in the body of a job function",
                               got="a call outside",
                               fix='put it into a function decorated with @flow.global_function("train", config)')
    if not isinstance(loss, BlobDef):
        raise CheckError("losses.add_loss: the loss is not a blob", expected="a blob of the job", got=type(loss).__name__,
                         fix="add_loss(loss) with the result of a loss function of flow.nn")
    context.add_loss(loss)
