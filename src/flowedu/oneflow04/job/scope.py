"""Placements, views, and namespaces of ops: flow.scope."""
from __future__ import annotations

from flowedu.core.layers.context import current
from flowedu.errors import CheckError, UnsupportedError
from flowedu.oneflow04.job.placement import Placement


class namespace:
    """A context manager that adds the prefix "<name>-" to variables and named ops.

    For example, `with flow.scope.namespace("block1"):`.

    Args:
        name: the prefix, a string that is not empty.
    """

    def __init__(self, name: str):
        if not isinstance(name, str) or not name:
            raise CheckError("scope.namespace: name is not a string", expected="a non-empty str",
                             got=repr(name), fix='scope.namespace("block1")')
        self.name = name

    def __enter__(self):
        self.context = current()
        self.context.namespaces.append(self.name)

    def __exit__(self, *exc):
        self.context.namespaces.pop()


class placement(Placement):
    """A context manager that places ops and variables of a job: `with flow.scope.placement("cpu", "0:0-1"):`.

    The innermost placement counts, and inputs from other devices are moved. A placement that is not entered
    is a value for `config.default_placement_scope`.

    Args:
        device_tag: "cpu" or "gpu" (or "cuda").
        machine_device_ids: "0:0", "0:0-3" (machine:first-last), or a list of such strings.
        hierarchy: the sizes of the grid of devices; None is one row.
    """

    def __enter__(self):
        self.context = current()
        if self.context.in_job:
            self.context.placements.append(self.context.session.locate(self))
        return self

    def __exit__(self, *exc):
        if self.context.in_job:
            self.context.placements.pop()


class _View:
    """A logical view: a context manager in a body, and a value for `config.default_logical_view`."""

    mirrored = False

    def __enter__(self):
        self.context = current()
        if self.context.in_job:
            self.context.views.stack.append(self.mirrored)
        return self

    def __exit__(self, *exc):
        if self.context.in_job:
            self.context.views.stack.pop()


class consistent_view(_View):
    """View of all devices as one: a blob is one logical array, with any layout on the devices (default)."""


class mirrored_view(_View):
    """A view in which every device runs the body on its own arrays.

    Variables are shared, and their gradients are summed.
    """

    mirrored = True


def mirrored_view_enabled() -> bool:
    """Return True in a mirrored view."""
    context = current()
    return context.in_job and context.views.mirrored


def consistent_view_enabled() -> bool:
    """Return True in a consistent view."""
    return not mirrored_view_enabled()


class Scope:
    """The scope of an op of a job: device_tag, placement, namespace, and view.

    Args:
        context: the context of the job.
    """

    def __init__(self, context):
        self.placement = context.placement
        self.device_parallel_desc_symbol = self.placement
        self.device_tag = self.placement.device_tag
        self.namespace = "-".join(context.namespaces)
        self.view = "mirrored" if context.views.mirrored else "consistent"

    def __repr__(self) -> str:
        return f"<scope {self.placement}, {self.view} view, namespace {self.namespace!r}>"


def current_scope() -> Scope:
    """Return the scope at this position of a job's body.

    Raises:
        UnsupportedError: the call is outside of a job.
    """
    context = current()
    if not context.in_job:
        raise UnsupportedError("current_scope: not inside a job",
                               expected="a call in the body of a job function",
                               got="a call outside",
                               fix="move it into the function decorated with @flow.global_function")
    return Scope(context)


def cast_to_current_logical_view(x):
    """Convert a blob to the current view: unchanged, split over the devices along axis 0, or joined.

    Args:
        x: a blob.
    """
    context = current()
    if not context.in_job:
        return x
    return context.views.cast(context.check_blob(x))
