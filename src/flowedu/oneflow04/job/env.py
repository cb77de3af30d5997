"""flow.env: machines, ports and logs, and which rank this is.

Job functions run in one process: several machines are simulated, as devices are. Ranks are those of flow.distributed.

The environment is settled by `flow.env.init()` or when the session starts; later calls say so and return False.
flow.clear_default_session() keeps its settings, and opens it for changes.
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
    """One machine. The ports are those of a container's or tunnel's outer side; -1: the same as elsewhere."""

    id: int
    addr: str
    ctrl_port_agent: int = -1
    data_port_agent: int = -1


class Environment:
    """What was set. `session`: the one that was current when the environment was settled."""

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
    """The machines, the master first: `machine([{"addr": "192.168.1.1"}, {"addr": "192.168.1.2"}])`.

    Args:
        val: one list or tuple, or several arguments, of host names or dictionaries with "addr" and, where needed,
            "ctrl_port_agent" and "data_port_agent".

    Raises: CheckError (AssertionError) for no machine, no address or one that comes twice; UnsupportedError
    (NotImplementedError) for anything else. Two machines or more need ctrl_port.
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
        raise UnsupportedError("flow.env.machine: not a machine", expected='a host name or {"addr": "192.168.1.1"}',
                               got=repr(m), fix='flow.env.machine([{"addr": "192.168.1.1"}])')
    if not isinstance(m.get("addr"), str) or not m["addr"]:
        raise CheckError("flow.env.machine: a machine has no address", expected='{"addr": "192.168.1.1"}', got=repr(m),
                         fix='give each machine an "addr"')
    return Machine(i, m["addr"], m.get("ctrl_port_agent", -1), m.get("data_port_agent", -1))


def ctrl_port(val: int):
    """The port by which machines agree on what to do; the same on all. Needed when there are several."""
    return _set("ctrl_port", int, val, 1, 65535)


def data_port(val: int):
    """The port by which machines exchange data; the same on all."""
    return _set("data_port", int, val, 1, 65535)


def grpc_use_no_signal(val: bool = True):
    """Deprecated: has no effect."""
    print("WARNING: flow.env.grpc_use_no_signal is deprecated, users no longer need to set rpc use signal or not.")
    return _set("grpc_use_no_signal", bool, val)


def log_dir(val: str):
    """The folder of the logs that flow.config.enable_debug_mode(True) asks for. Default: log, in the current folder."""
    return _set("log_dir", str, val)


def logtostderr(val: int):
    """Stored."""
    return _set("logtostderr", int, val)


def logbuflevel(val: int):
    """Stored."""
    return _set("logbuflevel", int, val)


def _set(name: str, kind: type, value, least: int | None = None, most: int | None = None):
    if _too_late():
        return False
    if type(value) is not kind or least is not None and not least <= value <= most:
        limits = f", {least} to {most}" if least is not None else ""
        raise CheckError(f"flow.env.{name}: not a value it takes", expected=f"a value of type {kind.__name__}{limits}",
                         got=repr(value), fix=f"flow.env.{name}({ {int: 50051, bool: True, str: 'log'}[kind]!r})")
    _env.values[name] = value
    return None


def _too_late() -> bool:
    if _env.settled:
        print("Nothing happened because environment has been initialized")
        return True
    return False


# ---- the start
def init() -> bool:
    """Settle the environment; True the first time. ValueError when several machines have no ctrl_port."""
    if _too_late():
        return False
    settle()
    return True


def settle() -> None:
    """What the session does when it starts: check the settings, once."""
    if len(_env.machines) > 1 and "ctrl_port" not in _env.values:
        raise ArgumentError("flow.env: several machines need a ctrl_port", expected="flow.env.ctrl_port(port), the same on "
                            "every machine", got=f"{len(_env.machines)} machines and no ctrl_port",
                            fix="flow.env.ctrl_port(50051) before the first call of a job", at="")
    _env.session = weakref.ref(default_session())


# ---- ranks
def get_rank() -> int:
    """The rank of this process, or thread of flow.distributed.spawn; 0 where one does the work of all virtual devices."""
    return current().rank


def get_world_size() -> int:
    """How many ranks there are: processes, threads or virtual devices."""
    return current().size


def get_local_rank() -> int:
    """The number of this rank among those of its machine."""
    return current().local_rank


def get_node_size() -> int:
    """How many machines the ranks are on."""
    return current().node_size


def get_node_rank() -> int:
    """The number of this rank's machine."""
    return current().node_rank


def is_multi_client() -> bool:
    """True: each rank runs the program itself."""
    return True


# ---- questions
def all_device_placement(device_type: str = "cpu"):
    """flow.placement of all ranks, in a row."""
    from flowedu.core.sbp.names import placement
    return placement.all(device_type)


def value(name: str, default: Any = None) -> Any:
    """What was set for `name`, such as "log_dir"."""
    return _env.values.get(name, default)


def machine_num() -> int:
    """How many machines there are."""
    return len(_env.machines)


def current_machine_id() -> int:
    """The id of the machine this process is on: 0, since one process does the work of all."""
    return 0


class Resource(SimpleNamespace):
    """What the session has: machine_num, cpu_device_num, gpu_device_num (0), and every setting of flow.config by its
    name, those of a group under the group's: resource.collective_boxing.enable_fusion. Unset ones are 0 or False."""

    def __getattr__(self, name: str):
        if name in SESSION:
            return SESSION[name].kind()
        if any(n.startswith(f"{name}.") for n in SESSION):
            return SimpleNamespace(**{n.split(".")[1]: s.kind() for n, s in SESSION.items() if n.startswith(f"{name}.")})
        raise AttributeError(f"Resource has no {name!r}")


def current_resource() -> Resource:
    """The machines, the devices of each, and the settings of flow.config, as they are now."""
    resource = Resource(machine_num=machine_num(), cpu_device_num=1, gpu_device_num=0)
    for name, set_to in default_session().config.items():
        group, _, last = name.rpartition(".")
        if group and group not in vars(resource):
            setattr(resource, group, getattr(resource, group))
        if name != "machine_num":
            setattr(getattr(resource, group) if group else resource, last, set_to)
    return resource
