"""Written by `make stubs`: do not edit."""
from typing import Any, Self

class EngineParts:
    """Functions that create values, set by core/eager, promote.py, and ops/checks.py."""
    def array(self, *args): ...
    def missing(self, *args): ...
    @staticmethod
    def nonzero(name, divisor): ...
    def number(self, *args): ...
    def operands(self, *args): ...
class OpBase:
    """The fields of an op that every call reads. core/ops/define.py adds the others."""
    attrs: Any
    axes: Any
    check: Any
    contiguous: Any
    cpu: Any
    doc: Any
    domain: Any
    dtype: Any
    effect: Any
    examples: Any
    float_only: Any
    fold: Any
    fresh: Any
    group: Any
    inplace: Any
    key: Any
    linear: Any
    localize: Any
    made: Any
    mutates: Any
    name: Any
    numbers: Any
    pack: Any
    params: Any
    program: Any
    random: Any
    range_help: Any
    ref: Any
    rising: Any
    role: Any
    shape: Any
    signature: Any
    spread: Any
    trusted: Any
    whole: Any
    def __call__(self, *args, **kwargs) -> Any: ...
    def __init__(self, *args, **kwargs) -> None: ...
    @property
    def any_rule(self) -> bool: ...
    @property
    def attr_index(self) -> dict | Any: ...
    def call(self, inputs: tuple, attrs: tuple): ...
    def call_mixed(self, inputs: tuple, values: tuple): """Run a call that has blobs or numbers."""
    def complete(self, attrs: dict): """Return the attribute values in declared order, with defaults."""
    @property
    def defaults(self) -> tuple | Any: ...
    @property
    def elementwise(self) -> bool: ...
    @property
    def inputs(self) -> tuple | Any: ...
    @property
    def outputs(self) -> tuple | Any: ...
    @property
    def required(self) -> tuple | Any: ...
    @property
    def rules(self) -> dict | Any: ...
    @property
    def saved(self) -> tuple | Any: ...
    @property
    def saved_inputs(self) -> bool: ...
    @property
    def variadic(self) -> bool: ...
    @property
    def view(self) -> Any: ...
class Rule:
    """A gradient function and the sources of its arguments."""
    def apply(self, douts: list, saved: tuple, attrs: tuple, shapes: tuple, dtypes: tuple): """Compute the gradient."""
    @property
    def f(self) -> Any: ...
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
def call_below(op, inputs, attrs): """Pass a call from the current interpreter, which only observes it, to the one below."""
def current_interpreter(): """Return the current interpreter, or None in eager mode."""
engine: EngineParts
class interpreter:
    """Context manager in which `handler.run(op, inputs, attrs)` runs all calls of this thread."""
    handler: Any
    def __enter__(self) -> Any: ...
    def __exit__(self, *exc) -> Any: ...
    def __init__(self, handler) -> None: ...
