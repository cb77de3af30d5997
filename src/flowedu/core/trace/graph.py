"""nn.Graph: eager modules compiled into one plan. The class; what it does is in the files beside it.

    tracer.py    build runs once, on tensors without data; its ops become a graph
    compiled.py  backward, updates, and the Program that runs it (graph/program.py)
    blocks.py    what the graph knows of its modules        io.py      names and containers of inputs and outputs
    show.py      print(graph), debug                        state.py   state_dict, load_state_dict
"""
from __future__ import annotations

import os
import re
from itertools import count
from pathlib import Path
from time import perf_counter

from flowedu.core.layers import trace
from flowedu.core.layers.group import BaseOptimizer
from flowedu.core.layers.module import Module
from flowedu.core.ops.tensor import Tensor
from flowedu.core.shelves import shelf
from flowedu.core.trace import io, state
from flowedu.core.trace.blocks import GraphModule, ProxyModule, make_block
from flowedu.core.trace.compiled import Compiled
from flowedu.core.trace.config import GraphConfig
from flowedu.core.trace.update import check_disjoint
from flowedu.errors import ArgumentError, CallError, CheckError, GraphAttributeError, GraphError, UnsupportedError
from flowedu.errors.once import inert, say_once

DEBUG_OPTIONS = ("max_py_stack_depth", "only_user_py_stack", "op_repr_with_py_stack")


def check_debug_options(options: dict) -> None:
    """Of nn.Graph(...) and debug(...): those of OneFlow say once that they do nothing, others are refused."""
    for name in options:
        if name not in DEBUG_OPTIONS:
            raise CallError(f"nn.Graph.debug: unknown option {name!r}", expected=", ".join(DEBUG_OPTIONS), got=name,
                            fix="debug(v_level, ranks=None, mode=True)")
        say_once(f"nn.Graph.debug({name})", "level 3 shows the user's own line of every operator", 4)


_counters: dict[str, count] = {}


class Graph:
    """A static graph. Subclass it, assign modules to attributes in `__init__`, describe one step in `build`.

        class Train(flow.nn.Graph):
            def __init__(self):
                super().__init__()
                self.model, self.loss_fn = model, nn.CrossEntropyLoss()
                self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

            def build(self, x, y):
                loss = self.loss_fn(self.model(x), y)
                loss.backward()
                return loss

        loss = Train()(x, y)

    The first call traces build and compiles; every call runs the whole step, updates included. Parameters stay those of
    the module: what a step writes, the module sees. (OneFlow 0.9.)

    Attributes: name; config (GraphConfig); training, is_compiled.
    """

    def __init__(self, *, debug_v_level: int = -1, debug_ranks=None, **options):
        check_debug_options(options)
        put = object.__setattr__.__get__(self)
        put("class_name", type(self).__name__)
        number = next(_counters.setdefault(self.class_name, count()))
        put("_name", f"{self.class_name}_{number}")
        put("_blocks", {})
        put("config", GraphConfig())
        put("_optimizers", [])
        put("_compiled", None)
        put("_states", {})
        put("_level", -1)
        put("_is_building", False)
        if debug_v_level >= 0:
            self.debug(debug_v_level, ranks=debug_ranks)

    # ---- what a graph is made of
    def __setattr__(self, name: str, value) -> None:
        self._need_init(f"self.{name} = ...")
        if isinstance(value, ProxyModule):
            value = value._block.origin
        if isinstance(value, Module):
            self._blocks[name] = make_block(name, "", value)
            object.__setattr__(self, name, ProxyModule(self._blocks[name]))
        elif isinstance(value, Tensor):
            raise GraphAttributeError(f"{self.class_name} is not allowed to set Tensor attribute named '{name}'",
                                      expected="modules", got="a Tensor", fix="Please use nn.Module to hold the tensor, "
                                      "then add the nn.Module to nn.Graph: nn.Parameter or register_buffer")
        elif isinstance(value, BaseOptimizer):
            raise GraphAttributeError(f"{self.class_name} is not allowed to set Optimizer attribute named '{name}'",
                                      got="an optimizer", expected="modules", fix="Please use add_optimizer(...) instead")
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str):
        if not name.startswith("__"):
            self._need_init(name)
        raise GraphAttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", at="")

    def _need_init(self, what: str) -> None:
        if "_blocks" not in self.__dict__:
            raise GraphAttributeError("Base class nn.Graph has not been initialized, please call super().__init__() in "
                                      "subclass of nn.Graph before assigning any attribute", expected="super().__init__() "
                                      f"as the first line of {type(self).__name__}.__init__", got=f"{what} before it",
                                      fix="add that line")

    def build(self, *args, **kwargs):
        """One step; to be written by the subclass."""
        raise UnsupportedError("nn.Graph.build() function must be overridden: Subclass must override `build`",
                               expected=f"def build(self, ...) in {self.class_name}", got="none",
                               fix="def build(self, x): return self.model(x)")

    def add_optimizer(self, optim: BaseOptimizer, *, lr_sch=None, is_sparse: bool = False) -> None:
        """Let `optim` update its parameters at the end of every call, at the rate of the scheduler `lr_sch` if given.

        The scheduler is asked for its rate at every step, and never stepped; the optimizer's own state stays untouched.
        """
        inert("nn.Graph.add_optimizer(is_sparse)", bool(is_sparse), False, "gradients are dense")
        if optim is None:
            raise CheckError("add_optimizer: optimizer cannot be None", expected="a flow.optim.Optimizer", got="None")
        if not isinstance(optim, BaseOptimizer):
            raise CheckError("add_optimizer: optimizer must be an instance of Optimizer", got=type(optim).__name__,
                                 expected="one made by flow.optim", fix="flow.optim.SGD(model.parameters(), lr=0.1)")
        if lr_sch is not None:
            if not hasattr(lr_sch, "lr_at"):
                raise CheckError("add_optimizer: lr_sch cannot work in a graph", got=type(lr_sch).__name__,
                                     expected="a scheduler whose rate depends on the number of the step",
                                     fix="a scheduler of flow.optim.lr_scheduler; ReduceLROnPlateau only works eagerly")
            if lr_sch.optimizer is not optim:
                raise CheckError("add_optimizer: lr_sch belongs to another optimizer", expected="lr_sch.optimizer is "
                                     "optim", got=f"that of a {type(lr_sch.optimizer).__name__}")
        if self._compiled is not None:
            raise GraphError(f"add_optimizer: nn.Graph {self.name} has already been compiled",
                             expected="add_optimizer in __init__", got="a graph that was called", fix="make another graph")
        check_disjoint([*self._optimizers, (optim, lr_sch)], self._paths())
        self._optimizers.append((optim, lr_sch))
        self.config.training = True

    def _paths(self) -> dict[int, str]:
        """{id of a parameter or buffer: its path}; a shared one goes by its first path."""
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
        return compiled(args, kwargs)

    def _compile(self, *args, **kwargs) -> Compiled:
        """Trace build on inputs like these, and compile. Once."""
        if self._compiled is not None:
            raise GraphError(f"nn.Graph {self.name} has already been compiled", expected="one call of _compile",
                             got="a second one", fix="make another graph")
        self._outside(args, kwargs)
        start = perf_counter()
        self._say(0, "start building graph.")
        object.__setattr__(self, "_is_building", True)
        try:
            compiled = Compiled(self, args, kwargs)
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
        if self._level >= 2:
            print(f"{self.name} with operators:", shelf("graph as text")(self, stacks=self._level >= 3), sep="\n")
        return compiled

    def _outside(self, args: tuple, kwargs: dict) -> None:
        """Raise when this is a call inside a build, or one with tensors without data."""
        if trace.current is not None or any(isinstance(x, Tensor) and x.is_lazy for _, x in io.leaves("", args, kwargs)):
            raise GraphError(f"nn.Graph {self.name} is called inside the build of a graph, or with a lazy tensor",
                             expected="calls of modules in build; eager tensors outside", got=f"{self.name}(...)",
                             fix="call the module that the inner graph holds")

    # ---- looking
    def debug(self, v_level: int = 0, *, ranks=None, mode: bool = True, **options) -> None:
        """Say what happens while the graph is built: 0 stages and seconds, 1 every module, parameter, buffer, input and
        output as it is traced, 2 also all operators, 3 also where in the code they come from; -1 nothing."""
        check_debug_options(options)
        if not isinstance(v_level, int) or v_level > 3:
            raise CheckError("debug: The max verbose debug info level is 3", expected="-1, 0, 1, 2 or 3",
                                 got=repr(v_level))
        if ranks is not None and not isinstance(ranks, int) and not (
                isinstance(ranks, list) and all(isinstance(r, int) for r in ranks)):
            raise ArgumentError("debug: ranks must be int or List[int].", expected="None, an int or a list of ints",
                                   got=repr(ranks))
        here = ranks is None or ranks in (-1, 0) or isinstance(ranks, list) and 0 in ranks
        object.__setattr__(self, "_level", v_level if mode and here else -1)
        for block in self._blocks.values():
            block.debug(self._level)

    def _say(self, level: int, text: str, block: GraphModule | None = None) -> None:
        if (self._level if block is None else block.debug_level) >= level:
            print(text if text.startswith(("(", "[")) else f"(GRAPH:{self.name}:{self.class_name}) {text}")

    def __repr__(self) -> str:
        return shelf("graph as text")(self)

    def report(self) -> str:
        """What each pass did, one line per pass, and the memory the plan needs."""
        return shelf("what the passes did")(self._need_compiled("report"))

    def explain(self) -> str:
        """Of global tensors: how each op is split over the devices, what is moved for it, and the bill of one step."""
        return self._need_global("explain").explain()

    @property
    def bytes(self) -> int:
        """What one step moves between devices; 0 for local tensors."""
        compiled = self._need_compiled("bytes")
        return 0 if compiled.spread is None else compiled.spread.bytes

    def memory(self) -> dict:
        """{rank: what it needs, in bytes}: arena, parameters, states, other, total (show/ranks.py, Memory)."""
        return self._need_global("memory").memory()

    def _need_global(self, what: str):
        spread = self._need_compiled(what).spread
        if spread is None:
            raise GraphError(f"{what}: graph {self.name} has no global tensors", got="local tensors",
                             expected="parameters or inputs on a placement", fix="graph.report() says what the passes did")
        return spread

    def profile(self, *args, **kwargs) -> str:
        """The calls of one step, slowest first, with their share of the time. Runs the step several times."""
        return shelf("graph, timed")(self._need_compiled("profile"), args, kwargs)

    def draw(self, path: str | os.PathLike, what: str = "graph") -> Path:
        """Draw into the file `path`; returns it.

        Args:
            what: "graph", the ops as they were traced (SVG); "optimized", what the passes made of them (SVG); "memory",
                the plan's memory over its steps (PNG or SVG; needs matplotlib: `pip install flowedu[plot]`).
        """
        compiled = self._need_compiled("draw")
        if what not in ("graph", "optimized", "memory"):
            raise ArgumentError("draw: what", expected='"graph", "optimized" or "memory"', got=repr(what))
        if what == "memory":
            return shelf("memory as a picture")(compiled.program.plan, path)
        return shelf("graph as a picture")(compiled, path, what == "optimized")

    def _need_compiled(self, what: str) -> Compiled:
        if self._compiled is None:
            raise GraphError(f"{what}: graph {self.name} is not compiled yet", expected="a graph that was called once",
                             got="a new graph", fix="call it on a batch first")
        return self._compiled

    # ---- state
    def state_dict(self, destination=None) -> dict:
        """The state of the modules, one dict each, then what the optimizers remember and the number of steps."""
        return state.state_dict(self, destination)

    def load_state_dict(self, state_dict: dict, strict: bool = True) -> None:
        """Take over a state that `state_dict` gave. Before the first call of the graph."""
        state.load_state_dict(self, state_dict, strict)

    @staticmethod
    def trace(f):
        """Decorator: a function of tensors as a graph named `<f>_graph_0`."""
        return traced(f)


def traced(f):
    import inspect
    if not inspect.isfunction(f):
        raise CheckError("nn.Graph.trace: only functions can be traced", expected="a function", got=type(f).__name__)

    class FunctionGraph(Graph):
        def build(self, *args, **kwargs):
            return f(*args, **kwargs)

    FunctionGraph.__name__ = FunctionGraph.__qualname__ = re.sub(r"\W", "_", f"{f.__name__}_graph")
    return FunctionGraph()
