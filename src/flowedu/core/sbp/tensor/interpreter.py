"""The eager interpreter of global tensors: choose a signature, box the inputs, run the op on every device's part.

It answers calls with a global tensor among the inputs. The choice depends on Specs, attributes and layouts alone, so a
repeated call finds its plan in a table. The gradient is not its business: the call is recorded as one of logical values
(core/eager/later/global.pxi), and backward comes by here again, op by op.
"""
from __future__ import annotations

from typing import NamedTuple

from flowedu.core.eager.dispatch import GlobalLayout, carried, global_tensor, labelled
from flowedu.core.eager.tensor import Tensor
from flowedu.core.extensions import extension
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.sbp.boxing.algebra import Route
from flowedu.core.sbp.boxing.primitives import route as route_of
from flowedu.core.sbp.choose import Choice, choose
from flowedu.core.sbp.local import LocalCall
from flowedu.core.sbp.names import placement, world_error
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.signature import names_of
from flowedu.core.sbp.tensor.global_layout import kept, with_texts
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.core.values.storage import from_numpy as over
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import ArgumentError, user_line

_plans: dict[tuple, CallPlan] = {}


class Parts(dict):
    """{rank: its part} of the ranks that this thread owns, the identity of the value (Engine.identify), and how it came to
    be: the choice for the op that made it, or the route by which it was boxed; None: unknown."""

    identity, origin = 0, None


class CallPlan(NamedTuple):
    """The plan of a call: how the inputs are boxed, the calls of the devices, the layouts of the results."""

    home: GlobalLayout
    choice: Choice
    routes: tuple[Route | None, ...]
    calls: tuple[LocalCall, ...] | None  # of each device; None: one call for all, on whole values
    global_layouts: tuple[GlobalLayout, ...]
    outs: tuple[Spec, ...]


def run(op: Op, inputs: tuple, attrs: tuple):
    """Answer the call `op(*inputs)`: a tensor without history, or a tuple of them."""
    home = _home(op, inputs)
    names = attrs[:-2] if op.random else attrs            # without seed and draw, which are new in every call
    strict, rule = thread_state.strict, thread_state.rule
    global_layouts = tuple(home if x.global_layout is None else x.global_layout for x in inputs)
    key = (op, names, global_layouts, strict, rule, *[(x._sizes(), x.dtype) for x in inputs])
    plan = _plans.get(key)
    if plan is None:
        plan = kept(_plans, key, _planned(op, [x.spec for x in inputs], attrs, home, global_layouts, strict, rule))
    if thread_state.choice_log is not None:
        thread_state.choice_log.append(plan.choice)
    return _carried_out(op, plan, inputs, attrs)


def _home(op: Op, inputs: tuple) -> GlobalLayout:
    """The one placement of all global inputs."""
    home = first = None
    for i, x in enumerate(inputs):
        if x.global_layout is None:
            if not x.uniform:
                j, names = next(j for j, y in enumerate(inputs) if y.global_layout is not None), names_of(op, len(inputs))
                raise ArgumentError(
                    f"{op.name}: Got input tensors with inconsistent attributes! op_type_name: {op.name}, attributes of "
                    f"inputs is: {', '.join('local' if y.global_layout is None else 'global' for y in inputs)}",
                    expected="all inputs local, or all global", got=f"{names[i]} is local, {names[j]} is global",
                    fix=f"{names[i]}.to_global(placement={names[j]}.placement, "
                    f"sbp=[{', '.join(['flow.sbp.broadcast'] * len(inputs[j].global_layout.sbp))}])")
        elif home is None:
            home, first = x.global_layout.whole, i
        elif x.global_layout.whole is not home:
            raise ArgumentError(
                f"{op.name}: Expected all tensors to be on the same placement, but found at least two placements, "
                f"{home.placement} (positional {first}) and {x.global_layout.placement} (positional {i})!",
                expected="one placement", got="two", fix=f"{names_of(op, len(inputs))[i]}.to_global("
                f"placement={home.placement}, sbp=...)")
    return home


def _planned(op: Op, specs: list[Spec], attrs: tuple, home: GlobalLayout, global_layouts: tuple[GlobalLayout, ...],
             strict: bool, rule: str) -> CallPlan:
    where = home.layout
    if op.random:                                         # asked for the shape alone: nothing is moved for it
        global_layouts = (home,) * len(global_layouts)
    choice = choose(op, specs, attrs, [[g.layout] for g in global_layouts], where.devices, where.hierarchy, name=op.name,
                    line=user_line(), strict=strict, rule=rule)
    n = len(specs)
    routes = (None,) * n if op.random else tuple(r if r is not None and r.hops else None for r in choice.routes)
    outs = op.infer(specs, attrs)
    return CallPlan(home, choice, routes, choice.calls, tuple(with_texts(home, x.sbp) for x in choice.layouts[n:]), outs)


def _carried_out(op: Op, plan: CallPlan, inputs: tuple, attrs: tuple):
    engine, devices = current(), plan.home.layout.devices
    if devices[-1] >= engine.size:                        # made when there were more
        raise world_error(plan.home.placement, engine.size)
    owned, apart = engine.owned, plan.home.placement.type == "cuda"
    if op.random:
        given = {d: [_shape_of(x, place_of(plan.home.placement, d)) for x in inputs] for d in devices if d in owned}
    else:
        parts = [_input_parts(x, plan, r) for x, r in zip(inputs, plan.routes)]
        given = {d: [p[d] for p in parts] for d in devices if d in owned}
    if plan.calls is None and apart:
        made = {d: op.call(tuple(xs), attrs) for d, xs in given.items()}
    elif plan.calls is None:                              # all devices would do the same: it is done once
        made = dict.fromkeys(given, op.call(tuple(next(iter(given.values()))), attrs)) if given else {}
    else:
        mine = {d: plan.calls[devices.index(d)] for d in given}
        made = {d: mine[d].op.call(tuple(xs), mine[d].attrs) for d, xs in given.items()}
    identity = engine.identify(op, attrs, inputs)
    if len(plan.outs) == 1:
        return assembled(plan.outs[0], plan.global_layouts[0], made, plan.choice, identity)
    return tuple(assembled(spec, global_layout, {d: y[i] for d, y in made.items()}, plan.choice, identity and identity + i)
                 for i, (spec, global_layout) in enumerate(zip(plan.outs, plan.global_layouts)))


def _shape_of(x: Tensor, place: int) -> Tensor:
    """Zeros in the shape of x, which take no memory."""
    zero = on(REGISTRY["constant"](shape=(), value=0, dtype=x.dtype), place)
    return REGISTRY["expand"](zero, shape=x._sizes())


def _input_parts(x: Tensor, plan: CallPlan, route: Route | None) -> Parts:
    """An input's parts as the signature wants them. A local one is the same on every rank."""
    if x.global_layout is None:
        parts = Parts({d: x for d in plan.home.layout.devices if d in current().owned})
        if x.ndim or x._device:                            # (a number may join on a GPU as it is)
            parts = housed(parts, plan.home.placement)
    else:
        parts = parts_of(x)
    return parts if route is None else moved(route, parts, x.spec, plan.home.placement, parts.identity)


# ---- parts
def place_of(p: placement, rank: int) -> int:
    """The memory that a rank's part lies in (Block.device): 0, or 1 + the number of a GPU."""
    return 0 if p.type == "cpu" else extension("GPUs of ranks").place_of(p, rank)


def on(x: Tensor, place: int) -> Tensor:
    """x in this memory, without history; itself where it is there."""
    return x if x._device == place else carried(x, place)


def housed(parts: Parts, p: placement) -> Parts:
    """The parts, each in the memory of its device."""
    if p.type == "cpu" and not any(x._device for x in parts.values()):
        return parts
    return Parts({rank: on(x, place_of(p, rank)) for rank, x in parts.items()})


def parts_of(x: Tensor) -> Parts:
    """{rank: local tensor} of the ranks this thread owns, without history."""
    if x.link is not None:
        x.refresh_view()                                        # a view of what was written since
    if x.has_memory:
        return Parts({x.global_layout.layout.devices[0]: labelled(x, None)})
    return x.rare.parts


def assembled(spec: Spec, global_layout: GlobalLayout, parts: dict, origin: Choice | Route | None = None,
              identity=0) -> Tensor:
    """The global tensor of these parts, without history."""
    if global_layout.placement.type == "cuda":
        parts = housed(parts, global_layout.placement)
    if global_layout.single and parts:
        return labelled(next(iter(parts.values())), global_layout)
    y = global_tensor(tuple(spec.shape), spec.dtype, global_layout, Parts(parts))
    y.rare.parts.origin, y.rare.parts.identity = origin, 0 if global_layout.single else identity
    return y


def moved(route: Route, parts: dict, spec: Spec, p: placement, identity: int = 0) -> Parts:
    """The parts at the end of a route, on the devices of p. Where this thread owns all ranks that takes part it is done in
    ops; else through the communicator: then it is collective: every rank of both ends must call it."""
    if not route.hops:
        return housed(parts, p)
    if spec.dtype in (dt.float16, dt.bfloat16):           # summed and sent as float32
        cast = REGISTRY["cast"]
        wide = moved(route_of(route.src, route.dst, Spec(spec.shape, dt.float32)),
                     {r: cast(x, dtype=dt.float32) for r, x in parts.items()}, Spec(spec.shape, dt.float32), p, identity)
        return {r: cast(x, dtype=spec.dtype) for r, x in wide.items()}
    engine, src, dst = current(), route.src.devices, route.dst.devices
    owned = engine.owned                                  # (first and last are asked about first: that takes no sets)
    if len(owned) == engine.size or src[0] in owned and src[-1] in owned and set(src) | set(dst) <= set(owned):
        given = [parts[d] for d in src]
        found = extension("GPUs of ranks").run(route, given, p) if any(x._device for x in given) else route.run(given)
        return housed(dict(zip(dst, found)), p)
    arrays = {r: engine.comm(r).box(route, parts[r].peek() if r in parts else None, identity=identity) for r in owned}
    return housed({r: over(y, spec.dtype, Tensor) for r, y in arrays.items() if y is not None}, p)
