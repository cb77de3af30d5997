"""Written by `make stubs`: do not edit."""
from typing import Any

BY_CODE: tuple
class Formula:
    """Instructions over slots: 0..nin-1 are inputs, the rest constants or results."""
    def __init__(self, nin, instrs, outs, consts=None, dtypes=None) -> None: ...
    def __repr__(self) -> str: ...
    def compile(self, what, in_types, out_types): """The TileProgram for these dtypes (made once)."""
    def describe(self): """`y3 = mul(x0, x1); ...` for plans."""
    @property
    def nslots(self) -> Any: ...
    @classmethod
    def single(cls, name, arity): """The formula of one tile."""
    def types(self, what, in_types): """The dtype of every slot."""
MAX_SLOTS: int
TILES: dict
class TileProgram:
    """The C struct of a compiled Formula."""
    @property
    def address(self) -> Any: ...
def raw_number(value, dtype): """The bytes of a number in this dtype."""
