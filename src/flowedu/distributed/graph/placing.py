"""Placing: layouts of the global tensors of a graph under construction, which it separates from local ones.

Other modules of this chapter are imported when the first global tensor appears.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from flowedu.core.eager.tensor import Tensor
from flowedu.core.graph.devices import OneDevice, need_cpu
from flowedu.core.graph.ir import GraphValue
from flowedu.core.ops.call import interpreter
from flowedu.core.sbp.names import BROADCAST, as_sbp
from flowedu.core.sbp.ranks import world
from flowedu.core.sbp.sbp import split_axis
from flowedu.core.values.place import Place
from flowedu.errors import ArgumentError, UnsupportedError
from flowedu.ops.hint import distribute_hint as HINT
from flowedu.tensor.shapes.join_and_pad import cat


class Placing(OneDevice):
    """The layouts of global tensors in a Tracer.

    Attributes:
        sources: {input or variable: the GlobalLayout of its global tensor}.
        apart: local values that may differ from rank to rank.
        made: tensors that `build` itself created from constants (tensor/construction/destination.py).
        local: results of creation functions that `build` called without a placement, and values computed from
            them. to_global accepts them, but an op with global tensors does not.
        active: True after the first use of a global tensor.
    """

    def __init__(self, tracer):
        super().__init__(tracer)
        self.sources: dict[GraphValue, object] = {}
        self.apart: set[GraphValue] = set()
        self.local: set[GraphValue] = set()
        self.made: list[Tensor] = []
        self.inferred = None
        self.followed = 0
        self.active = False

    # ---- inputs of ops
    def enter(self, value: GraphValue, x: Tensor) -> None:
        """Record that an input or variable of the graph represents the tensor x."""
        super().enter(value, x)
        if x.global_layout is not None:
            need_cpu(self.tracer.graph.name, value.name, x)
            self.sources[value], self.active = x.global_layout, True
        elif not x.uniform:
            (self.local if any(x is t for t in self.made) else self.apart).add(value)

    def check(self, op, inputs: tuple, values: Sequence[GraphValue]) -> None:
        """Raise an error if an op has global and local tensors. Python numbers can be used with both."""
        if not self.active:
            return
        there = [x.global_layout is not None for x in inputs]
        local = [v in self.apart or v in self.local for v in values]
        if any(there) and any(local):
            i, j = local.index(True), there.index(True)
            kinds = ", ".join("global" if g else "local" for g in there)
            raise ArgumentError(f"{op.name}: Got input tensors with inconsistent attributes! op_type_name: "
                                f"{op.name}, attributes of inputs is: {kinds}",
                                expected="all inputs global, or all local",
                                got=f"{values[i].name} is local", fix=f"{values[i].name}.to_global("
                                f"placement={values[j].name}.placement, sbp=flow.sbp.broadcast), before "
                                f"the call")

    def follow(self, values: Sequence[GraphValue], outputs: Sequence[GraphValue]) -> None:
        """Record a node that computes `outputs`."""
        if any(v in self.apart for v in values):
            self.apart.update(outputs)
        elif any(v in self.local for v in values) and outputs:
            node = outputs[0].node
            if node is None or node.op is not HINT:
                self.local.update(outputs)

    def take_value(self, x: Tensor, z: Tensor) -> None:
        """Record that x gets the value of z in an in-place op. A local x stays local."""
        if x.symbol in self.local or any(x is t for t in self.made):
            self.local.add(z.symbol)

    def keep(self, members: Sequence[Tensor], config) -> None:
        """Record in `homes` the layouts in which parameters are stored. ZeRO splits them along axis 0."""
        from flowedu.distributed.layouts import lay_at
        from flowedu.distributed.zero import shard
        for p in members:
            if p.global_layout is not None:
                split = at = p.global_layout.layout
                if config.zero_stage and p.requires_grad:
                    split = shard(at, tuple(p.shape), config.zero_min_size)
                self.homes[id(p)] = p.global_layout if split is at else lay_at(split)

    def batch_parts(self, xs: Sequence[Tensor], k: int) -> int:
        d = 1
        for at in (x.global_layout.layout for x in xs if x.global_layout is not None):
            d = max(d, prod(n for s, n in zip(at.sbp, at.hierarchy) if s == "S0"))
        return d if all(x.ndim and x.shape[0] % (d * k) == 0 for x in xs) else 1

    # ---- layouts of values
    def layout_of(self, value: GraphValue):
        """Return the GlobalLayout of a value; None for values without a particular layout."""
        if not self.active:
            return None
        if value in self.sources:
            return self.sources[value]
        inferred = self._up_to_date()
        if inferred.base(value) in self.sources:
            return self.sources[inferred.base(value)]
        from flowedu.distributed.layouts import lay_at
        return None if value in inferred.loose else lay_at(inferred.layout_of(value))

    def _up_to_date(self):
        from flowedu.distributed.graph.infer import Inference
        graph = self.tracer.graph
        if self.inferred is None:
            self.inferred = Inference(graph, world(), {v: g.layout for v, g in self.sources.items()})
        for node in graph.nodes[self.followed:]:
            for x in node.inputs:
                if x.kind != "node":
                    self.inferred.enter(x, self.sources[x].layout if x in self.sources else None)
            self.inferred.add(node, strict=node not in self.tracer.frozen)
        self.followed = len(graph.nodes)
        return self.inferred

    def value_in_layout(self, x: Tensor, global_layout) -> Tensor:
        """Return the value of a tensor in this layout. A local tensor is taken as the whole value."""
        from flowedu.distributed.layouts import value_in_layout
        return value_in_layout(x, global_layout)

    # ---- to_global in build
    def to_global(self, x: Tensor, placement=None, sbp=None, grad_sbp=None) -> Tensor:
        """Perform Tensor.to_global in build: set the layout of x.

        A local tensor that build created is a shard, as outside of build.
        """
        if x.global_layout is None and placement is not None and sbp is not None:
            if any(x is t for t in self.made) and not x.requires_grad:
                with interpreter(None):
                    return x.to_global(placement, sbp)
            if self.tracer.value_of(x) not in self.apart:
                x = joined(x, placement, sbp)
        return self.spread(x, placement, sbp, grad_sbp)

    def spread(self, x: Tensor, placement=None, sbp=None, grad_sbp=None) -> Tensor:
        """Return the logical value of a global tensor (lazy or eager) in another layout.

        A local tensor is taken as the logical value.
        """
        from flowedu.core.sbp.tensor.global_layout import check_placement, make_layout
        value, have = self.tracer.value_of(x), x.global_layout
        if have is None and (placement is None or sbp is None or value in self.apart):
            raise UnsupportedError("to_global: a local tensor does not become global inside build",
                                   got=repr(x),
                                   expected="a global tensor, or a constant with placement and sbp",
                                   fix="call to_global before the tensor goes into the graph")
        if placement is None and sbp is None and grad_sbp is None:
            return x
        p = have.placement if placement is None else placement
        back = p if have is None else have.placement
        check_placement(p, "to_global")
        if p.type != "cpu":
            raise UnsupportedError("to_global: values inside build are on the CPU",
                                   expected='a placement of type "cpu"',
                                   got=repr(p),
                                   fix="call the module itself, or to_global on what the graph returns")
        attrs: dict[str, Any] = dict(sbp=None, forced=True)
        if sbp is not None:
            attrs["sbp"] = make_layout(p, sbp, x._sizes(), "to_global").layout.sbp
        elif p == back:
            attrs["sbp"] = have.layout.sbp
        if have is None or p != back:
            attrs["place"], attrs["grad_place"] = (Place(q.devices, tuple(q.hierarchy)) for q in (p, back))
        if grad_sbp is not None:
            attrs["grad_sbp"] = make_layout(back, grad_sbp, x._sizes(), "to_global: grad_sbp").layout.sbp
        self.active = True
        return self.tracer.run(HINT, (x,), HINT.complete(attrs))

    def on_stage(self, x, placement):
        """Move an argument of a module to the `placement` of its stage (set_stage)."""
        if not isinstance(x, Tensor) or x.global_layout is None or x.global_layout.placement == placement:
            return x
        axes = len(placement.hierarchy)
        return self.to_global(x, placement, None if axes == len(x.global_layout.sbp) else (BROADCAST,) * axes)


def joined(x: Tensor, placement, sbps) -> Tensor:
    """Return the logical value of the global tensor whose shard on every rank is x."""
    for s, n in zip(as_sbp(sbps, len(placement.hierarchy), "to_global"), placement.hierarchy):
        axis = split_axis(s.text)
        if axis is not None and axis < x.ndim:                # (make_layout reports missing axes)
            x = cat([x] * n, axis)
        elif s.text == "P":
            x = x * n
    return x
