"""flow.get_variable: named arrays that persist between runs."""
from __future__ import annotations

import numpy as np

from flowedu.core.layers.context import current
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.errors import CheckError
from flowedu.oneflow04.distribute import attach_hint, variable_distribute


def get_variable(name: str, shape=None, dtype=dt.float32, initializer=None, regularizer=None,
                 trainable: bool | None = None,
                 model_name: str | None = None, random_seed: int | None = None, parallel_distribution=None,
                 distribute=None, reuse: bool = True):
    """Return the variable `name`, which is created on first use.

    Jobs that use the same name share the storage.

    Args:
        name: the name of the variable.
        shape: a list or tuple of sizes. Required, but ignored if the job already has the variable.
        dtype: the dtype; ignored if the job already has the variable.
        initializer: an initializer; None uses config.default_initializer_conf.
        regularizer: a regularizer of flow.regularizers, or None.
        trainable: False excludes the variable from training; None is True.
        model_name: variables with the model name "bias" use config.train.secondary_lr, if it is set.
        random_seed: the seed of the initializer; None derives it from flow.random.seed.
        parallel_distribution: OneFlow 0.4's form of `distribute`: "B" or "S(0)", or a list with one entry for
            each axis of the placement's hierarchy.
        distribute: the layout on several devices, flow.distribute.split(axis) or broadcast(); None is
            broadcast().
        reuse: return an existing variable of the job; False raises an error instead.

    Raises:
        CheckError: `name` is not a string, `shape` is missing, or the variable exists and reuse is False.
        JobBuildAndInferError: no initializer is given, or another job created the variable with another shape
            or dtype.
    """
    if not isinstance(name, str):
        raise CheckError("get_variable: name is not a string", expected="a str", got=repr(name),
                         fix='get_variable("w", shape=(3, 4), initializer=...)')
    if not isinstance(shape, (list, tuple)):
        raise CheckError("get_variable: param shape should be a list or tuple of dimension",
                         expected="(units, features)",
                         got=repr(shape), fix="pass the shape even to get an existing variable")
    if not all(isinstance(n, (int, np.integer)) and n >= 0 for n in shape):
        raise CheckError("get_variable: a size is not a number of elements", expected="ints of 0 or more",
                         got=repr(shape), fix="take sizes from blob.shape; a variable has no axis of -1")
    context, wish = current(), variable_distribute(distribute, parallel_distribution, shape)
    spec = Spec(tuple(int(n) for n in shape), dt.as_dtype(dtype or dt.float32, "get_variable: dtype"))
    if model_name is not None:
        context.model_names.setdefault(context.full_name(name), model_name)
    found = context.get_variable(context.full_name(name), spec, initializer or context.default_initializer,
                                 trainable is not False, regularizer, reuse, random_seed)
    return found if wish is None else attach_hint(found, wish)
