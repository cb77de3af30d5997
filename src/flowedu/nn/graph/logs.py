"""Log lines printed while an nn.Graph is built: one per input, output, parameter, and buffer.

print(graph) shows them.
"""
from __future__ import annotations

import warnings

from flowedu.core.eager.tensor import Tensor
from flowedu.core.trace import io
from flowedu.core.trace.blocks import ModuleBlock
from flowedu.core.trace.compiled import CompiledGraph
from flowedu.core.trace.tracer import Tracer
from flowedu.show.meta import line, meta


class LoggingTracer(Tracer):
    """A Tracer that logs, at debug level 1, the inputs and outputs of each module."""

    def __init__(self, *args):
        super().__init__(*args)
        self.warned_of_hooks = False

    def call_first_time(self, block: ModuleBlock, args: tuple, kwargs: dict):
        module = block.origin
        if module._hooks is not None and module._hooks.any and not self.warned_of_hooks:
            self.warned_of_hooks = True
            warnings.warn(f"the hooks of {block.path} are not run in a nn.Graph, nor those of other modules; "
                          "flow.watch and flow.watch_diff in build give values and gradients", stacklevel=4)
        self.say(1, f"(MODULE:{block.path}:{module._shallow_repr()})", block)
        block.inputs = self._log_arguments("INPUT", f"_{block.path}_input", args, kwargs, block)
        for kind, table in (("PARAMETER", module._parameters), ("BUFFER", module._buffers)):
            for key, t in table.items():
                if t is not None:
                    self.say(1, f"({kind}:{block.path}.{key}:{meta(t)})", block)
        out = super().call_first_time(block, args, kwargs)
        results = out if type(out) is tuple else (out,)
        block.outputs = self._log_arguments("OUTPUT", f"_{block.path}_output", results, {}, block)
        return out

    def _log_arguments(self, kind: str, prefix: str, args: tuple, kwargs: dict,
                       block: ModuleBlock) -> list[str]:
        """Log one line per argument and return the lines."""
        found = [f"({kind}:{name}:{meta(x)})" if isinstance(x, Tensor)
                 else f"[WARNING]({kind}:{name}:{type(x)})"
                 for name, x in io.leaves(prefix, args, kwargs)]
        for text in found:
            self.say(1, text, block)
        return found


class LoggingCompiled(CompiledGraph):
    """A CompiledGraph that logs the inputs and outputs of build.

    Attributes: inputs and outputs, [(name, text or None)] of the leaves.
    """

    def __init__(self, *args):
        self.inputs: list[tuple[str, str | None]] = []
        self.outputs: list[tuple[str, str | None]] = []
        super().__init__(*args)

    def report_value(self, kind: str, name: str, x: Tensor | None) -> None:
        text = None if x is None else meta(x)
        (self.inputs if kind == "INPUT" else self.outputs).append((name, text))
        if x is not None:
            self.owner._say(1, line(kind, name, text))
