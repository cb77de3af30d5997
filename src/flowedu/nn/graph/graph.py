"""flow.nn.Graph, the static graph of OneFlow 1.0."""
from __future__ import annotations

import gc
import inspect
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, SupportsIndex

from flowedu.core.layers.group import BaseOptimizer
from flowedu.core.trace import graph as core
from flowedu.core.values import thread_state as ambient
from flowedu.errors import ArgumentError, CallError, CheckError, GraphError
from flowedu.errors.once import inert, say_once
from flowedu.nn.amp.grad_scaler import GradScaler
from flowedu.nn.graph import state
from flowedu.nn.graph.added import check_optimizer
from flowedu.nn.graph.changes import refresh
from flowedu.nn.graph.config import GraphConfig
from flowedu.nn.graph.proxies import GraphModule, ProxyModule, unwrap
from flowedu.nn.graph.timed import TimedCompiled, format_times
from flowedu.show.modules import describe, profile, report, timeline

OFTEN = 10                                     # the number of retraces of one graph that are reported
DEBUG_OPTIONS = ("max_py_stack_depth", "only_user_py_stack", "op_repr_with_py_stack")


@contextmanager
def no_collection() -> Iterator[None]:
    """Pause Python's cycle collector, because a graph creates thousands of long-lived nodes."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def check_debug_options(options: dict) -> None:
    """Check the options of nn.Graph(...) and debug(...): warn once about those of OneFlow, reject others."""
    for name in options:
        if name not in DEBUG_OPTIONS:
            raise CallError(f"nn.Graph.debug: unknown option {name!r}", expected=", ".join(DEBUG_OPTIONS),
                            got=name, fix="debug(v_level, ranks=None, mode=True)")
        say_once(f"nn.Graph.debug({name})", "level 3 shows the user's own line of every operator", 4)


class Graph(core.TracedGraph):
    """Static graph of a step. Subclass it, assign modules in `__init__`, and describe one step in `build`.

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

    The first call traces and compiles build. Every call runs the whole step, including the updates.
    Parameters remain the module's own tensors and contain the new values after a step. If a mode, attribute,
    parameter, option, or seed has changed, the next call traces build again and reports this on stderr
    (OneFlow does not). Attributes: name; config (GraphConfig); training, is_compiled.

    Args:
        debug_v_level: verbosity while the graph is built, see `debug`; -1 prints nothing.
        debug_ranks: accepted for compatibility; default: None.
        **options: other options of OneFlow, which have no effect.
    """

    options_type, block_type, compiled_type = GraphConfig, GraphModule, TimedCompiled
    _level, _retraced = -1, 0

    def __init__(self, *, debug_v_level: int = -1, debug_ranks=None, **options):
        check_debug_options(options)
        super().__init__()
        # Attributes to which build assigns another tensor (written.py).
        object.__setattr__(self, "_rebound", set())
        object.__setattr__(self, "_scaler", None)
        if debug_v_level >= 0:
            self.debug(debug_v_level, ranks=debug_ranks)

    def __setattr__(self, name: str, value) -> None:
        super().__setattr__(name, unwrap(value))

    def __reduce_ex__(self, protocol: SupportsIndex):
        """Refuse to be copied or pickled, because a compiled graph belongs to its modules and its memory."""
        raise GraphError(f"nn.Graph {self.name} cannot be copied or pickled",
                         expected="one graph for its modules",
                         got="copy, deepcopy, or pickle",
                         fix=f"make another one: {self.class_name}(...); flow.save(graph, "
                         '"folder") and flow.load write and read a compiled graph')

    def add_optimizer(self, optim: BaseOptimizer, *, lr_sch=None, is_sparse: bool = False) -> None:
        """Let an optimizer update its parameters at the end of every call.

        Steps of the graph count as steps of the optimizer and the scheduler, as if they had been stepped
        eagerly.

        Args:
            optim: optimizer of parameters of the graph's modules.
            lr_sch: scheduler of the learning rate; default: none.
            is_sparse: accepted for compatibility.
        """
        inert("nn.Graph.add_optimizer(is_sparse)", bool(is_sparse), False, "gradients are dense")
        check_optimizer(self, optim, lr_sch)
        super().add_optimizer(optim, lr_sch=lr_sch)

    def set_grad_scaler(self, grad_scaler: GradScaler) -> None:
        """Let every step scale its loss, and skip its updates if a gradient overflows (scaling.py).

        Eager code with scale, step, and update can continue with the same scaler. Schedules count the steps
        that were not skipped.

        Args:
            grad_scaler: flow.amp.GradScaler(...) or StaticGradScaler(scale_factor).

        Raises:
            CheckError: grad_scaler is not a scaler.
            GraphError: the graph was called already.
        """
        if not isinstance(grad_scaler, GradScaler):
            raise CheckError("set_grad_scaler: this is no grad scaler", expected="flow.amp.GradScaler() or "
                             "flow.amp.StaticGradScaler(scale_factor)", got=type(grad_scaler).__name__,
                             fix="self.set_grad_scaler(flow.amp.GradScaler())")
        if self._compiled is not None:
            raise GraphError(f"set_grad_scaler: nn.Graph {self.name} has already been compiled",
                             expected="set_grad_scaler in __init__", got="a called graph",
                             fix="make another graph")
        object.__setattr__(self, "_scaler", grad_scaler)

    def handle(self, block: Any) -> ProxyModule:
        return ProxyModule(block)

    def _compile(self, *args, **kwargs) -> Any:
        for block in self._blocks.values():
            refresh(block)
        with no_collection():
            compiled = super()._compile(*args, **kwargs)
        if self._level >= 2:
            print(f"{self.name} with operators:", describe(self, stacks=self._level >= 3), sep="\n")
        return compiled

    def _recompile_if_changed(self, compiled: Any, args: tuple, kwargs: dict) -> Any:
        """Return the compiled graph, or that of a new trace if the state that build read has changed.

        Optimizers keep their states, and the reason is printed on stderr.
        """
        now = ambient.changes
        compiled.refuse_hooks()
        seen = compiled.seen
        why = (compiled.once or (seen.find_mutation() if compiled.at == now
                                 else seen.change(self, compiled.random)))
        if why is None:
            compiled.current(now)
            return compiled
        compiled.bind(args, kwargs)                      # the inputs are always those of the first call
        self._traced_again(why)
        object.__setattr__(self, "_compiled", None)
        try:
            return self._compile(*args, **kwargs)
        except BaseException:
            object.__setattr__(self, "_compiled", compiled)
            raise

    def _traced_again(self, why: str) -> None:
        """Report the reason for a retrace on stderr, at most a few times per graph."""
        object.__setattr__(self, "_retraced", self._retraced + 1)
        if self._retraced <= OFTEN:
            end = ("; later reasons are not printed (fix: keep a number that changes often in a tensor or a "
                   "buffer)")
            print(f"nn.Graph {self.name}: tracing build again because "
                  f"{why}{end if self._retraced == OFTEN else ''}", file=sys.stderr)

    # ---- inspection
    def debug(self, v_level: int = 0, *, ranks=None, mode: bool = True, **options) -> None:
        """Set how much is printed while the graph is built.

        Args:
            v_level: -1 nothing; 0 stages and seconds; 1 also every module, parameter, buffer, input, and
                output; 2 also all operators; 3 also their source lines.
            ranks: accepted for compatibility; default: None.
            mode: False sets level -1.
            **options: other options of OneFlow, which have no effect.
        """
        check_debug_options(options)
        if not isinstance(v_level, int) or v_level > 3:
            raise CheckError("debug: The max verbose debug info level is 3", expected="-1, 0, 1, 2 or 3",
                                 got=repr(v_level))
        if ranks is not None and not isinstance(ranks, int) and not (
                isinstance(ranks, list) and all(isinstance(r, int) for r in ranks)):
            raise ArgumentError("debug: ranks must be int or List[int].",
                                expected="None, an int or a list of ints", got=repr(ranks))
        here = ranks is None or ranks in (-1, 0) or isinstance(ranks, list) and 0 in ranks
        object.__setattr__(self, "_level", v_level if mode and here else -1)
        for block in self._blocks.values():
            block.debug(self._level)

    def _say(self, level: int, text: str, block: Any = None) -> None:
        if (self._level if block is None else block.debug_level) >= level:
            print(text if text.startswith(("(", "[")) else f"(GRAPH:{self.name}:{self.class_name}) {text}")

    def __repr__(self) -> str:
        return describe(self)

    def report(self) -> str:
        """Return one line per pass, the memory of the plan, and the time of each part of the first call."""
        compiled = self._need_compiled("report")
        program = compiled.program if compiled.spread is None else compiled.spread.first
        return report(compiled, format_times(compiled, program.graph.spent))

    def explain(self) -> str:
        """Describe the layouts of each op on global tensors, and the messages and bytes of one step."""
        return self._need_global("explain").explain()

    @property
    def bytes(self) -> int:
        """Return the bytes that one step moves between devices; 0 for local tensors."""
        compiled = self._need_compiled("bytes")
        return 0 if compiled.spread is None else compiled.spread.bytes

    def memory(self) -> dict:
        """Return {rank: memory in bytes}: arena, parameters, states, other, total (show/ranks.py, Memory)."""
        return self._need_global("memory").memory()

    def _need_global(self, what: str):
        spread = self._need_compiled(what).spread
        if spread is None:
            raise GraphError(f"{what}: graph {self.name} has no global tensors", got="local tensors",
                             expected="parameters or inputs on a placement",
                             fix="graph.report() lists what passes did")
        return spread

    def check(self, *args, **kwargs) -> None:
        """Check the results of the passes and the memory planner for this graph.

        After each pass: values are computed before they are read, shapes and dtypes are as traced, names are
        unique, and inputs, outputs, and updates are kept. In the plan: no two live buffers overlap, and every
        read has a writer.

        Args:
            args, kwargs: arguments of a call. If given, one step also runs with and without each pass, on
                copies of the variables, and results must agree up to rounding (CPU only).

        Raises:
            GraphError: a rule is broken; the message names the pass or planner, the node, and your line.

        Note:
            `FLOWEDU_CHECK_GRAPH=1` (or `2`, with the comparison) checks every graph when it is compiled.
            flowedu only.

        Example:
            >>> graph = flow.nn.Graph.trace(lambda x: x.exp().sum())
            >>> y = graph(flow.ones(3))
            >>> graph.check(flow.ones(3))
        """
        from flowedu.diagnostics.verify import check_compiled
        check_compiled(self._need_compiled("check"), args, kwargs)

    def profile(self, *args, **kwargs) -> str:
        """Run the step several times and return its calls, slowest first, with their share of the time.

        The time of a call is the shortest of several recorded runs. No variable changes. In a graph of global
        tensors, the table has the calls of all ranks, and all ranks make this call.
        """
        return profile(self._need_compiled("profile"), args, kwargs)

    def timeline(self, *args, **kwargs):
        """Record a step: when each call ran, on which thread or rank, the messages, the waits, and the arena.

        The step runs several times, and the shortest run is returned. No variable changes. In a graph of
        global tensors, all ranks make this call, and each of them gets the spans of all ranks.

        Returns:
            A flowedu.show.trace.Trace. `print` shows a table, a notebook a drawing; `.save("step.json")`
            writes a file for chrome://tracing, and `.draw("step.svg")` the drawing.
        """
        return timeline(self._need_compiled("timeline"), args, kwargs)

    def schedule(self):
        """Return the order in which each rank runs the forward and backward passes of the micro-batches.

        Returns:
            A flowedu.show.schedule.Schedule, with one Stage for each rank. `print` shows it as a table,
            a notebook as a drawing, and `.draw("schedule.svg")` writes the drawing.
        """
        from flowedu.show.schedule import schedule
        return schedule(self._need_compiled("schedule"))

    def draw(self, path: str | os.PathLike, what: str = "graph") -> Path:
        """Draw the graph into a file and return its path.

        Args:
            path: file to write.
            what: "graph", the ops as they were traced (SVG); "optimized", the graph after the passes (SVG);
                "memory", the plan's memory over its steps (PNG or SVG; needs matplotlib).
        """
        compiled = self._need_compiled("draw")
        if what not in ("graph", "optimized", "memory"):
            raise ArgumentError("draw: what", expected='"graph", "optimized" or "memory"', got=repr(what))
        if what == "memory":
            from flowedu.show.picture import draw_memory
            return draw_memory(compiled.program.plan, path)
        from flowedu.show.graph import draw_graph
        return draw_graph(compiled, path, what == "optimized")

    def _repr_svg_(self) -> str | None:
        """Return the diagram shown in notebooks; None before the first call, where only text is shown."""
        from flowedu.show.graph import graph_svg
        return None if self._compiled is None else graph_svg(self._compiled)

    def _need_compiled(self, what: str) -> Any:
        if self._compiled is None:
            raise GraphError(f"{what}: graph {self.name} is not compiled yet",
                             expected="a graph that was called once",
                             got="a new graph", fix="call it on a batch first")
        return self._compiled

    # ---- state
    def state_dict(self, destination=None) -> dict:
        """Return the state of the modules, one dict each, the optimizer states, and the number of steps."""
        if self._compiled is not None:
            self._compiled.sync()
        return state.state_dict(self, destination)

    def load_state_dict(self, state_dict: dict, strict: bool = True) -> None:
        """Load a result of `state_dict`, before the first call of the graph."""
        state.load_state_dict(self, state_dict, strict)

    @staticmethod
    def trace(f):
        """Decorate a function of tensors: return a graph named `<f>_graph_0` that computes it."""
        return traced(f)


def traced(f):
    if not inspect.isfunction(f):
        raise CheckError("nn.Graph.trace: only functions can be traced", expected="a function",
                         got=type(f).__name__)

    class FunctionGraph(Graph):
        def build(self, *args, **kwargs):
            return f(*args, **kwargs)

    FunctionGraph.__name__ = FunctionGraph.__qualname__ = re.sub(r"\W", "_", f"{f.__name__}_graph")
    return FunctionGraph()
