"""DistributedDataParallel: each rank has a copy of the module and part of the batch; gradients are averaged.

    model = nn.parallel.DistributedDataParallel(model)
    loss = model(part_of_the_batch).mean()
    loss.backward()                                  # every .grad is now the same on all ranks

Gradients are sent in buckets of a few parameters. The last parameters come first, because the backward pass
reaches them first, and a bucket is sent while the backward pass continues. All ranks send the buckets in the
same order, even if they use different parameters.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from flowedu.autograd.function import Function
from flowedu.autograd.trees import leaves, mapped
from flowedu.core.eager.dispatch import is_grad_enabled
from flowedu.core.layers.module import Module
from flowedu.core.sbp.ranks import current
from flowedu.distributed.ranks.base import Comm
from flowedu.errors import ArgumentError, CommError, DTypeError
from flowedu.tensor import Tensor, full
from flowedu.tensor.devices.conversion import put


class JoinState(Protocol):
    """State of the buckets inside join(): the factor of each gradient, and the exchange before a forward."""

    share: float

    def exchange(self, works: bool, reduces: bool, sends: bool) -> np.ndarray: ...


class _Gate(Function):
    """Identity on the module's outputs.

    Its backward runs first. It notifies the buckets that the backward pass begins, and gives every parameter
    a zero gradient, so that parameters not used by this rank also have one.
    """

    @staticmethod
    def forward(ctx, buckets, count, *values):
        ctx.buckets, ctx.parameters = buckets, values[count:]
        return tuple(x.view_as(x) for x in values[:count])

    @staticmethod
    def backward(ctx, *grads):
        ctx.buckets.begin(ctx.parameters)
        nothing = [full((), 0.0, dtype=p.dtype, device=p.device).expand(p.shape) for p in ctx.parameters]
        return (None, None, *grads, *nothing)


class Bucket:
    """Parameters whose gradients are sent together, concatenated in `flat`."""

    def __init__(self, params: Sequence[Tensor]):
        self.params = list(params)
        self.flat = np.empty(sum(p.numel() for p in params), params[0].dtype.numpy)
        self.missing: set[int] = set()
        self.arrive: Any = None                              # waits for the sum, while it is computed

    def parts(self):
        """Yield (parameter, its part of `flat`)."""
        at = 0
        for p in self.params:
            yield p, self.flat[at:at + p.numel()].reshape(tuple(p.shape))
            at += p.numel()


class Buckets:
    """All gradients of a module, and the state of one backward pass."""

    def __init__(self, comm: Comm, module: Module, params: Sequence[Tensor], bucket_size: int):
        self.comm, self.module, self.buckets = comm, module, []
        todo: list[Tensor] = []
        for p in reversed(params):
            if todo and (len(todo) == bucket_size or p.dtype is not todo[0].dtype):
                self.buckets.append(Bucket(todo))
                todo = []
            todo.append(p)
        if todo:
            self.buckets.append(Bucket(todo))
        self.home = {id(p): b for b in self.buckets for p in b.params}
        self.next: int | None = None                         # the first bucket that has not started, or None
        self.sync = True                                     # False: gradients computed now are not averaged
        self.joining: JoinState | None = None                  # inside join()

    def begin(self, params: Sequence[Tensor]) -> None:
        """Start a backward pass that reaches `params`."""
        if self.next is None:
            wanted = {id(p) for p in params}
            for b in self.buckets:
                b.missing = {id(p) for p in b.params} & wanted
            self.next = 0

    def reset(self) -> None:
        self.next = None

    def arrived(self, p: Tensor) -> None:
        """Record that the gradient of p is complete."""
        if self.next is None:                                # backward does not start at the module's output
            return
        self.home[id(p)].missing.discard(id(p))
        while self.next < len(self.buckets) and not self.buckets[self.next].missing:
            self._start(self.buckets[self.next])
            self.next += 1
        if self.next == len(self.buckets):
            self._finish()

    def _start(self, b: Bucket) -> None:
        for p, part in b.parts():
            if p.grad is None:
                part[...] = 0
            else:
                np.multiply(p.grad.peek(), self.joining.share if self.joining else 1 / self.comm.size,
                            out=part)
        b.arrive = self.comm.start_all_reduce(b.flat, "DistributedDataParallel")

    def _finish(self) -> None:
        for b in self.buckets:
            b.arrive()
            b.arrive = None
            for p, part in b.parts():
                if p.grad is not None:
                    put(p.grad, part)
        self.next = None

    def send_buffers(self) -> None:
        _broadcast(self.comm, list(self.module.buffers()))

    def share_all(self, source: int) -> None:
        """Copy the parameters and buffers of one rank to all ranks."""
        _broadcast(self.comm, [*self.module.parameters(), *self.module.buffers()], source)


def DistributedDataParallel(module: Module, *, broadcast_buffers: bool = True,  # noqa: N802
                            broadcast_parameters: bool = True, bucket_size: int = 10) -> Module:
    """Make the backward pass of `module` store the mean gradient over the ranks in each .grad.

    The output of the module may be a tensor, or tuples, lists, and dicts with tensors in them. Every rank
    must call forward and backward the same number of times. If a rank does not use a parameter, its
    gradient on that rank is zero.

    Args:
        module: module with the same structure on all ranks.
        broadcast_buffers: in training, copy rank 0's buffers to all ranks before each forward pass.
        broadcast_parameters: copy rank 0's parameters and buffers to all ranks at the start.
        bucket_size: number of parameters whose gradients are sent together.

    Returns:
        The same module, with hooks.

    Raises:
        CommError: the modules of the ranks differ.
        DTypeError: a parameter is neither float32 nor float64.
        ArgumentError: a parameter is global.
    """
    attach(module, broadcast_buffers, broadcast_parameters, bucket_size)
    return module


def attach(module: Module, broadcast_buffers: bool, broadcast_parameters: bool,
           bucket_size: int) -> Buckets | None:
    """Set up DistributedDataParallel; return the buckets, or None if there is only one rank."""
    engine = current()
    if not isinstance(bucket_size, int) or bucket_size < 1:
        raise ArgumentError("DistributedDataParallel: bucket_size is not a number of parameters",
                            expected="1 or more", got=repr(bucket_size), fix="10")
    params = [p for p in module.parameters() if p.requires_grad]
    for name, p in module.named_parameters():
        if p.is_global:
            raise ArgumentError(f"DistributedDataParallel: parameter {name} is global",
                                expected="local parameters",
                                got=f"placement={p.placement}",
                                fix="leave it away: global tensors' ops communicate")
        if p.requires_grad and (p.dtype.numpy is None or p.dtype.bytes < 4 or not p.dtype.is_floating_point):
            raise DTypeError(f"DistributedDataParallel: parameter {name} has another dtype",
                             expected="float32 or float64", got=repr(p.dtype), fix="module.float()")
    if len(engine.owned) > 1 or engine.size == 1:            # every rank has the same gradient
        return None
    comm: Any = engine.comm(engine.rank)
    _check_same(comm, module)
    if broadcast_parameters:
        _broadcast(comm, [*module.parameters(), *module.buffers()])
    buckets = Buckets(comm, module, params, bucket_size)
    for p in params:
        p.register_post_accumulate_grad_hook(buckets.arrived)

    def before(module, args):
        buckets.reset()
        sends = broadcast_buffers and module.training and buckets.sync
        if buckets.joining:
            reduces = buckets.sync and is_grad_enabled() and any(p.requires_grad for p in params)
            buckets.joining.exchange(True, reduces, sends)
        if sends:
            buckets.send_buffers()

    def after(module, args, out):
        found = [x for x in _leaves(out) if x.requires_grad]
        wanted = [p for p in params if p.requires_grad]
        if not found or not wanted or not buckets.sync or not is_grad_enabled():
            return out
        passed = iter(_Gate.apply(buckets, len(found), *found, *wanted))
        by = {id(x): y for x, y in zip(found, passed)}
        return mapped(lambda x: by.get(id(x), x), out)

    module.register_forward_pre_hook(before)
    module.register_forward_hook(after)
    return buckets


def _leaves(out) -> list[Tensor]:
    """Return the distinct tensors in an output."""
    return list({id(x): x for x in leaves(out) if isinstance(x, Tensor)}.values())


def _check_same(comm: Comm, module: Module) -> None:
    mine = [[name, list(x.shape), x.dtype.name, x.requires_grad] for name, x in (*module.named_parameters(),
                                                                                 *module.named_buffers())]
    for rank, theirs in enumerate(comm.all_gather_object(mine, what="DistributedDataParallel")):
        if theirs != mine:
            at = next((i for i, (a, b) in enumerate(zip(mine, theirs)) if a != b),
                      min(len(mine), len(theirs)))
            one, other = (str(x[at]) if at < len(x) else "nothing more" for x in (mine, theirs))
            raise CommError("DistributedDataParallel: the ranks' modules differ",
                            expected=f"{one}, as on rank {comm.rank}",
                            got=f"{other} on rank {rank}", fix="build the same module on every rank")


def _broadcast(comm: Comm, tensors: Sequence[Tensor], source: int = 0) -> None:
    """Copy the values of one rank to all ranks, with one message per dtype."""
    kinds: dict = {}
    for x in tensors:
        kinds.setdefault(x.dtype, []).append(x)
    for dtype, xs in kinds.items():
        if dtype.numpy is None:
            raise DTypeError("DistributedDataParallel: NumPy has no such dtype", expected="another",
                             got=repr(dtype), fix="broadcast_buffers=False, broadcast_parameters=False")
        arrays = [x.peek() for x in xs]
        flat = np.concatenate([a.reshape(-1) for a in arrays]) if comm.rank == source else None
        flat = comm.broadcast(flat, source, what="DistributedDataParallel")
        at = 0
        for x, a in zip(xs, arrays):
            if comm.rank != source:
                put(x, flat[at:at + a.size].reshape(a.shape))
            at += a.size
