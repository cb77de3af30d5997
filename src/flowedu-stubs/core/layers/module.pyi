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
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __delattr__(self, name: str) -> None: ...
    def __dir__(self) -> list[str]: ...
    def __getattr__(self, name: str) -> Any: ...
    def __init__(self) -> None: ...
    def __repr__(self) -> str: ...
    def __setattr__(self, name: str, value: object) -> None: ...
    def _add_state_hook(self, kind: str, hook: Callable) -> RemovableHandle: ...
    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Convertible: ...
    def _call_impl(self, *args: Any, **kwargs: Any) -> Any: ...
    def _check_name(self, what: str, kind: str, name, table: dict) -> None: ...
    def _floating(self, name: str) -> Convertible: ...
    def _get(self, target: str, table: str, what: str): ...
    def _get_name(self) -> str: ...
    def _hook(self, kind: str, hook: Callable, **options) -> RemovableHandle: ...
    _hooks: Any
    def _hooks_of(self, kind: str) -> list[Callable]: ...
    def _load_from_state_dict(self, state_dict: dict, prefix: str, local_metadata: dict, strict: bool, missing_keys: list, unexpected_keys: list, error_msgs: list) -> None: ...
    def _named_members(self, get_members_fn: Callable, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Tensor]]: ...
    def _need_init(self, assignment: str) -> None: ...
    def _own_tensors(self) -> Iterator[tuple[str, Tensor]]: ...
    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle: ...
    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None: ...
    def _shallow_repr(self) -> str: ...
    _state_hooks: Any
    _uncalled: tuple
    _version: int
    def add_module(self, name: str, module: Module | None) -> None: """Register a child module."""
    def apply(self, fn: Callable[[Module], None]) -> Self:
        """Call fn(module) for every descendant and then for the module itself; return the module."""
    def bfloat16(self) -> Self: """Convert floating parameters and buffers to bfloat16 and return the module."""
    def buffers(self, recurse: bool = True) -> Iterator[Tensor]: """Yield the buffers."""
    def children(self) -> Iterator[Module]: """Yield the direct children, each once."""
    def cpu(self) -> Self: """Move parameters and buffers to main memory and return the module."""
    def cuda(self, device=None) -> Self:
        """Move parameters and buffers to a GPU and return the module; raise an error if no GPU exists."""
    def double(self) -> Self: """Convert floating parameters and buffers to float64 and return the module."""
    def eval(self) -> Self: """Set evaluation mode, as `train(False)`."""
    def extra_repr(self) -> str: """Return the text between the parentheses of the printed module."""
    def float(self) -> Self: """Convert floating parameters and buffers to float32 and return the module."""
    def forward(self, *args: Any, **kwargs: Any) -> Any: """Compute the output of the module."""
    def get_buffer(self, target: str) -> Tensor: """Return the buffer at a path."""
    def get_extra_state(self):
        """Return non-tensor state for state_dict; modules with such state override this and set_extra_state."""
    def get_parameter(self, target: str) -> Parameter: """Return the parameter at a path."""
    def get_submodule(self, target: str) -> Module:
        """Return the module at a path such as "features.0"; "" is the module itself."""
    def half(self) -> Self: """Convert floating parameters and buffers to float16 and return the module."""
    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True, assign: bool = False):
        """Copy tensors into the parameters and buffers with these names."""
    def modules(self) -> Iterator[Module]: """Yield this module and all modules below it, each once."""
    def named_buffers(self, prefix: str = '', recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Yield (path, buffer) in the order of named_parameters."""
    def named_children(self) -> Iterator[tuple[str, Module]]: """Yield (name, module) for the direct children, each once."""
    def named_modules(self, memo: set | None = None, prefix: str = '', remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """Yield (path, module) for this module and all modules below it, each once."""
    def named_parameters(self, prefix: str = '', recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Yield (path, parameter) once per parameter; with `recurse`, also of modules below."""
    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Yield the parameters, for example for an optimizer."""
    def register_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Register a hook that is called as hook(module, grad_input, grad_output) in the backward pass."""
    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Register a tensor that is part of the state but not trained."""
    def register_forward_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False) -> RemovableHandle:
        """Register a hook that is called as hook(module, args, output) after forward."""
    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False) -> RemovableHandle:
        """Register a hook that is called as hook(module, args) before forward."""
    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Register a hook that is called as hook(module, grad_input, grad_output) in the backward pass."""
    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Register a hook that is called as hook(module, grad_output) before the backward pass of the module."""
    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Register a hook that is called as hook(module, incompatible_keys) after loading."""
    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Register a hook that may rename keys before loading."""
    def register_module(self, name: str, module: Module | None) -> None: """Register a child module; see add_module."""
    def register_parameter(self, name: str, param: Parameter | None) -> None: """Register a parameter."""
    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Register a hook that may change the result of state_dict."""
    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Register a hook that is called as hook(module, prefix, keep_vars) before state_dict."""
    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set requires_grad of all parameters and return the module."""
    def set_extra_state(self, state) -> None: """Restore the result of get_extra_state."""
    def state_dict(self, destination: dict | None = None, prefix: str = '', keep_vars: bool | None = None) -> dict:
        """Return {name: tensor} of the parameters and persistent buffers of the module and its descendants."""
    def to(self, *args, **kwargs) -> Self:
        """Convert parameters and buffers in place: to(dtype), to(device), to(device, dtype), or to(tensor)."""
    def to_consistent(self, placement=None, sbp=None) -> Convertible:
        """Convert every parameter and buffer to a global tensor."""
    def to_global(self, placement=None, sbp=None) -> Self: """Convert every parameter and buffer to a global tensor."""
    def to_local(self) -> Self: """Convert every global parameter and buffer to the shard of this rank."""
    def train(self, mode: bool = True) -> Self: """Set training mode (False: evaluation mode) here and in all children."""
    def type(self, dst_type) -> Self: """Convert all parameters and buffers to a dtype and return the module."""
    def zero_grad(self, set_to_none: bool = True) -> None:
        """Delete the gradients, or fill them with zeros (the default of OneFlow 0.9)."""
def name_of(value: object) -> str: ...
