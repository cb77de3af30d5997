"""Machines, ports, logs, and ranks: flow.env.

Job functions run in one process, which simulates several machines and devices. Ranks are those of
flow.distributed.

`flow.env.init()`, or the start of the session, fixes the environment. Later calls print a warning and return
False. flow.clear_default_session() keeps the settings and allows changes again.
"""
from __future__ import annotations

import weakref
from types import SimpleNamespace
from typing import Any, NamedTuple

from flowedu.core.job.session import default_session
from flowedu.core.sbp.ranks import current
from flowedu.errors import ArgumentError, CheckError, UnsupportedError
from flowedu.oneflow04.job.settings import SESSION


class Machine(NamedTuple):
    """One machine.

    Args:
        id: the index of the machine.
        addr: its address.
        ctrl_port_agent: the ctrl_port as seen from outside a container or tunnel; -1 is the common port.
        data_port_agent: the data_port as seen from outside a container or tunnel; -1 is the common port.
    """

    id: int
    addr: str
    ctrl_port_agent: int = -1
    data_port_agent: int = -1


class Environment:
    """The settings of the environment.

    Attributes:
        machines: the machines, the master first.
        values: {name: value} of the settings.
        session: the session in which the environment was fixed, or None.
    """

    def __init__(self):
        self.machines: list[Machine] = [Machine(0, "127.0.0.1")]
        self.values: dict[str, Any] = {}
        self.session: weakref.ref | None = None

    @property
    def settled(self) -> bool:
        session = default_session()
        return session.running or self.session is not None and self.session() is session


_env = Environment()


# ---- settings
def machine(*val):
    """Set the machines, the master first: `machine([{"addr": "192.168.1.1"}, {"addr": "192.168.1.2"}])`.

    Args:
        *val: one list or tuple, or several arguments, of host names or dictionaries with "addr" and
            optionally "ctrl_port_agent" and "data_port_agent". Two or more machines need ctrl_port.

    Raises:
        CheckError: no machine, no address, or an address twice. The error is an AssertionError.
        UnsupportedError: another value. The error is a NotImplementedError.
    """
    if _too_late():
        return False
    given = val[0] if len(val) == 1 and isinstance(val[0], (list, tuple)) else val
    found = [_machine(i, m) for i, m in enumerate(given)]
    twice = sorted({m.addr for m in found if [x.addr for x in found].count(m.addr) > 1})
    if not found or twice:
        raise CheckError("flow.env.machine: " + (f"{twice[0]} comes twice" if twice else "no machine"),
                         expected="one or more different addresses", got=repr(val),
                         fix='flow.env.machine(["192.168.1.1", "192.168.1.2"])')
    _env.machines = found
    return None


def _machine(i: int, m) -> Machine:
    if isinstance(m, str):
        m = {"addr": m}
    if not isinstance(m, dict):
        raise UnsupportedError("flow.env.machine: not a machine",
                               expected='a host name or {"addr": "192.168.1.1"}',
                               got=repr(m), fix='flow.env.machine([{"addr": "192.168.1.1"}])')
    if not isinstance(m.get("addr"), str) or not m["addr"]:
        raise CheckError("flow.env.machine: a machine has no address", expected='{"addr": "192.168.1.1"}',
                         got=repr(m), fix='give each machine an "addr"')
    return Machine(i, m["addr"], m.get("ctrl_port_agent", -1), m.get("data_port_agent", -1))


def ctrl_port(val: int):
    """Set the port over which machines coordinate. Required with several machines.

    Args:
        val: an int from 1 to 65535, the same on all machines.
    """
    return _set("ctrl_port", int, val, 1, 65535)


def data_port(val: int):
    """Set the port over which machines exchange data.

    Args:
        val: an int from 1 to 65535, the same on all machines.
    """
    return _set("data_port", int, val, 1, 65535)


def grpc_use_no_signal(val: bool = True):
    """Print that the setting is deprecated. It has no effect.

    Args:
        val: True or False.
    """
    print("WARNING: flow.env.grpc_use_no_signal is deprecated, users no longer need to set rpc use signal "
          "or not.")
    return _set("grpc_use_no_signal", bool, val)


def log_dir(val: str):
    """Set the folder of the logs of flow.config.enable_debug_mode(True).

    Args:
        val: a path; default: log, in the current folder.
    """
    return _set("log_dir", str, val)


def logtostderr(val: int):
    """Store the setting, which has no effect.

    Args:
        val: an int.
    """
    return _set("logtostderr", int, val)


def logbuflevel(val: int):
    """Store the setting, which has no effect.

    Args:
        val: an int.
    """
    return _set("logbuflevel", int, val)


def _set(name: str, kind: type, value, least: int | None = None, most: int | None = None):
    if _too_late():
        return False
    value_type = type(value)
    outside = least is not None and most is not None and value_type is kind and not least <= value <= most
    if value_type is not kind or outside:
        limits = f", {least} to {most}" if least is not None else ""
        raise CheckError(f"flow.env.{name}: not a value it takes",
                         expected=f"a value of type {kind.__name__}{limits}",
                         got=repr(value),
                         fix=f"flow.env.{name}({ {int: 50051, bool: True, str: 'log'}[kind]!r})")
    _env.values[name] = value
    return None


def _too_late() -> bool:
    if _env.settled:
        print("Nothing happened because environment has been initialized")
        return True
    return False


# ---- initialization
def init() -> bool:
    """Fix the environment. Return True the first time.

    Raises:
        ArgumentError: several machines, but no ctrl_port. The error is a ValueError.
    """
    if _too_late():
        return False
    settle()
    return True


def settle() -> None:
    """Check the settings and fix them for the current session."""
    if len(_env.machines) > 1 and "ctrl_port" not in _env.values:
        raise ArgumentError("flow.env: several machines need a ctrl_port",
                            expected="flow.env.ctrl_port(port), the same on every machine",
                            got=f"{len(_env.machines)} machines and no ctrl_port",
                            fix="flow.env.ctrl_port(50051) before the first call of a job", at="")
    _env.session = weakref.ref(default_session())


# ---- ranks
def get_rank() -> int:
    """Return the rank of this process, or of this thread of flow.distributed.spawn.

    The rank is 0 if one process does the work of all virtual devices.
    """
    return current().rank


def get_world_size() -> int:
    """Return the number of ranks: processes, threads, or virtual devices."""
    return current().size


def get_local_rank() -> int:
    """Return the index of this rank among the ranks of its machine."""
    return current().local_rank


def get_node_size() -> int:
    """Return the number of machines that have ranks."""
    return current().node_size


def get_node_rank() -> int:
    """Return the index of this rank's machine."""
    return current().node_rank


def is_multi_client() -> bool:
    """Return True: each rank runs the program."""
    return True


# ---- queries
def all_device_placement(device_type: str = "cpu"):
    """Return a flow.placement of all ranks in one row.

    Args:
        device_type: "cpu" or "cuda".
    """
    from flowedu.core.sbp.names import placement
    return placement.all(device_type)


def value(name: str, default: Any = None) -> Any:
    """Return a setting of flow.env.

    Args:
        name: the name of the setting, such as "log_dir".
        default: the result if it was not set.
    """
    return _env.values.get(name, default)


def machine_num() -> int:
    """Return the number of machines."""
    return len(_env.machines)


def current_machine_id() -> int:
    """Return 0, the id of the machine of this process. One process does the work of all machines."""
    return 0


class Resource(SimpleNamespace):
    """The resources of the session: machine_num, cpu_device_num, gpu_device_num (0), and its settings.

    Settings of a group are attributes of the group: resource.collective_boxing.enable_fusion. Unset values
    are 0 or False.
    """

    def __getattr__(self, name: str):
        if name in SESSION:
            return SESSION[name].kind()
        if any(n.startswith(f"{name}.") for n in SESSION):
            return SimpleNamespace(**{n.split(".")[1]: s.kind() for n, s in SESSION.items()
                                      if n.startswith(f"{name}.")})
        raise AttributeError(f"Resource has no {name!r}")


def current_resource() -> Resource:
    """Return the machines, the devices of each, and the current settings of flow.config."""
    resource = Resource(machine_num=machine_num(), cpu_device_num=1, gpu_device_num=0)
    session: Any = default_session()        # a Session04
    for name, set_to in session.config.items():
        group, _, last = name.rpartition(".")
        if group and group not in vars(resource):
            setattr(resource, group, getattr(resource, group))
        if name != "machine_num":
            setattr(getattr(resource, group) if group else resource, last, set_to)
    return resource
