"""Formula and TileProgram: an elementwise computation as a flat list of tile calls.

A Formula is symbolic: `[("mul", 2, (0, 1)), ...]` over numbered slots. `compile` selects a tile
function per instruction for given dtypes and returns the kernel's C struct (_kernels/core/tiles.h).
"""
from libc.string cimport memcpy, memset

from flowedu._kernels.core.program cimport FE_CONST, FE_MAX_SLOTS, fe_program, fe_tile

from flowedu._kernels import TILES
from flowedu.core import extensions
from flowedu.core.values.dtype import BY_CODE
from flowedu.errors.element_types import mixed, refused

import numpy as np

MAX_SLOTS = FE_MAX_SLOTS


def raw_number(value, dtype):
    """Return the bytes of a number in this dtype."""
    with np.errstate(all="ignore"):
        if dtype.numpy is not None:
            return np.asarray(value).astype(dtype.numpy).tobytes()
        bits = int(np.asarray(value).astype(np.float32).view(np.uint32))
    half = 0x7fc0 if value != value else (bits + 0x7fff + (bits >> 16 & 1)) >> 16      # bfloat16
    return half.to_bytes(2, "little")


class Formula:
    """Instructions over slots. Slots 0..nin-1 are inputs; the others are constants or results.

    Attributes: nin; instrs, tuples (tile name, result slot, operand slots); consts {slot: number};
    outs, result slots; dtypes {slot: dtype} of constants (default: that of the other operands).
    """

    def __init__(self, nin, instrs, outs, consts=None, dtypes=None):
        self.nin, self.instrs, self.outs = nin, tuple(instrs), tuple(outs)
        self.consts, self.dtypes, self.cache = dict(consts or {}), dict(dtypes or {}), {}

    @classmethod
    def single(cls, name, arity):
        """Return the formula of one tile."""
        return cls(arity, [(name, arity, tuple(range(arity)))], [arity])

    @property
    def nslots(self):
        return self.nin + len(self.instrs) + len(self.consts)

    def types(self, what, in_types):
        """Return the dtype of every slot. Raise DTypeError for operands without a tile."""
        types = {**dict(enumerate(in_types)), **self.dtypes}
        for name, out, operands in self.instrs:
            known = [types[o] for o in operands[(1 if name == "where" else 0):] if o in types]
            t = known[0] if known else in_types[0]
            if name == "where":
                types.setdefault(operands[0], BY_CODE[6])     # a constant condition is a bool
            for o in operands:
                types.setdefault(o, t)
            tile = TILES.get((name, t.code))
            if tile is None or any(types[o] is not t
                                   for o in operands[(1 if name == "where" else 0):]):
                got = ", ".join(types[o].name for o in operands)
                supported = [t.name for t in BY_CODE
                             if all([(tile, t.code) in TILES for tile, _, _ in self.instrs])]
                error = refused(what, supported, got, "equal types: " * (", " in got))
                raise error.with_texts(fix=mixed(error.fix, *in_types))
            types[out] = BY_CODE[tile[1]]
        return types

    def compile(self, what, in_types, out_types):
        """Return the TileProgram for these dtypes (cached)."""
        key = tuple(t.code for t in in_types)
        program = self.cache.get(key)
        if program is None:
            widen = extensions.widen_formula
            wide = widen(self, in_types, out_types) if widen else self
            program = self.cache[key] = TileProgram(wide, wide.types(what, in_types))
        return program

    def describe(self):
        """Return text for plans, such as `t2 = mul(x0, x1)`."""
        names = {s: f"{number:g}" for s, number in self.consts.items()}
        names.update({s: f"x{s}" for s in range(self.nin)})
        rows = [(n, [names.get(s, f"t{s}") for s in (o, *ops)]) for n, o, ops in self.instrs]
        return "; ".join(f"{terms[0]} = {n}({', '.join(terms[1:])})" for n, terms in rows)

    def __repr__(self):
        return f"Formula({self.describe()})"


cdef class TileProgram:
    """The C struct of a compiled Formula; `address` is the value of a call's `extra`."""

    cdef fe_program p

    def __cinit__(self, formula, types):
        cdef int i
        cdef bytes raw
        memset(&self.p, 0, sizeof(fe_program))
        self.p.ninstr, self.p.nslots = len(formula.instrs), formula.nslots
        self.p.nconst, self.p.nout = len(formula.consts), len(formula.outs)
        for i in range(self.p.nslots):
            self.p.item[i] = types[i].bytes if i in types else 1
        for i, (name, out, operands) in enumerate(formula.instrs):
            t = types[operands[1] if name == "where" else operands[0]]
            self.p.instr[i].fn = <fe_tile><void *><size_t>TILES[name, t.code][0]
            slots = list(operands) + [-1] * (3 - len(operands))
            self.p.instr[i].out = out
            self.p.instr[i].a, self.p.instr[i].b, self.p.instr[i].c = slots[0], slots[1], slots[2]
        for i, (slot, value) in enumerate(formula.consts.items()):
            raw = raw_number(value, types[slot])
            self.p.const_slot[i] = slot
            memcpy(FE_CONST(&self.p, i), <const char *>raw, len(raw))
        for i, slot in enumerate(formula.outs):
            self.p.out_slot[i] = slot

    @property
    def address(self):
        return <size_t>&self.p
