"""flow.scope: where ops run (placement), how devices are seen (view), and how things are called (namespace)."""
from __future__ import annotations

from flowedu.core.layers.context import current
from flowedu.errors import CheckError, UnsupportedError
from flowedu.oneflow04.job.placement import Placement


class namespace:
    """`with flow.scope.namespace("block1"):` variables and named ops inside get the prefix "block1-"."""

    def __init__(self, name: str):
        if not isinstance(name, str) or not name:
            raise CheckError("scope.namespace: name is not a string", expected="a non-empty str", got=repr(name),
                             fix='scope.namespace("block1")')
        self.name = name

    def __enter__(self):
        self.context = current()
        self.context.namespaces.append(self.name)

    def __exit__(self, *exc):
        self.context.namespaces.pop()


class placement(Placement):
    """`with flow.scope.placement("cpu", "0:0-1"):` ops and variables made inside a job are on these devices.

    The innermost one counts; inputs that are elsewhere are moved. Not entered, it is a value for
    `config.default_placement_scope`.
    """

    def __enter__(self):
        self.context = current()
        if self.context.in_job:
            self.context.placements.append(self.context.session.located(self))
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
    """All devices as one: a blob is one logical array, however it lies on them (the default)."""


class mirrored_view(_View):
    """Every device runs the body on arrays of its own; variables are shared, their gradients summed."""

    mirrored = True


def mirrored_view_enabled() -> bool:
    """Whether ops run in a mirrored view here."""
    context = current()
    return context.in_job and context.views.mirrored


def consistent_view_enabled() -> bool:
    """Whether ops run in a consistent view here."""
    return not mirrored_view_enabled()


class Scope:
    """What surrounds an op of a job: device_tag, placement, namespace, view."""

    def __init__(self, context):
        self.placement = context.placement
        self.device_parallel_desc_symbol = self.placement
        self.device_tag = self.placement.device_tag
        self.namespace = "-".join(context.namespaces)
        self.view = "mirrored" if context.views.mirrored else "consistent"

    def __repr__(self) -> str:
        return f"<scope {self.placement}, {self.view} view, namespace {self.namespace!r}>"


def current_scope() -> Scope:
    """The scope at this place of a job's body."""
    context = current()
    if not context.in_job:
        raise UnsupportedError("current_scope: not inside a job", expected="a call in the body of a job function",
                               got="a call outside", fix="move it into the function decorated with @flow.global_function")
    return Scope(context)


def cast_to_current_logical_view(x):
    """`x` as a blob of the present view: itself, or split over the devices along axis 0, or joined."""
    context = current()
    if not context.in_job:
        return x
    return context.views.cast(context.check_blob(x))
