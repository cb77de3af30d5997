"""Written by `make stubs`: do not edit."""
from collections.abc import Callable, Iterator, Mapping
from flowedu.core.eager.tensor import Tensor
from flowedu.core.layers.parameter import Parameter
from flowedu.nn.methods.conversion import Convertible
from flowedu.nn.methods.hooks import RemovableHandle
from typing import Any, Self

class Module:
    """Base class of all modules."""
    training: bool
    def __call__(self, *args, **kwargs) -> Any: ...
    def __delattr__(self, name: str) -> None: ...
    def __dir__(self) -> list[str]: ...
    def __getattr__(self, name: str) -> Any: ...
    def __init__(self) -> None: ...
    def __repr__(self) -> str: ...
    def __setattr__(self, name: str, value) -> None: ...
    def add_module(self, name: str, module: Module | None) -> None: """Add a child under a name."""
    def apply(self, fn: Callable[[Module], None]) -> Self:
        """fn(module) for every module below this one and then for itself."""
    def bfloat16(self) -> Self: """Floating parameters and buffers as bfloat16."""
    def buffers(self, recurse: bool = True) -> Iterator[Tensor]: """Yield the buffers."""
    def children(self) -> Iterator[Module]: """Yield the direct children, each once."""
    def cpu(self) -> Self: """Parameters and buffers in main memory."""
    def cuda(self, device=None) -> Self: """Move parameters and buffers to a GPU; raise an error if no GPU exists."""
    def double(self) -> Self: """Floating parameters and buffers as float64."""
    def eval(self) -> Self: """Set evaluation mode, as `train(False)`."""
    def extra_repr(self) -> str: """Return the text between the parentheses of the printed module."""
    def float(self) -> Self: """Floating parameters and buffers as float32."""
    def forward(self, *args, **kwargs): """Compute the output of the module."""
    def get_buffer(self, target: str) -> Tensor: """The buffer at a path."""
    def get_extra_state(self):
        """Return non-tensor state for state_dict; a module that has some overrides this and set_extra_state."""
    def get_parameter(self, target: str) -> Parameter: """The parameter at a path."""
    def get_submodule(self, target: str) -> Module: """The module at a path such as "features.0"; "" is this one."""
    def half(self) -> Self: """Floating parameters and buffers as float16."""
    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True, assign: bool = False):
        """Copy tensors into the parameters and buffers of those names; the parameters stay the same objects."""
    def modules(self) -> Iterator[Module]: """Yield this module and all modules below it, each once."""
    def named_buffers(self, prefix: str = '', recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Yield (path, buffer) in the order of named_parameters."""
    def named_children(self) -> Iterator[tuple[str, Module]]: """Yield (name, module) for the direct children, each once."""
    def named_modules(self, memo: set | None = None, prefix: str = '', remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """Yield (path, module) for this module and all modules below it, each once."""
    def named_parameters(self, prefix: str = '', recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, parameter) for this module and, with `recurse`, all modules below it, each parameter once."""
    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, for example for an optimizer."""
    def register_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_input, grad_output) when the gradients of the module's inputs are computed; it may return others."""
    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but not learnt. persistent: whether state_dict has it."""
    def register_forward_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False) -> RemovableHandle:
        """Call hook(module, args, output) after forward; its result replaces the output. with_kwargs: hook(module, args, kwargs, output). always_call: also when forward raises, with output None."""
    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """Call hook(module, args) before forward; its result replaces args. with_kwargs: hook(module, args, kwargs), which may return (args, kwargs)."""
    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_input, grad_output) when the gradients of the module's inputs are computed; it may return others."""
    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_output) before backward goes through the module; it may return another grad_output."""
    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """hook(module, incompatible_keys) is called after loading, and may change the two lists in place."""
    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors) may rename keys."""
    def register_module(self, name: str, module: Module | None) -> None: """Add a child under a name."""
    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or None as a place for one."""
    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """hook(module, state_dict, prefix, local_metadata) may change the result of state_dict."""
    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """hook(module, prefix, keep_vars) is called before state_dict collects."""
    def requires_grad_(self, requires_grad: bool = True) -> Self: """Let all parameters be learnt, or none."""
    def set_extra_state(self, state) -> None: """Take what get_extra_state gave."""
    def state_dict(self, destination: dict | None = None, prefix: str = '', keep_vars: bool | None = None) -> dict:
        """{name: tensor} of the parameters and persistent buffers: own ones, then those of the submodules."""
    def to(self, *args, **kwargs) -> Self:
        """to(dtype), to(device), to(device, dtype), to(tensor): parameters and buffers are converted in place."""
    def to_consistent(self, placement=None, sbp=None) -> Convertible:
        """Every parameter and buffer as a global tensor: the present values are this rank's shards (Tensor.to_global), so a weight (4, 2) with split(0) on two ranks is then (8, 2)."""
    def to_global(self, placement=None, sbp=None) -> Self:
        """Every parameter and buffer as a global tensor: the present values are this rank's shards (Tensor.to_global), so a weight (4, 2) with split(0) on two ranks is then (8, 2)."""
    def to_local(self) -> Self: """Every global parameter and buffer as this rank's shard."""
    def train(self, mode: bool = True) -> Self:
        """Set training mode (False: evaluation mode) here and, through their `train`, in all children."""
    def type(self, dst_type) -> Self: """All parameters and buffers in a dtype."""
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Delete the gradients, or fill them with zeros if `set_to_none` is False (the default of OneFlow 0.9)."""
def name_of(value) -> str: ...
