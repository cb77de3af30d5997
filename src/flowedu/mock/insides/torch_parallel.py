"""nn.parallel with PyTorch's semantics: DistributedDataParallel is a module that contains the module."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from flowedu.errors import ArgumentError, UnsupportedError
from flowedu.mock.insides.torch_comm_hooks import registered
from flowedu.mock.insides.torch_nn import DataParallel, data_parallel  # noqa: F401
from flowedu.nn import Module
from flowedu.nn.parallel.distributed import attach
from flowedu.nn.parallel.join import joined


class DistributedDataParallel(Module):
    """Module with the results of `module`, whose backward pass averages gradients over the ranks.

    Attributes: module, the original module (names in state_dict start with "module.").

    Args:
        device_ids, output_device: at most one device, that of the parameters.
        broadcast_buffers: copy rank 0's buffers before each forward pass.
        init_sync: copy rank 0's parameters and buffers at the start.
        find_unused_parameters, static_graph, gradient_as_bucket_view, bucket_cap_mb, dim, check_reduction:
            without effect, like PyTorch's other performance options. Parameters that a rank does not use have
            a zero gradient on it.
    """

    def __init__(self, module: Module, device_ids=None, output_device=None, dim: int = 0,
                 broadcast_buffers: bool = True,
                 init_sync: bool = True, process_group=None, bucket_cap_mb=None,
                 find_unused_parameters: bool = False,
                 check_reduction: bool = False, gradient_as_bucket_view: bool = False,
                 static_graph: bool = False,
                 delay_all_reduce_named_params=None, param_to_hook_all_reduce=None, mixed_precision=None,
                 device_mesh=None):
        super().__init__()
        if not isinstance(module, Module):
            raise ArgumentError("DistributedDataParallel: this is not a module", expected="an nn.Module",
                                got=type(module).__name__, fix="DistributedDataParallel(model)")
        if device_ids is not None and len(device_ids) > 1:
            raise ArgumentError("DistributedDataParallel: a rank has one device",
                                expected="device_ids=[one device]",
                                got=repr(device_ids),
                                fix="one process for each device, by flowedu.distributed.launch")
        for name, value in (("process_group", process_group), ("device_mesh", device_mesh),
                            ("delay_all_reduce_named_params", delay_all_reduce_named_params),
                            ("param_to_hook_all_reduce", param_to_hook_all_reduce),
                            ("mixed_precision", mixed_precision)):
            if value is not None:
                raise UnsupportedError(f"DistributedDataParallel: {name} cannot be followed",
                                       expected=f"{name}=None", got=type(value).__name__,
                                       fix="leave it out: all ranks take part, in the parameters' dtype")
        self.module = module
        self.device_ids, self.output_device, self.dim = device_ids, output_device, dim
        self.find_unused_parameters, self.broadcast_buffers, self.static_graph = (
            find_unused_parameters, broadcast_buffers, static_graph)
        self._buckets = attach(module, broadcast_buffers, init_sync, 10)

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    def register_comm_hook(self, state, hook: Callable) -> None:
        """Accept allreduce_hook, the default (mean over ranks). Raise UnsupportedError for others."""
        registered(state, hook)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Accumulate gradients locally within the block. The next backward pass outside averages them."""
        if self._buckets is None:
            yield
            return
        before, self._buckets.sync = self._buckets.sync, False
        try:
            yield
        finally:
            self._buckets.sync = before

    @contextmanager
    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True,
             throw_on_early_termination: bool = False) -> Iterator[None]:
        """Support ranks with different numbers of batches.

        A rank without batches contributes zero gradients until all ranks are done, and then gets the
        parameters of a rank with the most batches.

        divide_by_initial_world_size: divide gradients by the number of all ranks; False: by the number of
        ranks that still have batches. throw_on_early_termination: raise CommError on every rank when one
        has no batch left. A rank that raises an error does not wait.
        """
        with joined(self._buckets, divide_by_initial_world_size, enable, throw_on_early_termination):
            yield
