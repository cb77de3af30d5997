"""TracedGraph: the base class of nn.Graph, which compiles eager modules into one plan.

nn/graph adds options, printing, diagrams, state dicts, and recomputation, as in OneFlow 1.0.
"""
from __future__ import annotations

from itertools import count
from time import perf_counter
from typing import Any

from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.group import BaseOptimizer
from flowedu.core.layers.module import Module
from flowedu.core.trace import io
from flowedu.core.trace.blocks import ModuleBlock, make_block
from flowedu.core.trace.compiled import CompiledGraph
from flowedu.core.trace.options import Options
from flowedu.core.values import thread_state as ambient
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import GraphAttributeError
from flowedu.errors import graphs as errors

_counters: dict[str, count] = {}


class TracedGraph:
    """Base class of graphs. `__init__` of a subclass assigns modules; `build` describes one step.

    The first call traces and compiles `build`. Every call runs the complete step, including
    updates. The graph and its modules share the memory of the parameters. See nn.Graph (nn/graph).

    Attributes: name; config (Options); training, is_compiled.
    """

    options_type, block_type, compiled_type = Options, ModuleBlock, CompiledGraph

    def __init__(self) -> None:
        class_name = type(self).__name__
        number = next(_counters.setdefault(class_name, count()))
        self.__dict__.update(class_name=class_name, _name=f"{class_name}_{number}", _blocks={},
                             config=self.options_type(), _optimizers=[], _compiled=None,
                             _states={}, _is_building=False)

    # ---- modules and optimizers
    def __setattr__(self, name: str, value: object) -> None:
        self._need_init(f"self.{name} = ...")
        if isinstance(value, Module):
            self._blocks[name] = make_block(self.block_type, name, "", value)
            object.__setattr__(self, name, self.handle(self._blocks[name]))
        elif isinstance(value, Tensor):
            raise errors.tensor_attribute(self.class_name, name)
        elif isinstance(value, BaseOptimizer):
            raise errors.optimizer_attribute(self.class_name, name)
        else:
            object.__setattr__(self, name, value)
        ambient.changes += 1

    def handle(self, block: ModuleBlock) -> Any:
        """Return the object to store when a module is assigned to an attribute."""
        return block.origin

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            self._need_init(name)
        cls = type(self).__name__
        raise GraphAttributeError(f"'{cls}' object has no attribute '{name}'", at="")

    def _need_init(self, access: str) -> None:
        if "_blocks" not in self.__dict__:
            raise errors.graph_not_initialized(self, access)

    def build(self, *args: Any, **kwargs: Any) -> Any:
        """Compute one step. Subclasses override this method."""
        raise errors.no_build(self.class_name)

    def add_optimizer(self, optim: BaseOptimizer, *, lr_sch: object = None) -> None:
        """Update the parameters of `optim` at the end of every call. `lr_sch` sets the rate.

        A step of the graph is also a step of `optim` and `lr_sch`: learning rates, step counts, and
        states change as in eager steps. nn/graph/added.py checks both.
        """
        self._optimizers.append((optim, lr_sch))
        self.config.training = True

    def _paths(self) -> dict[int, str]:
        """Return {id of a parameter or buffer: its path}. A shared tensor has its first path."""
        paths: dict[int, str] = {}
        for block in self._blocks.values():
            for part in block.walk():
                for key, t in (*part.origin._parameters.items(), *part.origin._buffers.items()):
                    if t is not None:
                        paths.setdefault(id(t), f"{part.path}.{key}")
        return paths

    @property
    def name(self) -> str:
        return self._name

    @property
    def training(self) -> bool:
        return self.config.training

    @property
    def is_compiled(self) -> bool:
        return self._compiled is not None

    # ---- running
    def __call__(self, *args: object, **kwargs: object) -> Any:
        compiled = self._compiled
        if compiled is None:
            compiled = self._compile(*args, **kwargs)
        elif compiled.stamp != ambient.changes:
            compiled = self._recompile_if_changed(compiled, args, kwargs)
        try:                       # inlined: a call of a small graph takes a few us
            plain = compiled.plain and not kwargs and compiled.program.executor.takes(args)
            out = compiled.program.run(args if plain else compiled.bind(args, kwargs))
        except Exception as e:
            print(f"[ERROR](GRAPH:{self.name}:{self.class_name}) run got error: {type(e).__name__}")
            raise
        return out[0] if compiled.alone else compiled.make_result(out, args, kwargs)

    def _compile(self, *args: object, **kwargs: object) -> CompiledGraph:
        """Trace build on inputs with these shapes and compile it. Works only once."""
        if self._compiled is not None:
            raise errors.already_compiled(self.name)
        self._refuse_nested_call(args, kwargs)
        start = perf_counter()
        self._say(0, "start building graph.")
        object.__setattr__(self, "_is_building", True)
        try:
            compiled = self.compiled_type(self, args, kwargs)
        except Exception:
            print(f"[ERROR](GRAPH:{self.name}:{self.class_name}) building graph got error.")
            raise
        finally:
            object.__setattr__(self, "_is_building", False)
        self._say(0, f"building graph Done! Cost time: {perf_counter() - start:.2f}s.")
        start = perf_counter()
        self._say(0, "start building plan.")
        compiled.link()
        self._say(0, f"building plan Done! Cost time: {perf_counter() - start:.2f}s.")
        object.__setattr__(self, "_compiled", compiled)
        return compiled

    def _recompile_if_changed(self, compiled: CompiledGraph, args: tuple,
                              kwargs: dict) -> CompiledGraph:
        """Return `compiled`, or a new graph if state that build read changed (nn/graph/changes)."""
        return compiled

    def _refuse_nested_call(self, args: tuple, kwargs: dict) -> None:
        """Raise GraphError if this call is inside a build, or if an argument is a lazy tensor."""
        lazy = any(isinstance(x, Tensor) and x.is_lazy for _, x in io.leaves("", args, kwargs))
        if thread_state.tracer is not None or lazy:
            raise errors.nested_graph(self.name)

    def _say(self, level: int, text: str, block: ModuleBlock | None = None) -> None:
        """Print debug output. The base class prints nothing."""
