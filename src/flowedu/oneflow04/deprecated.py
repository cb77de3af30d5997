"""Deprecated names of OneFlow 0.1 and 0.2 that OneFlow 0.4 accepts: flow.deprecated."""
from __future__ import annotations

from flowedu.oneflow04.job.scope import namespace as variable_scope
from flowedu.oneflow04.job.scope import placement


def device_prior_placement(device_tag: str, machine_device_ids) -> placement:
    """Return flow.scope.placement(device_tag, machine_device_ids); the old name prints a warning.

    Args:
        device_tag: "cpu" or "gpu".
        machine_device_ids: device ids such as "0:0-3", or a list of them.
    """
    print("device_prior_placement is deprecated: use flow.scope.placement")
    return placement(device_tag, machine_device_ids)


def fixed_placement(device_tag: str, machine_device_ids) -> placement:
    """Return flow.scope.placement(device_tag, machine_device_ids); the old name prints a warning.

    Args:
        device_tag: "cpu" or "gpu".
        machine_device_ids: device ids such as "0:0-3", or a list of them.
    """
    print("fixed_placement is deprecated: use flow.scope.placement")
    return placement(device_tag, machine_device_ids)


__all__ = ["device_prior_placement", "fixed_placement", "variable_scope"]
