"""flow.function_config(): the settings of one job. flow.config: the settings of the session.

Each setting is a method, `config.enable_inplace(False)`; oneflow04/job/settings.py has the tables.
"""
from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from flowedu.core.graph.passes import NAMES as PASSES
from flowedu.core.job.session import default_session
from flowedu.errors import CheckError
from flowedu.errors.once import say_once
from flowedu.oneflow04.job import env
from flowedu.oneflow04.job.initializer_conf import initializer_of
from flowedu.oneflow04.job.placement import TAGS, Placement
from flowedu.oneflow04.job.scope import consistent_view, mirrored_view
from flowedu.oneflow04.job.settable import Settable, described
from flowedu.oneflow04.job.settings import JOB, SESSION, SWITCHES


class FunctionConfig(Settable):
    """Settings of one or more jobs: `config = flow.function_config(); config.default_data_type(flow.float)`.

    Each setting is a method that returns None. An unknown name or a value of the wrong type raises an
    AssertionError. For a bool setting, a call without a value means True.

    Methods with their own help: default_initializer_conf, default_placement_scope, default_logical_view,
    default_distribute_strategy, static_mem_alloc_policy_white_list, and flowedu's without_passes.

    Attributes:
        values: {name: value} of the settings, with "train.primary_lr" for config.train.primary_lr.
    """

    __slots__ = ("default_initializer", "job_type", "off", "values")
    _what = "function_config"
    _table = JOB

    def __init__(self):
        self.values: dict[str, Any] = {}
        self.default_initializer: Callable | None = None
        self.off: tuple[str, ...] = ()
        self.job_type: str | None = None

    def __setattr__(self, name: str, value) -> None:
        if name not in FunctionConfig.__slots__:
            raise CheckError(f"function_config.{name} is not assigned to", expected="a call",
                             got=f"{name} = {value!r}", fix=f"config.{name}({value!r})")
        super().__setattr__(name, value)

    def _store(self, name: str, value) -> None:
        self.values[name] = value
        if name.startswith("tensorrt."):
            self.values["use_tensorrt"] = True

    def __repr__(self) -> str:
        return (f"<function_config "
                f"{', '.join(f'{k}={v!r}' for k, v in self.values.items()) or 'with nothing set'}>")

    def copy(self) -> FunctionConfig:
        """Return a copy of the settings."""
        new = FunctionConfig()
        new.values = {k: dict(v) if isinstance(v, dict) else v for k, v in self.values.items()}
        new.default_initializer, new.off, new.job_type = self.default_initializer, self.off, self.job_type
        return new

    # ---- settings with their own checks
    def default_initializer_conf(self, initializer: Callable | Mapping) -> None:
        """Set the initializer of variables without one.

        Args:
            initializer: an initializer, or a dictionary in the form of OneFlow's configuration files.
        """
        self.default_initializer = initializer_of(initializer)

    def default_placement_scope(self, scope: Placement | str) -> None:
        """Set the placement of the body.

        Args:
            scope: a `flow.scope.placement("cpu", "0:0-1")` that is not entered. A device tag alone is
                deprecated.
        """
        if isinstance(scope, str) and scope in TAGS:
            print("WARNING: function_config.default_placement_scope takes a flow.scope.placement(tag, ids); "
                  "a device tag alone is deprecated")
        elif not isinstance(scope, Placement):
            raise CheckError("function_config.default_placement_scope: not a placement", got=repr(scope),
                             expected='flow.scope.placement("cpu", "0:0"), or a device tag',
                             fix='config.default_placement_scope(flow.scope.placement("cpu", "0:0"))')
        self.values["default_placement_scope"] = scope

    def default_logical_view(self, scope) -> None:
        """Set the view of the body.

        Args:
            scope: `flow.scope.consistent_view()` (the default) or `flow.scope.mirrored_view()`.
        """
        if not isinstance(scope, (consistent_view, mirrored_view)):
            raise CheckError("function_config.default_logical_view: not a view", got=repr(scope),
                             expected="flow.scope.mirrored_view() or flow.scope.consistent_view()",
                             fix="config.default_logical_view(flow.scope.mirrored_view())")
        self.values["default_logical_view"] = scope

    def default_distribute_strategy(self, scope) -> None:
        """Call default_logical_view, the newer name.

        Args:
            scope: `flow.scope.consistent_view()` or `flow.scope.mirrored_view()`.
        """
        print("WARNING: function_config.default_distribute_strategy has been deprecated. Please use "
              "function_config.default_logical_view instead.")
        self.default_logical_view(scope)

    @property
    def static_mem_alloc_policy_white_list(self) -> MemoryPolicies:
        """The policies of OneFlow's memory planner, which have no effect. The first change warns.

        Methods are .add(policy), .remove(policy), and .has(policy), with policies such as
        .policy_mem_size_first().
        """
        return MemoryPolicies(self.values)

    static_mem_alloc_algo_white_list = static_mem_alloc_policy_white_list

    def without_passes(self, *names: str) -> None:
        """Compile the job without some passes.

        Args:
            *names: simplify, cse, dead, norm_clip, layout, fold_norm, pool_first, masked_softmax, bands, fuse
                (or its parts fuse_add and fuse_scale), update, inplace, or reuse.
        """
        for n in names:
            if n not in PASSES:
                raise CheckError("without_passes: unknown pass", expected=", ".join(PASSES), got=repr(n),
                                 fix="job.show() lists the passes that ran")
        self.off = names

    # ---- properties that the job reads
    @property
    def passes_off(self) -> tuple[str, ...]:
        """The passes to omit: those of without_passes, and those of settings such as enable_inplace(False).
        """
        more = [p for p, name in SWITCHES.items() if self.values.get(name) is False]
        return tuple(dict.fromkeys([*self.off, *more]))

    @property
    def default_view(self):
        """The view that was set, or None."""
        return self.values.get("default_logical_view")


FunctionConfig.__doc__ = f"{FunctionConfig.__doc__}\n{described(JOB)}"
function_config = ExecutionConfig = FunctionConfig


class MemoryPolicies:
    """The policies of OneFlow's memory planner. They are stored without effect."""

    _ALL = ("use_mem_size_first_algo", "use_mutual_exclusion_first_algo", "use_time_line_algo")

    def __init__(self, values: dict[str, Any]):
        self._values = values

    def _policies(self) -> tuple[str, ...]:
        return self._values.get("static_mem_alloc_policy_white_list", self._ALL[:1])

    def _checked(self, policy: str) -> str:
        if policy not in self._ALL:
            raise CheckError("static_mem_alloc_policy_white_list: unknown policy",
                             expected=", ".join(self._ALL),
                             got=repr(policy), fix="white_list.add(white_list.policy_mem_size_first())")
        return policy

    def has(self, policy: str) -> bool:
        return self._checked(policy) in self._policies()

    def add(self, policy: str) -> None:
        say_once("function_config.static_mem_alloc_policy_white_list", "memory is planned in one way")
        policies = dict.fromkeys([*self._policies(), self._checked(policy)])
        self._values["static_mem_alloc_policy_white_list"] = tuple(policies)

    def remove(self, policy: str) -> None:
        self._checked(policy)
        self._values["static_mem_alloc_policy_white_list"] = tuple(p for p in self._policies() if p != policy)

    def show(self) -> list[str]:
        return list(self._ALL)

    def policy_mem_size_first(self) -> str:
        return self._ALL[0]

    def policy_mutual_exclusion_first(self) -> str:
        return self._ALL[1]

    def policy_time_line(self) -> str:
        return self._ALL[2]


class GlobalConfig(Settable):
    """Settings of the session: `flow.config.cpu_device_num(2)`.

    The settings take effect when the session starts, at the first call of a job or of a checkpoint function.
    Changing a setting later prints a warning and returns False. flow.clear_default_session() resets all
    settings.

    Methods with their own help: cpu_device_num, gpu_device_num, load_library, load_library_now,
    legacy_model_io_enabled, ctrl_port.
    """

    __slots__ = ()
    _what = "flow.config"
    _table = SESSION

    def __repr__(self) -> str:
        session: Any = default_session()        # a Session04
        values = session.config
        return f"<flow.config {', '.join(f'{k}={v!r}' for k, v in values.items()) or 'with nothing set'}>"

    def _running(self) -> bool:
        session = default_session()
        if session.running or session.compiling:
            print("Nothing happened because the session is running. (Settings count before the first call of "
                  "a job, or after flow.clear_default_session().)")
            return True
        return False

    def _call(self, setting, value):
        return False if self._running() else super()._call(setting, value)

    def _store(self, name: str, value) -> None:
        session: Any = default_session()        # a Session04
        session.config[name] = value

    def cpu_device_num(self, n: int):
        """Set the number of virtual CPU devices per machine.

        Args:
            n: an int from 1 to 4096; default 1.
        """
        if self._running():
            return False
        if type(n) is not int or not 1 <= n <= 4096:
            raise CheckError("flow.config.cpu_device_num: not a number of devices",
                             expected="an int, 1 to 4096", got=repr(n), fix="flow.config.cpu_device_num(1)")
        return self._store("cpu_device_num", n)

    def gpu_device_num(self, n: int):
        """Set the number of devices per machine.

        Without a GPU they are CPU devices, as in OneFlow's CPU build.

        Args:
            n: an int of 0 or more; 0 changes nothing.
        """
        if type(n) is not int or n < 0:
            raise CheckError("flow.config.gpu_device_num: not a number of devices",
                             expected="an int, 0 or more", got=repr(n), fix="flow.config.gpu_device_num(1)")
        if default_session() not in _notified:
            print("INFO: flow.config.gpu_device_num is equivalent to flow.config.cpu_device_num: devices are "
                  "virtual")
            _notified.add(default_session())
        return self.cpu_device_num(n) if n else None

    def legacy_model_io_enabled(self) -> bool:
        """Return True if enable_legacy_model_io() was called.

        Both kinds of checkpoints are read in any case.
        """
        session: Any = default_session()        # a Session04
        return session.config.get("enable_legacy_model_io", False)

    def load_library(self, path: str):
        """Make the user ops of a library available, which flow.custom_op registered under the library's name.

        Args:
            path: the file of the library, which is not loaded.
        """
        if self._running():
            return False
        if not isinstance(path, (str, os.PathLike)):
            raise CheckError("flow.config.load_library: not a path", expected="a str", got=repr(path),
                             fix='flow.config.load_library("final_relu.so")')
        from flowedu.oneflow04.custom import load_library
        return load_library(os.fspath(path))

    load_library_now = load_library

    def ctrl_port(self, port: int):
        """Call flow.env.ctrl_port(port).

        Args:
            port: an int from 1 to 65535.
        """
        return env.ctrl_port(port)


_notified: weakref.WeakSet = weakref.WeakSet()     # sessions in which gpu_device_num printed its notice
GlobalConfig.__doc__ = f"{GlobalConfig.__doc__}\n{described(SESSION)}"
config = GlobalConfig()
