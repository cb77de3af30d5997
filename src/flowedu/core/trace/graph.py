"""TracedGraph: the base class of nn.Graph, which compiles eager modules into one plan.

nn/graph adds options, printing, diagrams, state dicts, and recomputation, as in OneFlow 1.0.
"""
from __future__ import annotations

from itertools import count
from time import perf_counter

from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.group import BaseOptimizer
from flowedu.core.layers.module import Module
from flowedu.core.trace import io
from flowedu.core.trace.blocks import ModuleBlock, make_block
from flowedu.core.trace.compiled import CompiledGraph
from flowedu.core.trace.options import Options
from flowedu.core.values import thread_state as ambient
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import GraphAttributeError, GraphError, UnsupportedError

_counters: dict[str, count] = {}


class TracedGraph:
    """Base class of graphs. A subclass assigns modules to attributes in `__init__` and describes one step in `build`.

    The first call traces and compiles `build`. Every call runs the complete step, including updates. The graph and its
    modules share the memory of the parameters. See nn.Graph (nn/graph).

    Attributes: name; config (Options); training, is_compiled.
    """

    options_type, block_type, compiled_type = Options, ModuleBlock, CompiledGraph

    def __init__(self):
        put = object.__setattr__.__get__(self)
        put("class_name", type(self).__name__)
        number = next(_counters.setdefault(self.class_name, count()))
        put("_name", f"{self.class_name}_{number}")
        put("_blocks", {})
        put("config", self.options_type())
        put("_optimizers", [])
        put("_compiled", None)
        put("_states", {})
        put("_is_building", False)

    # ---- modules and optimizers
    def __setattr__(self, name: str, value) -> None:
        self._need_init(f"self.{name} = ...")
        if isinstance(value, Module):
            self._blocks[name] = make_block(self.block_type, name, "", value)
            object.__setattr__(self, name, self.handle(self._blocks[name]))
        elif isinstance(value, Tensor):
            raise GraphAttributeError(f"{self.class_name} is not allowed to set Tensor attribute named '{name}'",
                                      expected="modules", got="a Tensor", fix="Please use nn.Module to hold the tensor, "
                                      "then add the nn.Module to nn.Graph: nn.Parameter or register_buffer")
        elif isinstance(value, BaseOptimizer):
            raise GraphAttributeError(f"{self.class_name} is not allowed to set Optimizer attribute named '{name}'",
                                      got="an optimizer", expected="modules", fix="Please use add_optimizer(...) instead")
        else:
            object.__setattr__(self, name, value)
        ambient.changes += 1

    def handle(self, block: ModuleBlock):
        """Return the value of an attribute to which a module is assigned."""
        return block.origin

    def __getattr__(self, name: str):
        if not name.startswith("__"):
            self._need_init(name)
        raise GraphAttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", at="")

    def _need_init(self, access: str) -> None:
        if "_blocks" not in self.__dict__:
            raise GraphAttributeError("Base class nn.Graph has not been initialized, please call super().__init__() in "
                                      "subclass of nn.Graph before assigning any attribute", expected="super().__init__() "
                                      f"as the first line of {type(self).__name__}.__init__", got=f"{access} before it",
                                      fix="add that line")

    def build(self, *args, **kwargs):
        """Compute one step. Subclasses override this method."""
        raise UnsupportedError("nn.Graph.build() function must be overridden: Subclass must override `build`",
                               expected=f"def build(self, ...) in {self.class_name}", got="none",
                               fix="def build(self, x): return self.model(x)")

    def add_optimizer(self, optim: BaseOptimizer, *, lr_sch=None) -> None:
        """Update the parameters of `optim` at the end of every call. `lr_sch` sets the rate.

        A step of the graph is a step of both: learning rates, step counts, and states change as in eager steps. The
        supported optimizers and schedulers are in nn/graph/added.py.
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
    def __call__(self, *args, **kwargs):
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

    def _compile(self, *args, **kwargs) -> CompiledGraph:
        """Trace build on inputs with these shapes and compile it. Works only once."""
        if self._compiled is not None:
            raise GraphError(f"nn.Graph {self.name} has already been compiled", expected="one call of _compile",
                             got="a second one", fix="make another graph")
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

    def _recompile_if_changed(self, compiled: CompiledGraph, args: tuple, kwargs: dict) -> CompiledGraph:
        """Return `compiled`, or a new one if build read changed state (nn/graph/changes.py)."""
        return compiled

    def _refuse_nested_call(self, args: tuple, kwargs: dict) -> None:
        """Raise GraphError if this call is inside a build, or if an argument is a lazy tensor."""
        lazy = any(isinstance(x, Tensor) and x.is_lazy for _, x in io.leaves("", args, kwargs))
        if thread_state.tracer is not None or lazy:
            raise GraphError(f"nn.Graph {self.name} is called inside the build of a graph, or with a lazy tensor",
                             expected="calls of modules in build; eager tensors outside", got=f"{self.name}(...)",
                             fix="call the module that the inner graph holds")

    def _say(self, level: int, text: str, block: ModuleBlock | None = None) -> None:
        """Print debug output. The base class prints nothing."""
