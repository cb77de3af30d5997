"""random: functions of the default generator of random numbers."""
import flowedu as flow
from flowedu import (  # noqa: F401
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)


def fork_rng(devices=None, enabled: bool = True, _caller: str = "fork_rng", _devices_kw: str = "devices",
             device_type=None):
    """Return flow.fork_rng(devices, enabled). device_type has no effect: the CPU has the only generator."""
    return flow.fork_rng(devices, enabled)
