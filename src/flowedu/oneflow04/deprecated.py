"""flow.deprecated: older names of OneFlow 0.1 and 0.2, which 0.4 still takes."""
from __future__ import annotations

from flowedu.oneflow04.job.scope import namespace as variable_scope
from flowedu.oneflow04.job.scope import placement


def device_prior_placement(device_tag: str, machine_device_ids) -> placement:
    """The old name of flow.scope.placement."""
    print("device_prior_placement is deprecated: use flow.scope.placement")
    return placement(device_tag, machine_device_ids)


def fixed_placement(device_tag: str, machine_device_ids) -> placement:
    """The old name of flow.scope.placement."""
    print("fixed_placement is deprecated: use flow.scope.placement")
    return placement(device_tag, machine_device_ids)


__all__ = ["device_prior_placement", "fixed_placement", "variable_scope"]
