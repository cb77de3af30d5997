"""Properties of the job whose body is running: flow.current_global_function_desc()."""
from __future__ import annotations

from types import SimpleNamespace

from flowedu.core.layers.context import current
from flowedu.core.values.dtype import float32
from flowedu.errors import UnsupportedError


class FunctionDesc:
    """The job that is being built.

    Attributes:
        job_func: the name of the job.
        job_config_proto: the settings by name.
        function_attribute: the placement and the view of the body.
        default_placement_scope: the placement of the body.
        default_logical_view: "mirrored" or "consistent".
        default_data_type: the dtype of config.default_data_type.
        default_initializer_conf: the initializer of variables without one.
    """

    def __init__(self, context):
        values = dict(context.config.values) if context.config else {}
        self.job_func, self._training = context.name, context.training
        self.job_config_proto = SimpleNamespace(job_name=context.name, **values)
        self.default_placement_scope = context.placement
        self.default_logical_view = "mirrored" if context.views.mirrored else "consistent"
        self.default_data_type = values.get("default_data_type", float32)
        self.default_initializer_conf = context.default_initializer
        self.function_attribute = SimpleNamespace(default_placement_scope=self.default_placement_scope,
                                                  default_distribute_strategy=self.default_logical_view)

    def IsTrainable(self) -> bool:
        """Return True for a train job."""
        return self._training


def current_global_function_desc() -> FunctionDesc:
    """Return the job whose body is running.

    Raises:
        UnsupportedError: the call is outside of a job. The error is a NotImplementedError.
    """
    context = current()
    if not context.in_job:
        raise UnsupportedError("current_global_function_desc: not inside a job", got="a call outside",
                               expected="a call in the body of a job function",
                               fix="move it into the function decorated with @flow.global_function")
    return FunctionDesc(context)
