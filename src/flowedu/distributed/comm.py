"""flow.comm: collectives on local tensors. Every rank of the world makes the same calls in the same order.

    x = flow.ones(3) * flow.env.get_rank()
    flow.comm.all_reduce(x)                  # 0 + 1 + ... on every rank

If one process does the work of all virtual devices, the result is that of rank 0, as if each rank had passed
the same tensor. Gradients do not flow through these functions; use global tensors for that.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from flowedu.core.sbp.ranks import current
from flowedu.core.values import dtype as dt
from flowedu.distributed.ranks.base import Comm
from flowedu.distributed.ranks.mirror import Mirror
from flowedu.errors import ArgumentError, CallError, ShapeError
from flowedu.tensor import Tensor, from_numpy, no_grad
from flowedu.tensor.devices import device as gpus
from flowedu.tensor.devices.conversion import put
from flowedu.tensor.devices.device import usable


def _comm() -> Comm:
    engine: Any = current()                    # its communicators have all operations of this module
    return engine.comm(engine.rank) if len(engine.owned) == 1 else Mirror(engine.size)


def _local(x, name: str) -> Tensor:
    """Return x if it is a local tensor, or raise an error."""
    if not isinstance(x, Tensor) or x.is_global or x.is_lazy:
        kind = type(x).__name__
        if isinstance(x, Tensor):
            kind = "a global tensor" if x.is_global else "a tensor of a graph"
        raise CallError(f"flow.comm.{name}: not a local tensor", expected="a local tensor", got=kind,
                        fix="x.to_local(), or x.to_global(sbp=...), which communicates itself")
    return x


def _numbers(x, name: str) -> np.ndarray:
    """Return the data of a local tensor as a contiguous array, without a copy if possible.

    GPU data uses pinned memory.
    """
    if _local(x, name).dtype.numpy is None:                  # bfloat16
        x = x.to(dt.float32)
    a = (gpus.part("pinned").fetched(x) if x.is_cuda else x).numpy()
    return a if a.flags.c_contiguous else np.array(a, order="C")


def _room(x, name: str) -> np.ndarray:
    """Return _numbers(x) for a tensor that provides only memory, which need not be initialized."""
    return np.empty(_local(x, name).shape, x.dtype.numpy or np.float32)


def _same(name: str, xs: Sequence[Tensor], n: int, like: Tensor, what: str) -> None:
    """Raise an error unless xs is a list of n tensors of one shape and dtype."""
    if len(xs) != n:
        raise ArgumentError(f"flow.comm.{name}: {what} has not one tensor for each rank", expected=str(n),
                            got=str(len(xs)), fix=f"[flow.empty_like(x) for _ in range({n})]")
    for i, x in enumerate(xs):
        _local(x, name)
        if x.shape != like.shape or x.dtype is not like.dtype:
            raise ShapeError(f"flow.comm.{name}: {what}[{i}] has another shape or dtype",
                             got=f"{x.dtype} {tuple(x.shape)}",
                             expected=f"{like.dtype} {tuple(like.shape)}", fix="flow.empty_like(x)")


def _root(name: str, rank: int, c: Comm) -> int:
    if not 0 <= rank < c.size:
        raise ArgumentError(f"flow.comm.{name}: there is no rank {rank}", expected=f"0 to {c.size - 1}",
                            got=str(rank), fix="0")
    return rank


def all_reduce(tensor: Tensor) -> Tensor:
    """Replace `tensor` by the sum of the tensors of all ranks.

    Args:
        tensor: a local tensor of the same shape and dtype on all ranks, which is modified in place.
    """
    a = _numbers(tensor, "all_reduce")
    put(tensor, _comm().all_reduce(a, what="flow.comm.all_reduce"))
    return tensor


def all_gather(tensor_list: list[Tensor], tensor: Tensor) -> None:
    """Copy the tensor of each rank into a list.

    Args:
        tensor_list: one tensor per rank; tensor_list[i] receives the tensor of rank i.
        tensor: the tensor of this rank.
    """
    c, a = _comm(), _numbers(tensor, "all_gather")
    _same("all_gather", tensor_list, c.size, tensor, "tensor_list")
    for y, part in zip(tensor_list, c.all_gather(a, what="flow.comm.all_gather")):
        put(y, part)


def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor) -> None:
    """Concatenate the tensors of all ranks.

    Args:
        output_tensor: the destination, of any shape with as many elements.
        input_tensor: the tensor of this rank.
    """
    c, a = _comm(), _numbers(input_tensor, "all_gather_into_tensor")
    whole, shape = (c.size, *a.shape), _local(output_tensor, "all_gather_into_tensor")._sizes()
    if output_tensor._numel != c.size * a.size:
        raise ShapeError("flow.comm.all_gather_into_tensor: the output has another number of elements",
                         got=str(shape), expected=f"{c.size} times {a.size}", fix=f"flow.empty{whole}")
    put(output_tensor, c.all_gather(a, what="flow.comm.all_gather_into_tensor").reshape(shape))


def broadcast(tensor: Tensor, src: int = 0) -> Tensor:
    """Replace `tensor` by the tensor of rank `src`.

    Args:
        tensor: a local tensor with as many elements and the same dtype on all ranks, which is modified in
            place. Its shape does not change.
        src: the sending rank.
    """
    c = _comm()
    root = _root("broadcast", src, c)
    a = (_numbers if isinstance(c, Mirror) or c.rank == root else _room)(tensor, "broadcast")
    got = c.broadcast(a, root, what="flow.comm.broadcast")
    if got.size != a.size or got.dtype != a.dtype:
        raise ShapeError(f"flow.comm.broadcast: rank {src} sends another number of elements or dtype",
                         got=f"{got.dtype} {got.shape}", expected=f"{a.dtype} {a.shape}, as on rank {c.rank}",
                         fix=f"flow.empty{got.shape} on the others")
    put(tensor, got.reshape(a.shape))
    return tensor


def scatter(tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int = 0) -> Tensor:
    """Replace `tensor` by the element scatter_list[rank] of rank `src`.

    Args:
        tensor: the destination.
        scatter_list: one tensor per rank. Only rank `src` needs it.
        src: the sending rank.
    """
    c, a = _comm(), _room(tensor, "scatter")
    parts = []
    if c.rank == _root("scatter", src, c):
        if scatter_list is None:
            raise ArgumentError("flow.comm.scatter: rank src has no scatter_list",
                                expected=f"{c.size} tensors", got="None", fix="scatter_list=list(x.chunk(n))")
        _same("scatter", scatter_list, c.size, tensor, "scatter_list")
        parts = [_numbers(x, "scatter") for x in scatter_list]
    put(tensor, _spread(c, src, parts, a))
    return tensor


def _spread(c: Comm, src: int, parts: list[np.ndarray], a: np.ndarray) -> np.ndarray:
    """Return parts[rank] of rank src. On other ranks, `parts` is not used."""
    if isinstance(c, Mirror):
        return parts[c.rank]
    if c.rank == src:
        c.exchange([(r, parts[r]) for r in range(c.size) if r != src], [], "flow.comm.scatter")
        return parts[src]
    return c.recv(src, a.shape, a.dtype, "flow.comm.scatter")


def reduce(tensor: Tensor, dst: int = 0) -> Tensor:
    """Replace `tensor` on rank `dst` by the sum of the tensors of all ranks.

    Args:
        tensor: a local tensor of the same shape and dtype on all ranks. Only rank `dst` modifies it.
        dst: the receiving rank.
    """
    c, a = _comm(), _numbers(tensor, "reduce")
    _root("reduce", dst, c)
    total = c.all_reduce(a, what="flow.comm.reduce")
    if c.rank == dst:
        put(tensor, total)
    return tensor


def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int = 0) -> None:
    """Copy the tensor of each rank into a list on rank `dst`.

    Args:
        tensor: the tensor of this rank.
        gather_list: one tensor per rank; gather_list[i] receives the tensor of rank i. Only rank `dst` needs
            it.
        dst: the receiving rank.
    """
    c, a = _comm(), _numbers(tensor, "gather")
    if c.rank != _root("gather", dst, c):
        c.send(dst, a, "flow.comm.gather")
        return
    if gather_list is None:
        raise ArgumentError("flow.comm.gather: rank dst has no gather_list", expected=f"{c.size} tensors",
                            got="None", fix="gather_list=[flow.empty_like(x) for _ in range(n)]")
    _same("gather", gather_list, c.size, tensor, "gather_list")
    others = [r for r in range(c.size) if r != dst]
    got = [a] * len(others) if isinstance(c, Mirror) else c.exchange(
        [], [(r, a.shape, a.dtype) for r in others], "flow.comm.gather")
    for r, part in (*zip(others, got), (dst, a)):
        put(gather_list[r], part)


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor]) -> None:
    """Send one tensor to each rank, and receive one from each.

    Args:
        output_tensor_list: one tensor per rank; element i receives the tensor that rank i sends to this rank.
        input_tensor_list: one tensor per rank; element i is sent to rank i.
    """
    c = _comm()
    for what, xs in (("output_tensor_list", output_tensor_list), ("input_tensor_list", input_tensor_list)):
        if len(xs) != c.size:
            raise ArgumentError(f"flow.comm.all_to_all: {what} has not one tensor for each rank",
                                expected=str(c.size), got=str(len(xs)), fix="list(x.chunk(n))")
    own, there = input_tensor_list[c.rank], output_tensor_list[c.rank]
    if _local(own, "all_to_all").shape != _local(there, "all_to_all").shape or own.dtype is not there.dtype:
        raise ShapeError("flow.comm.all_to_all: what stays on a rank has another shape or dtype than its "
                         "output",
                         expected=f"{own.dtype} {tuple(own.shape)}",
                         got=f"{there.dtype} {tuple(there.shape)}",
                         fix="[flow.empty_like(x) for x in input_tensor_list]")
    given = [_numbers(x, "all_to_all") for x in input_tensor_list]
    room = [_room(y, "all_to_all") for y in output_tensor_list]
    others = [r for r in range(c.size) if r != c.rank]
    got = [given[c.rank]] * len(others) if isinstance(c, Mirror) else c.exchange(
        [(r, given[r]) for r in others], [(r, room[r].shape, room[r].dtype) for r in others],
        "flow.comm.all_to_all")
    for r, part in (*zip(others, got), (c.rank, given[c.rank])):
        put(output_tensor_list[r], part)


def reduce_scatter(output: Tensor, input_list: list[Tensor]) -> Tensor:
    """Replace `output` by the sum of the elements input_list[rank] of all ranks.

    Args:
        output: the destination.
        input_list: one tensor per rank.
    """
    c = _comm()
    _local(output, "reduce_scatter")
    _same("reduce_scatter", input_list, c.size, output, "input_list")
    parts = np.stack([_numbers(x, "reduce_scatter") for x in input_list])
    put(output, c.reduce_scatter(parts, what="flow.comm.reduce_scatter"))
    return output


def reduce_scatter_tensor(output_tensor: Tensor, input_tensor: Tensor) -> Tensor:
    """Sum `input_tensor` over all ranks, and replace `output_tensor` by this rank's part of the sum.

    Args:
        output_tensor: the destination. Rank 0 receives the first elements, and so on.
        input_tensor: a tensor with as many elements as all outputs together.
    """
    c, a, y = (_comm(), _numbers(input_tensor, "reduce_scatter_tensor"),
               _room(output_tensor, "reduce_scatter_tensor"))
    if a.size != c.size * y.size:
        raise ShapeError("flow.comm.reduce_scatter_tensor: the output is not one of equal parts of the input",
                         expected=f"{c.size} times {y.shape}", got=str(a.shape),
                         fix="pad axis 0, or use reduce_scatter")
    put(output_tensor, c.reduce_scatter(a.reshape(c.size, *y.shape), what="flow.comm.reduce_scatter_tensor"))
    return output_tensor


def send(input: Tensor, dst: int, send_meta: bool = True) -> None:
    """Send a tensor to a rank without waiting.

    Args:
        input: the tensor.
        dst: the receiving rank.
        send_meta: also send shape and dtype, for a recv without them.
    """
    c, a = _comm(), _numbers(input, "send")
    if send_meta:
        c.send(dst, np.array([dt.BY_CODE.index(input.dtype), a.ndim, *a.shape, *[0] * (16 - a.ndim)]),
               "flow.comm.send")
    c.send(dst, a, "flow.comm.send")


def recv(src: int, shape: Sequence[int] | None = None, dtype=None, device=None, *,
         out: Tensor | None = None) -> Tensor:
    """Return the next tensor from a rank.

    Args:
        src: the sending rank.
        shape: the shape; None receives it from send(..., send_meta=True). With send_meta=False shape and
            dtype are required.
        dtype: the dtype, or None.
        device: the device of the result; None is the CPU.
        out: a tensor for the result, or None.
    """
    c = _comm()
    device = "cpu" if device is None else usable(device)
    if (shape is None) != (dtype is None):
        raise ArgumentError("flow.comm.recv: shape and dtype belong together", expected="both or neither",
                            got="shape" if dtype is None else "dtype",
                            fix="both, with send_meta=False at the sender")
    if shape is None:
        code, ndim, *sizes = c.recv(src, (18,), np.int64, "flow.comm.recv").tolist()
        shape, dtype = sizes[:ndim], dt.BY_CODE[code]
    dtype = dt.as_dtype(dtype, "flow.comm.recv: dtype")
    got = from_numpy(c.recv(src, tuple(shape), dtype.numpy or np.dtype(np.float32), "flow.comm.recv"))
    if dtype.numpy is None:
        got = got.to(dtype)
    if out is None:
        return got.to(device)
    if out.shape != got.shape or out.dtype is not got.dtype:
        raise ShapeError("flow.comm.recv: out has another shape or dtype",
                         got=f"{out.dtype} {tuple(out.shape)}",
                         expected=f"{got.dtype} {tuple(got.shape)}", fix="out=flow.empty(shape, dtype=dtype)")
    with no_grad():
        out.copy_(got)
    return out


def barrier() -> None:
    """Wait until all ranks have reached this call."""
    _comm().barrier(what="flow.comm.barrier")
