"""utils.checkpoint: generator states, saved so that a custom backward pass redraws the same random values."""
from __future__ import annotations

import flowedu as flow


def get_device_states(*args) -> tuple[list[int], list[flow.Tensor]]:
    """Return (GPUs of the tensors in args, generator state of each GPU)."""
    devices = sorted({x.get_device() for x in args if isinstance(x, flow.Tensor) and x.is_cuda})
    return devices, [flow.cuda.get_rng_state(d) for d in devices]


def set_device_states(devices, states, *, device_type: str | None = None) -> None:
    """Restore generator states that get_device_states returned."""
    for device, state in zip(devices, states):
        flow.cuda.set_rng_state(state, device)
