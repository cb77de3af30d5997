"""Writes of `build` outside the graph: in-place writes to inputs, and attributes assigned a new tensor.

The new value of an input is copied into the caller's tensor after the run. After every run, an assigned
attribute (`self.cache = self.cache + x`, `self.seen = x.mean()`) contains a new tensor with the new value, as
in eager code. From the second trace on, the graph reads its own tensor instead of such an attribute.
Every run first copies the attribute's current value into that tensor.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

from flowedu.core.eager.arrays import copied, copy_of, tensor_alias
from flowedu.core.eager.dispatch import copy_to_device
from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.ir import GraphValue
from flowedu.core.layers.module import Module
from flowedu.core.ops.call import interpreter
from flowedu.core.ops.view import contiguous
from flowedu.core.trace import io
from flowedu.core.values import thread_state as ambient
from flowedu.core.values.thread_state import during
from flowedu.errors import GradientError, JobBuildAndInferError, UnsupportedError, format_location
from flowedu.nn.graph.added import check_members
from flowedu.nn.graph.changes import StateSnapshot, attributes
from flowedu.nn.graph.effects import attributes_kept, check_aliases
from flowedu.nn.graph.scaling import ScalingCompiled, ScalingTracer
from flowedu.ops.terms import add_known
from flowedu.tensor.gradients.grad_mode import no_grad
from flowedu.tensor.inplace.packed_weights import Kept, find_kept


class WatchfulTracer(ScalingTracer):
    """Tracer that records in-place writes of build, and adds called but unregistered modules to `known`."""

    known: StateSnapshot

    def __init__(self, *args):
        super().__init__(*args)
        # {current value of a variable: the variable}, of `written`
        self.origin: dict[Any, GraphValue] = {}
        self.versions: dict[GraphValue, list[GraphValue]] = {}   # {variable: every value written to it}

    def call_unregistered(self, module, args: tuple, kwargs: dict):
        self.known.add(module, type(module).__name__)
        return super().call_unregistered(module, args, kwargs)

    def write(self, x: Tensor, z: Tensor) -> None:
        """Record that x gets the value z, in the trace from now on, and in memory after each run."""
        target = self.value_of(x)
        while target.kind == "node":                     # written before in this build
            target = self.origin[target]
        value = self.value_of(z)
        if value.spec != target.spec:
            raise JobBuildAndInferError("nn.Graph: an in-place write does not fit", expected=str(target.spec),
                                        got=str(value.spec), fix="cast or reshape the value")
        if value is target or value in self.origin or value.node is None or value.node.op.view is not None:
            value = self.append(contiguous, [value], ())[0]
        self.origin.pop(self.written.get(target), None)
        self.values[id(x)], self.written[target], self.origin[value] = value, value, target
        self.versions.setdefault(target, []).append(value)

    def grad(self, outputs: list, inputs: list, gradients: list, create_graph: bool) -> list:
        for x in inputs:
            if isinstance(x, Tensor) and not x.is_lazy:
                refuse_hooks("nn.Graph", self.paths.get(id(x), "an input of grad"), x)
        return super().grad(outputs, inputs, gradients, create_graph)


class Attribute:
    """Attribute to which build assigns another tensor, or that it reads through a substitute tensor.

    Attributes:
        own: the substitute that the graph reads. None means that the graph reads the attribute itself,
            because the first trace could not predict that it changes.
        out: the value that a run writes.
        in_place: True if `own` and the attribute's tensor were written in place.
    """

    def __init__(self, module: Module, name: str, own: Tensor | None, out: Tensor | None,
                 in_place: bool = False):
        self.module, self.name = module, name
        self.own: Any = own
        self.out, self.in_place = out, in_place

    def enter(self) -> None:
        """Prepare for a run."""
        if self.own is not None:
            put(self.own, self.module.__dict__[self.name])

    def leave(self) -> None:
        """Update the attribute after a run."""
        if self.in_place:
            put(self.module.__dict__[self.name], self.own)
        elif self.out is not None:
            self.module.__dict__[self.name] = copy_of(self.out)


class WritingCompiled(ScalingCompiled):
    """Compiled graph that records the writes of build outside the graph.

    Attributes:
        seen: the state before build ran.
        exits: list of (number of an input, position of its new value in `fetched`).
        rebound: list of `Attribute`, the attributes that build assigns.
        random: True if the graph draws random numbers that the number of steps does not determine.
        at: the count of changes at the last check.
        stamp: equal to `at`, or None if every call must check `seen`.
        once: the reason why this graph can run only once, or None.
    """

    tracer_type = WatchfulTracer

    tracer: WatchfulTracer
    plain: bool
    alone: bool
    stamp: Any

    def __init__(self, owner, args: tuple, kwargs: dict):
        check_members(owner._optimizers, owner._paths())
        self.seen = StateSnapshot(owner)
        self.entrances: list[tuple[str, Tensor | None, object]] = []
        self.exits: list[tuple[int, int]] = []
        self.rebound: list[Attribute] = []
        super().__init__(owner, args, kwargs)
        self.current(self.stamp)
        self.random = not owner._optimizers and any(op.node.op.random for op in self.operators)
        self.plain = self.plain and not self.exits
        self.alone = self.alone and not self.exits and not self.rebound

    def _input(self, name: str, x):
        lazy = super()._input(name, x)
        self.entrances.append((name, lazy, None if lazy is None else lazy.symbol))
        return lazy

    def _trace(self, args: tuple, kwargs: dict) -> None:
        self.tracer.known = self.seen
        stand_ins = {}
        for _, module, own, _ in self.seen.parts.values():
            for name, x in own.items():
                if (id(module), name) in self.seen.rebound and isinstance(x, Tensor):
                    stand_ins[id(module), name] = module.__dict__[name] = copy_of(x.detach())
        with self._attributes_kept(stand_ins):
            super()._trace(args, kwargs)
            with during(tracer=self.tracer), interpreter(self.tracer):
                self._inputs_written()
                self._attributes_written(stand_ins)
        check_aliases(self.tracer)
        self.once = next((f"build itself changes {path}" for path, *_ in self.seen.differences()), None)

    def _complete(self) -> None:
        super()._complete()
        self.graph.keeps = True

    def _check_goal(self) -> None:
        super()._check_goal()
        self.refuse_hooks()

    def refuse_hooks(self) -> None:
        """Raise UnsupportedError if a variable that needs a gradient has a gradient hook."""
        for name, x in self.tracer.variables.items() if self.tracer.goal else ():
            if x.requires_grad:
                refuse_hooks(f"nn.Graph {self.owner.name}", name, x)

    def differentiate(self, targets: Sequence[GraphValue],
                      watched: Sequence[GraphValue]) -> tuple[Sequence, Sequence]:
        """Return the gradients; that of a parameter that build writes is the sum over all its values."""
        versions = [[v, *self.tracer.versions.get(v, ())] for v in targets]
        grads, diffs = super().differentiate([v for values in versions for v in values], watched)
        remaining = iter(grads)
        with self.tracer.raw():
            totals = [add_known([next(remaining) for _ in values]) for values in versions]
        return totals, diffs

    def effects(self) -> AbstractContextManager:
        return attributes_kept(self.tracer, self.owner._blocks.values())

    def link(self) -> None:
        program = self.program
        weights = find_kept(program)
        super().link()
        if self.rebound:
            program.before += (self.sync,)
        if weights:
            program.before += (Kept(program, weights).look,)

    def sync(self) -> None:
        """Copy the current values of attributes into their substitutes."""
        for a in self.rebound:
            a.enter()

    def bind(self, args: tuple, kwargs: dict) -> tuple:
        bound = super().bind(args, kwargs)
        self._check_exits(args, kwargs)
        return bound

    def make_result(self, out: list, args: tuple, kwargs: dict):
        result = super().make_result(out, args, kwargs)
        if self.exits:
            xs: list[Any] = [x for _, x in io.leaves("", args, kwargs)]
            for number, position in self.exits:
                put(xs[number], out[self.where[position]])
        if self.rebound:
            current = self.at == ambient.changes
            for a in self.rebound:
                a.leave()
            ambient.changes += 1                         # other graphs may read these attributes
            if current and all(a.own is not None for a in self.rebound):
                self.current(ambient.changes)
        return result

    def current(self, changes: int) -> None:
        """Record that the state before build is still current at this count of changes."""
        self.at = changes
        self.stamp = None if self.seen.mutable or self.once else changes

    # ---- inputs
    def _inputs_written(self) -> None:
        for number, (name, lazy, before) in enumerate(self.entrances):
            if lazy is not None and lazy.symbol is not before:
                self._need_local(f"writes {name} in place")
                self.exits.append((number, len(self.fetched)))
                self.fetched.append(self.tracer.value_of(lazy))

    def _check_exits(self, args: tuple, kwargs: dict) -> None:
        """Check before a run that tensors written in place have no history and share no memory.

        Raises:
            GradientError, UnsupportedError: a tensor has a history, or shares memory that the graph reads.
        """
        xs: list[Any] = [x for _, x in io.leaves("", args, kwargs)] if self.exits else []
        for number, _ in self.exits:
            name, x = self.entrances[number][0], xs[number]
            if x.requires_grad:
                raise GradientError(f"nn.Graph {self.owner.name}: build writes {name} in place, and it "
                                    f"requires a gradient",
                                    expected="a tensor without a history", got="one that requires a gradient",
                                    fix="pass x.detach(), or x.clone().detach() to keep x as it is")
            others = [y for i, y in enumerate(xs) if i != number and isinstance(y, Tensor)]
            if any(overlap(x, y) for y in (*others, *self.tracer.variables.values())):
                raise UnsupportedError(f"nn.Graph {self.owner.name}: build writes {name} in place, and "
                                       f"another tensor that the graph uses lies in the same memory",
                                       expected="a tensor with memory of its own",
                                       got="two tensors over the same", fix="pass x.clone()")

    # ---- attributes
    @contextmanager
    def _attributes_kept(self, stand_ins: dict) -> Iterator[None]:
        """Return a context after which no attribute is lazy: attributes keep their values until a run."""
        try:
            yield
        finally:
            for module, name, x, own in self._attributes():
                if isinstance(x, Tensor) and (x.is_lazy or x is stand_ins.get((id(module), name))):
                    if name in own:
                        module.__dict__[name] = own[name]
                    else:
                        del module.__dict__[name]

    def _attributes(self) -> list[tuple[Module, str, Any, dict]]:
        """Return (module, name, current value, {name: value before build ran}) of all attributes of modules.
        """
        return [(module, name, x,
                 own) for _, module, own, _ in self.seen.parts.values() if isinstance(module, Module)
                for name, x in attributes(module).items()]

    def _attributes_written(self, stand_ins: dict) -> None:
        tracer, owner = self.tracer, self.owner
        written = {id(tracer.variables[v.name]) for v in tracer.written}
        for module, name, new, own in self._attributes():
            path, stand_in = f"{self.seen.parts[id(module)][0]}.{name}", stand_ins.get((id(module), name))
            if isinstance(new, Tensor) and new.is_lazy:
                self._need_local(f"gives {path} another tensor")
                if owner.config.accumulation > 1:
                    raise UnsupportedError(f"nn.Graph: build gives {path} another tensor, in micro-batches",
                                           at="",
                                           expected="a buffer", got="an attribute",
                                           fix="self.register_buffer in __init__")
                out = copy_to_device(copied(np.zeros(new.shape, np.float32), new.dtype), tracer.placing.place)
                tracer.write(out, new)
                self.rebound.append(Attribute(module, name, stand_in, out))
                owner._rebound.add((id(module), name))
            elif stand_in is not None and new is stand_in and id(stand_in) in written:
                self.rebound.append(Attribute(module, name, stand_in, None, True))
            # Only read, so no substitute is needed.
            elif stand_in is not None and new is stand_in:
                tracer.variables.update({n: own[name] for n, t in tracer.variables.items() if t is stand_in})
                self.seen.settle(module, name, own[name])
                owner._rebound.discard((id(module), name))
            elif isinstance(new, (dict, list, tuple)) and any(
                    isinstance(x, Tensor) and x.is_lazy for _, x in io.leaves("", (new,), {})):
                raise UnsupportedError(f"nn.Graph: build leaves a value of the graph in {path}", at="",
                                       expected="attributes that are tensors",
                                       got=f"a {type(new).__name__} of them",
                                       fix="return it from build, or empty the container in build")

    def _need_local(self, what: str) -> None:
        if self.tracer.placing.active:
            raise UnsupportedError(f"nn.Graph: build {what}, in a graph of global tensors",
                                   expected="local tensors",
                                   got="global ones",
                                   fix="register_buffer in __init__, or return it from build", at="")


def refuse_hooks(graph: str, name: str, x: Tensor) -> None:
    """Raise UnsupportedError if the gradient hooks of x would run in an eager backward pass."""
    hooks = [] if x.rare is None else [*(x.rare.hooks or {}).values(), *(x.rare.after or {}).values()]
    if not hooks:
        return
    code = getattr(hooks[0], "__code__", None)
    raise UnsupportedError(f"{graph}: {name} has a gradient hook, which a compiled step does not run",
                           expected="parameters without gradient hooks", got=format_hook(hooks[0]),
                           at="" if code is None
                           else format_location((code.co_filename, code.co_firstlineno)),
                           fix="handle.remove() before the graph is called, or train eagerly; "
                           "flow.watch_diff(x, handler) in build reads gradients")


def format_hook(hook) -> str:
    return f"the hook {getattr(hook, '__qualname__', type(hook).__name__)}"


def put(x: Tensor, value: Tensor) -> None:
    """Write a value into x's memory."""
    with no_grad():
        tensor_alias(x).copy_(value.detach())


def overlap(x: Tensor, y: Tensor) -> bool:
    """Return True if two tensors may share memory."""
    if not x.shares_block(y):
        return False
    if not x._device:
        return np.may_share_memory(x.peek(), y.peek())
    start, end = _extent(x)
    first, last = _extent(y)
    return start < last and first < end


def _extent(x: Tensor) -> tuple[int, int]:
    """Return the addresses of the first byte and after the last byte."""
    if not x._numel:
        return x.address, x.address
    return (x.address, x.address + (1 + sum((n - 1) * s for n, s in zip(x.shape,
                                                                        x.stride()))) * x.element_size())
