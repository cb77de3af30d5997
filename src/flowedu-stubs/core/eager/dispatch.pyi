"""Written by `make stubs`: do not edit."""
from flowedu.core.eager.tensor import Tensor
from flowedu.core.ops.call import OpBase
from flowedu.core.values.size import Size
from flowedu.core.values.spec import Spec
from flowedu.core.values.storage import Array
from typing import Any, Self

BY_CODE: tuple
class EmptySlot(OpBase):
    """Placeholder of a function or an op, which raises an error when it is called."""
    name: Any
    def __call__(self, *args) -> Any: ...
    def __init__(self, name) -> None: ...
    def infer(self, *args): ...
class Entry:
    """Output specs, kernel and attributes of a call, for eager calls and plans."""
    @property
    def attrs(self) -> tuple | Any: ...
    @property
    def cost(self) -> int: ...
    @property
    def in_dtypes(self) -> tuple | Any: ...
    @property
    def in_shapes(self) -> tuple | Any: ...
    @property
    def keep(self) -> Any: ...
    launched: Any
    @property
    def nints(self) -> int: ...
    @property
    def op(self) -> Any: ...
    @property
    def python(self) -> bool: ...
    @property
    def specs(self) -> tuple | Any: ...
    @property
    def strides(self) -> Any: """Strides of the output of a view, in elements."""
    @property
    def view_offset(self) -> Any: ...
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
class GlobalLayout:
    """Layout of a global tensor: a placement, and an sbp per placement axis."""
    def __init__(self, *args, **kwargs) -> None: ...
    def __repr__(self) -> str: ...
    @property
    def layout(self) -> Any: ...
    @property
    def placement(self) -> Any: ...
    @property
    def sbp(self) -> Any: ...
    @property
    def single(self) -> bool: ...
    @property
    def whole(self) -> GlobalLayout | Any: ...
class Link:
    """Origin of a view: its base, its parent, and the view op."""
    @property
    def attrs(self) -> tuple | Any: ...
    @property
    def base(self) -> TensorBase | Any: ...
    @property
    def depth(self) -> int: ...
    epoch: int
    @property
    def op(self) -> Any | Any: ...
    @property
    def parent(self) -> TensorBase | Any: ...
    @property
    def plain(self) -> bool: ...
REGISTRY: dict
class Rare:
    """Fields that few tensors have, such as a symbol or hooks."""
    after: Any
    grad_name: Any
    hooks: Any
    parts: Any
    retains: bool
    symbol: Any
class Slots:
    """The contents of the slots; `slots` is the only instance."""
    Size: Any
    Tensor: Any
    add: Any | Any
    after_node: Any
    before_node: Any
    bring: Any
    carry: Any
    device_memory: Any
    div: Any | Any
    into: Any
    launch: Any
    leaf_hooks: Any
    line: Any
    logical: Any
    matmul: Any | Any
    mixed: Any
    mixed_matmul: Any
    move: Any
    mul: Any | Any
    node_hook: Any
    node_name: Any
    node_next: Any
    pack: Any
    renew: Any
    run_global: Any
    seed: Any
    sub: Any | Any
    watch: Any
    write: Any
    write_parts: Any
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
TABLE: dict
class TapeNode:
    """One recorded call: its op, the nodes of its inputs, and the values saved for its rules."""
    def __repr__(self) -> str: ...
    @property
    def attrs(self) -> Any: ...
    @property
    def custom(self) -> Any: ...
    @property
    def edges(self) -> tuple | Any: ...
    @property
    def entry(self) -> Entry | Any: ...
    grads: list | Any
    hooks: Any
    line: Any
    def name(self): """Return the name of the node, such as `broadcast_add_backward`."""
    @property
    def next_functions(self) -> Any: """One pair (node, output number) per input; leaves have an accumulate_grad node."""
    @property
    def op(self) -> Any: ...
    @property
    def outputs(self) -> Any: """Number of outputs of the call."""
    def register_hook(self, hook):
        """Call `hook(grad_inputs, grad_outputs)` after this node; it may return new grad_inputs."""
    def register_prehook(self, hook): """Call `hook(grad_outputs)` before this node; it may return new grad_outputs."""
    saved: tuple | Any
    @property
    def seq(self) -> int: ...
    @property
    def shapes(self) -> Any: """Shapes of the inputs."""
    def slot(self, i: int) -> int: """Return the position of input i among the outputs of edges[i]."""
class TensorBase(Array):
    """C part of flow.Tensor: data, tape links, operators. tensor.py adds the public methods."""
    def __add__(self, other, /) -> Tensor: ...
    def __iadd__(self, other, /) -> Tensor: ...
    def __imul__(self, other, /) -> Tensor: ...
    def __isub__(self, other, /) -> Tensor: ...
    def __itruediv__(self, other, /) -> Tensor: ...
    def __matmul__(self, other, /) -> Tensor: ...
    def __mul__(self, other, /) -> Tensor: ...
    def __radd__(self, other, /) -> Tensor: ...
    def __rmatmul__(self, other, /) -> Tensor: ...
    def __rmul__(self, other, /) -> Tensor: ...
    def __rsub__(self, other, /) -> Tensor: ...
    def __rtruediv__(self, other, /) -> Tensor: ...
    def __sub__(self, other, /) -> Tensor: ...
    def __truediv__(self, other, /) -> Tensor: ...
    @property
    def _can_track(self) -> bool: """True if tensors of this dtype can have gradients."""
    @property
    def _device(self) -> int: """The device of the memory (Block.device), or of the graph of a lazy tensor."""
    _grad: Any
    def _on_host(self): ...
    @property
    def _owner(self) -> Any: """The object with the memory of a tensor on a GPU (flowedu.cuda.memory), or None."""
    def _sizes(self): ...
    epoch: int
    @property
    def global_layout(self) -> Any: """The GlobalLayout; None for a local tensor."""
    @global_layout.setter
    def global_layout(self, value) -> None: ...
    @property
    def grad(self) -> Tensor | Any: """The gradient accumulated by backward; None before the first backward."""
    @grad.setter
    def grad(self, value) -> None: ...
    @property
    def has_memory(self) -> bool: """False for lazy tensors, and for global ones on several devices."""
    @property
    def inference(self) -> bool: """True if the tensor was made in inference mode."""
    @property
    def is_eager(self) -> bool: ...
    @property
    def is_lazy(self) -> bool: """True for a value of a graph, which has a shape and a dtype but no memory."""
    @property
    def link(self) -> Link | Any: ...
    node: TapeNode | Any
    out_index: int
    rare: Rare | Any
    def refresh_view(self): """Record the history of a view again if its base was written in place."""
    @property
    def shape(self) -> Size: ...
    @property
    def spec(self) -> Spec: ...
    @property
    def symbol(self) -> Any: """The value of a lazy tensor in the graph being built; None for eager tensors."""
    @symbol.setter
    def symbol(self, value) -> None: ...
    @property
    def tracked(self) -> bool: """True if the tensor requires a gradient."""
    @tracked.setter
    def tracked(self, value) -> None: ...
    @property
    def uniform(self) -> bool: """True if the tensor was computed from constants only, so it is equal on all ranks."""
    @uniform.setter
    def uniform(self, value) -> None: ...
class UnsetTensor:
    """Placeholder of the class Tensor."""
def call_seeded(op: Any, inputs: tuple, attrs: tuple, seed: int, draw: int):
    """Run a random op with this seed and draw, so that calls with any seeds share one Entry."""
def check_limits(op, ints, reals):
    """Check that kernels can multiply the packed attributes (strides, pads, sizes) in int64."""
def connect(**functions): """Fill slots; None restores the default."""
def constants_on(device: int) -> int: """Set the device of calls without inputs (1 + k: the k-th GPU)."""
def copy_into(x: TensorBase, z: TensorBase):
    """Copy z into the memory of x. z has the dtype of x, and broadcasts to the shape of x."""
def copy_to_device(x: TensorBase, device: int):
    """Return a contiguous copy of x on a device (1 + k: the k-th GPU), without history."""
def default_threads() -> int: """Return FLOWEDU_NUM_THREADS or OMP_NUM_THREADS, else the number of usable processors."""
def get_num_threads() -> int: """Return the number of threads that kernels may use."""
def global_tensor(shape: tuple, dtype, global_layout: GlobalLayout, parts):
    """Make a tensor on several devices. parts: {rank: local tensor} of this process's ranks."""
def has_threads() -> bool: """Return True if the kernels were compiled with OpenMP."""
def index_error(op, attrs: tuple, got: int, at=None, problem=None):
    """Return the error for a value, such as an index, that a kernel rejected."""
def is_grad_enabled() -> bool: """Return True if eager calls of this thread are recorded for backward."""
def is_inference_mode_enabled() -> bool: ...
def labelled(x: TensorBase, global_layout: GlobalLayout | None):
    """Return an alias of x with this single-device layout (None: local), without history."""
def lazy_tensor(symbol, shape, dtype, requires_grad: bool = False, grad_name=None):
    """Make a tensor for the value `symbol` of a graph. grad_name: the name of its grad_fn."""
def make_custom_node(custom, inputs: tuple, saved: tuple = ...):
    """Make a node whose gradients `custom` computes, for autograd.Function and writes into views."""
def make_key(attrs): """Return attributes as a key in which 0.0 and -0.0 differ."""
most_threads: int
def new_on_device(shape, dtype, device: int): """Allocate an uninitialized contiguous tensor on a GPU."""
def on_several_devices(inputs: tuple):
    """Return True if the inputs, without 0-dim ones in main memory, are on several devices."""
def prepare(op, specs, attrs, strides=None, outs=None): """Make the Entry of a call."""
def record_copy(x: TensorBase): """Return a contiguous copy of x, recorded for backward."""
def run_unobserved(op: Any, inputs: tuple, attrs: tuple):
    """Run a call that thread_state.observer got instead of an interpreter or the engine."""
def scalar_tensor(value, dtype): """Return the number `value` as a 0-dim tensor."""
def set_amp(on: bool) -> bool: """Set whether thread_state.amp casts inputs (flowedu/nn/amp)."""
def set_data(x: TensorBase, y: TensorBase): """Make x use the memory of y. x keeps its history and its gradient."""
def set_grad_enabled(on: bool) -> bool: """Set whether eager calls of this thread are recorded."""
def set_history(y: TensorBase, node: TapeNode | None, out_index: int = 0):
    """Make y output number `out_index` of `node`, or a leaf without gradient if node is None."""
def set_inference(on: bool): """Set whether new tensors of this thread are inference tensors."""
def set_num_threads(n) -> None: """Set the number of threads of kernels."""
def set_observer(f): """Set the function that runs all calls of this thread, f(op, inputs, attrs), or None."""
slots: Slots
def take_parts(x: TensorBase, z: TensorBase, history: bool):
    """Give the global tensor x the parts of z, and with `history` the autograd history of z."""
def take_value(x: TensorBase, z: TensorBase): """Make the lazy tensor x refer to the graph value of z."""
def tape_position(): """Return the sequence number of the last recorded call."""
class unrecorded:
    """Context manager in which eager calls of this thread are not recorded."""
    old: Any
    def __enter__(self) -> Any: ...
    def __exit__(self, *exc) -> Any: ...
