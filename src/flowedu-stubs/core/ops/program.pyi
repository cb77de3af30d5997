"""Written by `make stubs`: do not edit."""
from typing import Any, Self

BY_CODE: tuple
class Formula:
    """Instructions over slots."""
    cache: Any
    consts: Any
    dtypes: Any
    instrs: Any
    nin: Any
    outs: Any
    def __init__(self, nin, instrs, outs, consts=None, dtypes=None) -> None: ...
    def __repr__(self) -> str: ...
    def compile(self, what, in_types, out_types): """Return the TileProgram for these dtypes (cached)."""
    def describe(self): """Return text for plans, such as `t2 = mul(x0, x1)`."""
    @property
    def nslots(self) -> Any: ...
    @classmethod
    def single(cls, name, arity): """Return the formula of one tile."""
    def types(self, what, in_types): """Return the dtype of every slot."""
MAX_SLOTS: int
TILES: dict
class TileProgram:
    """The C struct of a compiled Formula; `address` is the value of a call's `extra`."""
    @property
    def address(self) -> Any: ...
    def __new__(cls, *args: Any, **kwargs: Any) -> Self: ...
def raw_number(value, dtype): """Return the bytes of a number in this dtype."""
