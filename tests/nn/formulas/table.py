"""TABLE maps names to rows: the NumPy formula of every layer and function, and the calls that the tests draw.

A formula has the parameters of the function in nn.functional, with the same names and defaults, and computes
on float64 arrays. `row` enters it.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn

SIZES = (1, 2, 3, 5)
REDUCTIONS = ("mean", "sum", "none")


class Draw:
    """Draws options, sizes, and arrays of one example from one seed. (Many separate hypothesis choices would
    mostly draw the simplest values.)

    smooth: avoid values on a grid, which would hit corners of a formula (clip points, ties).
    """

    def __init__(self, data, smooth: bool = False):
        self.rng, self.smooth = np.random.default_rng(data.draw(st.integers(0, 2**31))), smooth

    def whole(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def one_of(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def shape(self, least: int = 1, most: int = 3) -> tuple[int, ...]:
        return tuple(self.one_of(*SIZES) for _ in range(self.whole(least, most)))

    def floats(self, *shape: int) -> np.ndarray:
        """Return floats of both signs; sometimes multiples of 1/2, many of them equal."""
        x = self.rng.standard_normal(shape) * 2
        return x if self.smooth or self.one_of(True, False) else np.round(x * 2) / 2

    def positive(self, *shape: int) -> np.ndarray:
        return self.rng.uniform(0.1, 2.0, shape)

    def unit(self, *shape: int) -> np.ndarray:
        """Return floats between 0 and 1, for probabilities."""
        return self.rng.uniform(0.02, 0.98, shape)

    def signs(self, *shape: int) -> np.ndarray:
        return self.rng.choice([-1.0, 1.0], shape)

    def labels(self, high: int, *shape: int) -> np.ndarray:
        return self.rng.integers(0, high, shape)

    def options(self, **choices) -> dict:
        """Choose an option for each name; sometimes omit the name to use its default."""
        return {name: self.one_of(*values) for name, values in choices.items()
                if self.one_of(True, True, False)}

    def maybe(self, **arrays: Callable[[], np.ndarray]) -> dict:
        """Keep or omit each of the arrays."""
        return {name: make() for name, make in arrays.items() if self.one_of(True, False)}


@dataclass(repr=False)
class Row:
    """Formula of one function. function, module: names in nn.functional and nn, or None. build: layer
    arguments that the options of the call do not contain (None: no layer for this call); arrays in the
    call are then its parameters.
    """

    formula: Callable
    arguments: Callable[[Draw], dict]
    function: str | None
    module: str | None
    build: Callable[[dict], dict | None] | None
    gradient: bool
    fixed: tuple[str, ...]
    other_defaults: tuple[str, ...]

    @property
    def name(self) -> str:
        return "-".join(n for n in (self.function, self.module) if n)

    __repr__ = name.fget

    def draw(self, d: Draw) -> dict:
        """Return the keywords of one call. (NumPy sometimes turns 0-dim arrays into scalars.)"""
        return {k: np.asarray(x) if isinstance(x, np.generic) else x for k, x in self.arguments(d).items()}


TABLE: list[Row] = []
_SAME = object()


def row(arguments: Callable[[Draw], dict], function=_SAME, module: str | None = None, build=None,
        gradient: bool = True, fixed: tuple[str, ...] = (), other_defaults: tuple[str, ...] = ()) -> Callable:
    """Enter a formula. arguments(draw): the keywords of one call. function: its name unless passed. fixed:
    float arguments without a gradient. other_defaults: parameters whose defaults differ between function
    and module.
    """
    def enter(formula):
        name = formula.__name__ if function is _SAME else function
        TABLE.append(Row(formula, arguments, name, module, build, gradient, fixed, other_defaults))
        return formula

    return enter


# ---- calls
def arrays_to_tensors(args: dict, dtype=np.float64, learn=()) -> dict:
    """Convert the arrays to tensors, floats to this dtype."""
    def one(name, x):
        if not isinstance(x, np.ndarray):
            return x
        x = x.astype(dtype) if x.dtype.kind == "f" else x
        return flow.tensor(x, requires_grad=name in learn)

    return {name: one(name, x) for name, x in args.items()}


def call_function(row: Row, given: dict, positions: bool = False):
    """Call the function, by keywords or by position."""
    f = getattr(nn.functional, row.function)
    if not positions:
        return f(**given)
    bound = inspect.signature(row.formula).bind(**given)
    bound.apply_defaults()
    # keyword-only parameters have no position
    named = [n for n, p in parameters_of(f).items() if p.kind is p.KEYWORD_ONLY]
    later = {n: bound.arguments.pop(n) for n in named if n in bound.arguments}
    return f(*bound.args, **bound.kwargs, **later)


def parameters_of(f) -> dict:
    return inspect.signature(f).parameters


def call_module(row: Row, args: dict, dtype) -> object:
    """Build the module from the options of the call, with the arrays as its parameters, and call it with the
    remaining arguments. Return None if no such module exists.
    """
    kind = getattr(nn, row.module)
    built = {} if row.build is None else row.build(args)
    if built is None:
        return None
    made, called = parameters_of(kind.__init__), parameters_of(kind.forward)
    given = arrays_to_tensors(args, dtype)
    options = {k: v for k, v in given.items() if k in made and k not in built}
    inputs = {k: v for k, v in given.items() if k in called and k not in options}
    module = kind(**options, **built).to(flow.float64 if dtype is np.float64 else flow.float32).eval()
    if row.build is not None:
        own = {k: v for k, v in given.items() if k not in options and k not in inputs and v is not None
               and k not in built
               or k in built and isinstance(v, flow.Tensor)}
        assert set(module.state_dict()) == set(
            own), f"parameters {set(module.state_dict())}, the formula has {set(own)}"
        module.load_state_dict(own)
    else:
        assert set(options) | set(inputs) == set(args), "arguments that the module does not take"
    return module(**inputs)


def fill_parameters(module, d, deviation=0.5):
    """Return (the module in float64 with drawn parameters, those parameters)."""
    module = module.double()
    own = {k: d.rng.normal(0, deviation, tuple(p.shape)) for k, p in module.named_parameters()}
    module.load_state_dict({k: flow.tensor(v) for k, v in own.items()})
    return module, own


def flatten_results(y) -> list:
    """Return the arrays or tensors in a result, in order."""
    if isinstance(y, (tuple, list)):
        return [t for part in y for t in flatten_results(part)]
    return [] if y is None else [y]
