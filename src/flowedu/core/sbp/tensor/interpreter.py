"""Eager interpreter of global tensors: chooses a signature, boxes inputs, runs the op on each part.

It runs the calls that have a global tensor among the inputs. The choice depends only on Specs,
attributes, and layouts, so plans are cached. Gradients are recorded on logical values
(core/eager/later/global.pxi); the backward pass calls this interpreter again for each op.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from flowedu.core import extensions
from flowedu.core.eager.dispatch import GlobalLayout, copy_to_device, global_tensor, labelled
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.define import REGISTRY, Op
from flowedu.core.sbp.boxing.algebra import Route
from flowedu.core.sbp.boxing.primitives import route as route_of
from flowedu.core.sbp.choose import Choice, choose
from flowedu.core.sbp.local import LocalCall
from flowedu.core.sbp.names import placement
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.signature import names_of
from flowedu.core.sbp.tensor.global_layout import remember, with_texts
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from flowedu.core.values.storage import from_numpy as over
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import layouts as errors
from flowedu.errors import user_line

_plans: dict[tuple, CallPlan] = {}


class Parts(dict):
    """{rank: part} of this thread, with identity (Engine.identify) and origin (Choice or Route)."""

    identity, origin = 0, None


class CallPlan(NamedTuple):
    """The plan of a call: routes of the inputs, calls of the devices, layouts of the results."""

    home: GlobalLayout
    choice: Choice
    routes: tuple[Route | None, ...]
    calls: tuple[LocalCall, ...] | None  # per device; None: all B, one call for all
    global_layouts: tuple[GlobalLayout, ...]
    outs: tuple[Spec, ...]


def run(op: Op, inputs: tuple, attrs: tuple) -> Tensor | tuple[Tensor, ...]:
    """Return the result of `op(*inputs)`: a tensor without history, or a tuple of tensors."""
    home = _find_placement(op, inputs)
    names = attrs[:-2] if op.random else attrs   # without seed and draw, which differ in every call
    strict, rule = thread_state.strict, thread_state.rule
    global_layouts = tuple(home if x.global_layout is None else x.global_layout for x in inputs)
    key = (op, names, global_layouts, strict, rule, *[(x._sizes(), x.dtype) for x in inputs])
    plan = _plans.get(key)
    if plan is None:
        plan = _make_plan(op, [x.spec for x in inputs], attrs, home, global_layouts, strict, rule)
        remember(_plans, key, plan)
    if thread_state.choice_log is not None:
        thread_state.choice_log.append(plan.choice)
    return _execute(op, plan, inputs, attrs)


def _find_placement(op: Op, inputs: tuple) -> GlobalLayout | Any:
    """Return the broadcast layout on the common placement of the global inputs."""
    home, first = None, 0
    for i, x in enumerate(inputs):
        if x.global_layout is None:
            if not x.uniform:
                raise errors.local_and_global(op.name, inputs, names_of(op, len(inputs)), i)
        elif home is None:
            home, first = x.global_layout.whole, i
        elif x.global_layout.whole is not home:
            raise errors.two_placements(op.name, inputs, names_of(op, len(inputs)), first, i)
    return home


def _make_plan(op: Op, specs: list[Spec], attrs: tuple, home: GlobalLayout,
               global_layouts: tuple[GlobalLayout, ...], strict: bool, rule: str) -> CallPlan:
    if op.random:                                         # it reads only shapes, so no boxing
        global_layouts = (home,) * len(global_layouts)
    choice = choose(op, specs, attrs, [[g.layout] for g in global_layouts], home.layout.devices,
                    home.layout.hierarchy, name=op.name, line=user_line(), strict=strict, rule=rule)
    n = len(specs)
    routes = tuple(r if r is not None and r.hops and not op.random else None for r in choice.routes)
    results = tuple(with_texts(home, x.sbp) for x in choice.layouts[n:])
    return CallPlan(home, choice, routes, choice.calls, results, op.infer(specs, attrs))


def _execute(op: Op, plan: CallPlan, inputs: tuple, attrs: tuple) -> Tensor | tuple[Tensor, ...]:
    engine, devices = current(), plan.home.layout.devices
    if devices[-1] >= engine.size:                        # the cached plan is for a larger world
        raise errors.world_error(plan.home.placement, engine.size)
    owned, p = [d for d in devices if d in engine.owned], plan.home.placement
    if op.random:
        args = {d: tuple(_expanded_zero(x, place_of(p, d)) for x in inputs) for d in owned}
    else:
        inputs_parts = [_input_parts(x, plan, r) for x, r in zip(inputs, plan.routes)]
        args = {d: tuple(parts[d] for parts in inputs_parts) for d in owned}
    if plan.calls is None and p.type == "cuda":
        results = {d: op.call(xs, attrs) for d, xs in args.items()}
    elif plan.calls is None:                              # all devices compute the same: call once
        results = dict.fromkeys(args, op.call(args[owned[0]], attrs)) if args else {}
    else:
        calls = {d: plan.calls[devices.index(d)] for d in args}
        results = {d: calls[d].op.call(xs, calls[d].attrs) for d, xs in args.items()}
    identity = engine.identify(op, attrs, inputs)
    if len(plan.outs) == 1:
        return assemble(plan.outs[0], plan.global_layouts[0], results, plan.choice, identity)
    return tuple(assemble(spec, layout, {d: y[i] for d, y in results.items()},
                          plan.choice, identity and identity + i)
                 for i, (spec, layout) in enumerate(zip(plan.outs, plan.global_layouts)))


def _expanded_zero(x: Tensor, place: int) -> Tensor:
    """Return a zero expanded to the shape of x, with the memory of one element."""
    zero = on(REGISTRY["constant"](shape=(), value=0, dtype=x.dtype), place)
    return REGISTRY["expand"](zero, shape=x._sizes())


def _input_parts(x: Tensor, plan: CallPlan, route: Route | None) -> Parts:
    """Return the parts of an input in the plan's layout. Local inputs are equal on all ranks."""
    if x.global_layout is None:
        parts = Parts({d: x for d in plan.home.layout.devices if d in current().owned})
        if x.ndim or x._device:                            # 0-d tensors may stay in main memory
            parts = place_on_devices(parts, plan.home.placement)
    else:
        parts = parts_of(x)
    return parts if route is None else apply_route(route, parts, x.spec, plan.home.placement,
                                                   parts.identity)


# ---- parts
def place_of(p: placement, rank: int) -> int:
    """Return the memory of a rank's part (Block.device): 0, or 1 + the number of a GPU."""
    return 0 if p.type == "cpu" else extensions.rank_gpus.place_of(p, rank)


def on(x: Tensor, place: int) -> Tensor:
    """Return x, or a copy of it in the memory `place` without history."""
    return x if x._device == place else copy_to_device(x, place)


def place_on_devices(parts: dict, p: placement) -> Any:
    """Return the parts, each in the memory of its device."""
    if p.type == "cpu" and not any(x._device for x in parts.values()):
        return parts
    return Parts({rank: on(x, place_of(p, rank)) for rank, x in parts.items()})


def parts_of(x: Tensor) -> Parts:
    """Return {rank: local tensor} for the ranks of this thread, without history."""
    if x.link is not None:
        x.refresh_view()                                        # the base may have changed
    if x.has_memory:
        return Parts({x.global_layout.layout.devices[0]: labelled(x, None)})
    return x.rare.parts


def assemble(spec: Spec, global_layout: GlobalLayout, parts: dict,
             origin: Choice | Route | None = None, identity: int = 0) -> Tensor:
    """Return the global tensor with these parts, without history."""
    if global_layout.placement.type == "cuda":
        parts = place_on_devices(parts, global_layout.placement)
    if global_layout.single and parts:
        return labelled(next(iter(parts.values())), global_layout)
    y = global_tensor(tuple(spec.shape), spec.dtype, global_layout, Parts(parts))
    y.rare.parts.origin, y.rare.parts.identity = origin, 0 if global_layout.single else identity
    return y


def apply_route(route: Route, parts: dict, spec: Spec, p: placement, identity: int = 0) -> Any:
    """Return the parts after a route, on the devices of p. All ranks of a route must call this."""
    if not route.hops:
        return place_on_devices(parts, p)
    if spec.dtype in (dt.float16, dt.bfloat16):           # sum and send as float32
        cast, wide = REGISTRY["cast"], Spec(spec.shape, dt.float32)
        parts = {r: cast(x, dtype=dt.float32) for r, x in parts.items()}
        parts = apply_route(route_of(route.src, route.dst, wide), parts, wide, p, identity)
        return {r: cast(x, dtype=spec.dtype) for r, x in parts.items()}
    engine, src, dst = current(), route.src.devices, route.dst.devices
    owned = engine.owned                                  # test first and last before building sets
    if len(owned) == engine.size or src[0] in owned and src[-1] in owned and set(src +
                                                                                 dst) <= set(owned):
        xs = [parts[d] for d in src]
        ys = extensions.rank_gpus.run(route, xs, p) if any(x._device for x in xs) else route.run(xs)
        return place_on_devices(dict(zip(dst, ys)), p)
    arrays = {r: engine.comm(r).box(route, parts[r].peek() if r in parts else None,
                                    identity=identity) for r in owned}
    return place_on_devices({r: over(y, spec.dtype, Tensor) for r, y in arrays.items()
                             if y is not None}, p)
