"""flow.scope: namespaces; placements and views, which chapter 6 fills with meaning."""
from __future__ import annotations

from flowedu.context import current
from flowedu.errors import CheckError


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


class _Inert:
    """A scope that changes nothing on one device."""

    def __init__(self, *args, **kwargs):
        self.args = args

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass


class placement(_Inert):
    """`with flow.scope.placement("cpu", "0:0"):` one device holds everything here, so results do not change."""

    def __init__(self, device_tag: str, machine_device_ids, hierarchy=None):
        if device_tag not in ("cpu", "gpu", "cuda"):
            raise CheckError("scope.placement: unknown device tag", expected='"cpu" or "gpu"', got=repr(device_tag),
                             fix='scope.placement("cpu", "0:0")')
        super().__init__(device_tag, machine_device_ids)


def consistent_view() -> _Inert:
    """All devices as one (the default)."""
    return _Inert()
