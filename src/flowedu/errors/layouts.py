"""Errors of placements, layouts, and global tensors, for core to raise."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flowedu.errors import (
    ArgumentError,
    CheckError,
    CommError,
    DTypeError,
    JobBuildAndInferError,
    UnsupportedError,
)


def no_signature(question: Any, candidates: Sequence, name: str, line: str) -> JobBuildAndInferError:
    """Return the error for a call without a legal signature; show/choice.py has a longer one."""
    faults = "; ".join(f"{c.signature}: {c.fault}" for c in candidates)
    return JobBuildAndInferError(f"{name}: no signature of {question.op.name} is possible", got=faults,
                                 expected="a legal one", at=line,
                                 fix="convert an input to another layout before the op")


def boxing_misfit(at: Any, shape: Sequence, axis: int, least: int | None, k: int) -> ArgumentError:
    """Return the error for a layout whose split of `axis` over `k` devices is impossible."""
    if least is None:
        return ArgumentError(f"boxing: {at} splits axis {axis} of a value of shape {shape}", got=f"S({axis})",
                             expected=f"an axis of {len(shape)}" if shape else "B: a number cannot be split",
                             fix="B, or another axis")
    expected = f"an axis of {k} or more"
    if len(at.sbp) > 1:
        expected = f"at least {k} of axis {axis} where it is cut for {k} devices, not {least}"
    return ArgumentError(f"boxing: {at} does not suit the shape {shape}: a device would get nothing",
                         got=str(shape), expected=expected, fix="B, another axis, or fewer devices")


def placement_type(kind: str) -> ArgumentError:
    return ArgumentError("placement: type is not a kind of device", expected='"cpu" or "cuda"',
                         got=repr(kind), fix='flow.placement("cpu", [0, 1])')


def not_ranks(ranks: Any) -> ArgumentError:
    return ArgumentError("placement: ranks are not device numbers", got=repr(ranks),
                         expected="a list of ranks, 0 or more, or nested lists of equal length", fix="[0, 1]")


def repeated_rank(twice: Any, ranks: Any) -> ArgumentError:
    return ArgumentError(f"placement: rank {min(twice)} is there twice", expected="every rank once",
                         got=repr(ranks), fix="leave the second one out")


def sbp_called(sbp: Any) -> DTypeError:
    return DTypeError(f"{sbp!r} is an sbp already", expected="flow.sbp.split(dim)", got="a call",
                      fix="leave the () out")


def split_not_an_axis(dim: object) -> DTypeError:
    return DTypeError("sbp.split: dim is not the number of an axis", expected="an int of 0 or more",
                      got=repr(dim), fix="flow.sbp.split(0)")


def negative_split(dim: int) -> ArgumentError:
    return ArgumentError(f"Split axis must not be negative, but got {dim}!", expected="an axis counted from "
                         "the front", got=str(dim), fix="split(x.ndim - 1) is the last one")


def not_sbps(what: str, value: Any) -> DTypeError:
    return DTypeError(f"{what}: sbp parameter must be type of flowedu.sbp.sbp or list/tuple "
                      "of flowedu.sbp.sbp", expected="flow.sbp.split(0), flow.sbp.broadcast, "
                      "flow.sbp.partial_sum", got=repr(value), fix=suggest_sbp(value))


def wrong_number_of_sbps(what: str, sbps: Sequence, axes: int, value: Any) -> ArgumentError:
    return ArgumentError(f"{what}: one sbp for each axis of the placement's hierarchy ({len(sbps)} vs "
                         f"{axes})", expected=f"{axes} of them", got=repr(value),
                         fix="[" + ", ".join(["flow.sbp.broadcast"] * axes) + "], say")


def rank_ended(rank: int, title: str, parts: Any) -> CommError:
    return CommError(f"rank {rank} waits in {title} for a rank that has ended", at="", expected="all of them",
                     got=f"ranks {sorted(parts)}",
                     fix="every rank must make the same calls, in the same order")


def devices_variable(text: str) -> ArgumentError:
    return ArgumentError("FLOWEDU_DEVICES: not a number of devices", expected="1 to 4096", got=text, at="",
                         fix="FLOWEDU_DEVICES=2")


def not_a_device_count(k: int) -> ArgumentError:
    return ArgumentError("set_virtual_devices: not a number of devices", expected="1 to 4096", got=repr(k),
                         fix="2")


def fixed_world(engine: Any, k: int) -> ArgumentError:
    return ArgumentError(f"set_virtual_devices: this is rank {engine.rank} of a world of {engine.size}",
                         got=str(k), expected=str(engine.size),
                         fix=f"start it with --nproc_per_node {k}, or without the launcher")


def not_a_layout(s: Any) -> ArgumentError:
    return ArgumentError("layout: not a layout", expected='"B", "P", "S0", "S1" ...', got=repr(s),
                         fix='"S0" splits along axis 0')


def wrong_number_of_layouts(sbp: Any, hierarchy: Any, got: Any) -> ArgumentError:
    return ArgumentError(f"layout: {len(sbp)} SBPs for a hierarchy of {len(hierarchy)} axes ({len(sbp)} vs "
                         f"{len(hierarchy)})", expected=f"{len(hierarchy)}, one for each axis of {hierarchy}",
                         got=got, fix='("S0", "B") for a grid of two axes')


def not_a_grid(hierarchy: Any, devices: Any) -> ArgumentError:
    return ArgumentError("layout: the hierarchy is not a grid of these devices",
                         expected="every device once, as many as the product of the hierarchy",
                         got=f"hierarchy {hierarchy}, devices {devices}",
                         fix="hierarchy (2, 2) for devices (0, 1, 2, 3)")


def mixed_partial(got: Any) -> ArgumentError:
    return ArgumentError("layout: partial in two ways", expected="P, Pmax or Pmin, the same along all axes",
                         got=got, fix="bring one of them to B or S first")


def not_a_placement(what: str, p: Any) -> DTypeError:
    return DTypeError(f"{what}: placement is not a placement", expected="flow.placement(type, ranks)",
                      got=repr(p), fix='flow.placement("cpu", [0, 1])')


def short_axis(what: str, axis: Any, n: int, least: Any, shape: Sequence, sbps: Sequence) -> ArgumentError:
    return ArgumentError(f"{what}: axis {axis} is too short to be split over {n} devices ({least} vs {n})",
                         expected=f"{n} elements or more", got=f"shape {tuple(shape)}, sbp {tuple(sbps)}",
                         fix="split another axis, or flow.sbp.broadcast")


def local_and_global(name: str, inputs: Sequence, names: Sequence, i: int) -> ArgumentError:
    """Return the error for a local input `i` next to global ones."""
    j = next(j for j, y in enumerate(inputs) if y.global_layout is not None)
    return ArgumentError(f"{name}: Got input tensors with inconsistent attributes! op_type_name: "
                         f"{name}, attributes of inputs is: "
                         f"{', '.join('local' if y.global_layout is None else 'global' for y in inputs)}",
                         expected="all inputs local, or all global", got=f"{names[i]} is local, {names[j]} "
                         "is global", fix=f"{names[i]}.to_global(placement={names[j]}.placement, "
                         f"sbp=[{', '.join(['flow.sbp.broadcast'] * len(inputs[j].global_layout.sbp))}])")


def two_placements(name: str, inputs: Sequence, names: Sequence, first: int, i: int) -> ArgumentError:
    """Return the error for input `i`, which is on another placement than input `first`."""
    home, other = (inputs[n].global_layout.placement for n in (first, i))
    return ArgumentError(f"{name}: Expected all tensors to be on the same placement, but found at least two "
                         f"placements, {home} (positional {first}) and {other} (positional {i})!",
                         expected="one placement", got="two",
                         fix=f"{names[i]}.to_global(placement={home}, sbp=...)")


def no_placement(p: Any, sbps: Any) -> CheckError:
    return CheckError("Converting a local tensor to global tensor must have placement and sbp parameters.",
                      expected="both", got=f"placement={p!r}, sbp={sbps!r}",
                      fix='x.to_global(placement=flow.placement("cpu", [0]), sbp=flow.sbp.split(0))')


def already_local() -> ArgumentError:
    return ArgumentError("to_local: Expected global tensor for to_local but got local tensor!",
                         got="a local one", expected="a global tensor", fix="it is local already")


def to_local_in_build() -> UnsupportedError:
    return UnsupportedError("to_local: not inside nn.Graph.build", expected="global tensors in a global "
                            "graph", got="a lazy tensor", fix="call it on what the graph returns")


def which_shard(parts: Any) -> ArgumentError:
    return ArgumentError(f"to_local: this process owns ranks {', '.join(map(str, parts))}: which "
                         "shard is meant?", expected="one shard", got=f"{len(parts)} shards",
                         fix="x.to_local(rank=0), or x.parts, which has all; under flow.distributed.spawn or "
                         "the launcher every rank has its own")


def foreign_rank(rank: int, owned: Any) -> ArgumentError:
    return ArgumentError(f"to_local: rank {rank} belongs to another process", expected=f"one of {owned}",
                         got=str(rank), fix="leave rank out")


def to_global_in_job() -> UnsupportedError:
    return UnsupportedError("to_global: not inside a job function", expected="nn.Graph or eager tensors",
                            got="a lazy tensor", fix="flow.parallel_cast, or scopes")


def sbp_for_hierarchy(hierarchy: Any, sbp: Any) -> ArgumentError:
    return ArgumentError("to_global: another hierarchy needs an sbp", expected=f"{len(hierarchy)} of them",
                         got=f"sbp=None, and the present one is {sbp}", fix="pass sbp=")


def suggest_sbp(value: Any) -> str:
    """Return the sbp that corresponds to a value of another type, such as "S0", "split(0)", or 0."""
    text = str(value).strip().upper()
    if text in ("B", "BROADCAST"):
        return "flow.sbp.broadcast"
    if text in ("P", "PARTIAL", "PARTIAL_SUM"):
        return "flow.sbp.partial_sum"
    axis = text.strip("SPLIT()[] ")
    return f"flow.sbp.split({axis if axis.isdecimal() and len(axis) < 3 else 0})"


def world_error(p: Any, size: int) -> ArgumentError:
    """Return the error for a placement with a rank outside the world."""
    k = max(p.devices) + 1
    return ArgumentError("Placement is invalid because rank must be less than world size!", expected="ranks "
                         f"below {size}", got=repr(p), fix=f"flow.distributed.set_virtual_devices({k}) at "
                         f"the start of the script (or FLOWEDU_DEVICES={k}), or run it with python -m "
                         f"flowedu.distributed.launch --nproc_per_node {k}")


def axis_error(what: str, axis: int, shape: Sequence, expected: str,
               fix: str = "flow.sbp.split(0)") -> ArgumentError:
    """Return the error for a split of an axis that the shape does not have."""
    return ArgumentError(f"{what}: Split axis out of range (expected to be in range of [0, {len(shape)}), "
                         f"but got {axis}!)", expected=expected, got=f"flowedu.sbp.split(dim={axis})",
                         fix=fix)
