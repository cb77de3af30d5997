"""Elementwise programs as CUDA C: a kernel for each formula or fused chain, written from its Formula.

    static __device__ __forceinline__ float k(float x0, float x1) {
        const float t3 = Op<float>::op_mul(x0, x1);
        return Op<float>::op_exp(t3);
    }
    extern "C" __global__ void k_flat(index_t n, const float *x0, const float *x1, float *y) ...
    extern "C" __global__ void k_strided(index_t n, Walk<3> w, const float *x0, const float *x1, float *y) ...

A compilation takes at least half a second, so single formulas are compiled in groups. `together` compiles
the chains of a plan at once.
"""
from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from weakref import WeakKeyDictionary

from flowedu._kernels import TILES
from flowedu.core.ops.program import Formula, raw_number
from flowedu.core.values.dtype import BY_CODE, HALVES
from flowedu.core.values.dtype import dtype as Dtype
from flowedu.cuda.modules import HEAD, TYPES, Module, once, text

# a program: formula, dtype codes of its inputs
Key = tuple[Formula, tuple[int, ...]]
# Its module, and the name of its function there.
Place = tuple[Module, str]
_chains: dict[str, Place] = {}                                       # {name_of(program): place}
_places: WeakKeyDictionary[Formula, dict[tuple[int, ...], Place]] = WeakKeyDictionary()


# Conversions between 16-bit floats and float32 (core/ops/program.pyx), which are not formulas.
FROM = {7: "read(Half{{{}}})", 8: "read(Bfloat{{{}}})"}
TO = {"float16": "Write<Half, float>::of({}).bits", "bfloat16": "Write<Bfloat, float>::of({}).bits"}
CONVERSIONS = {"widen", *TO}


def place(formula: Formula, codes: tuple[int, ...]) -> Place:
    """Return the module and function of a program. Raises DTypeError: unsupported element types."""
    known = _places.setdefault(formula, {})
    if codes not in known:
        single = _single(formula)
        if single:
            formula.types(single, [BY_CODE[c] for c in codes])
            code = _operand(formula, codes)
            known[codes] = _group(_kind(single), code), f"{single}_{BY_CODE[code].name}"
        else:
            together([(formula, codes)])
            known[codes] = _chains[name_of(formula, codes)]
    return known[codes]


def together(programs: Iterable[Key]) -> None:
    """Compile chains as one module, such as those of a plan. Chains that are already compiled are skipped."""
    new = {name_of(*key): key for key in programs if not _single(key[0])}
    new = {name: key for name, key in new.items() if name not in _chains}
    if new:
        module = Module(HEAD + "\n".join([text("elementwise.h"), *(write_kernel(name, *key)
                                                                   for name, key in new.items())]))
        _chains.update({name: (module, name) for name in new})


def _single(formula: Formula) -> str:
    """Return the name of the only formula of a program, with its operands in order; "" for a chain."""
    if len(formula.instrs) == 1 and not formula.consts:
        name, out, operands = formula.instrs[0]
        if operands == tuple(range(formula.nin)) and formula.outs == (out,):
            return name
    return ""


def _operand(formula: Formula, codes: Sequence[int]) -> int:
    """Return the dtype code that selects the version of a single formula."""
    return codes[1 if formula.instrs[0][0] == "where" else 0]


# Formulas of most models, compiled as one group. Few models use the others.
CHEAP = frozenset(
    """neg abs sign square relu add sub mul maximum minimum squared_difference relu_grad div where exp log
    sqrt rsqrt tanh sigmoid""".split())


@once
def _group(kind: int, code: int) -> Module:
    return Module(group_source(next(n for n, c in TILES if c == code and _kind(n) == kind), code))


def _kind(name: str) -> int:
    """Return the group of a formula: 0 for common ones, 1 for other real functions, 2 for all others."""
    if name in CHEAP:
        return 0
    return 1 if (name, 1) in TILES and TILES[name, 1][1] == 1 else 2


def group_source(name: str, code: int) -> str:
    """Return the source of the group of single formulas that contains `name`, for one element type."""
    parts = [text("elementwise.h")]
    for n in sorted(n for n, c in TILES if c == code and _kind(n) == _kind(name) and n not in CONVERSIONS):
        arity = TILES[n, code][2]
        codes = (6, code, code) if n == "where" else (code,) * arity
        parts.append(write_kernel(f"{n}_{BY_CODE[code].name}", Formula.single(n, arity), codes))
    return HEAD + "\n".join(parts)


def name_of(formula: Formula, codes: tuple[int, ...]) -> str:
    key = repr((formula.instrs, formula.outs, sorted(formula.consts.items()), sorted(
        (slot, d.name) for slot, d in formula.dtypes.items()), codes))
    return "chain_" + hashlib.sha256(key.encode()).hexdigest()[:16]


def write_kernel(name: str, formula: Formula, codes: tuple[int, ...]) -> str:
    """Return the CUDA C of a program."""
    types = formula.types(name, [BY_CODE[c] for c in codes])
    c = {slot: TYPES[t.code] for slot, t in types.items()}
    known = {i: f"x{i}" for i in range(formula.nin)} | {s: literal(v, types[s])
                                                        for s, v in formula.consts.items()}
    lines = []
    for tile, out, operands in formula.instrs:
        kind = c[operands[1 if tile == "where" else 0]]
        arguments = ", ".join(known[o] for o in operands)
        if tile == "widen":
            value = FROM[types[operands[0]].code].format(arguments)
        else:
            value = TO[tile].format(arguments) if tile in TO else f"Op<{kind}>::op_{tile}({arguments})"
        lines.append(f"    const {c[out]} t{out} = {value};")
        known[out] = f"t{out}"
    out, ins = c[formula.outs[0]], range(formula.nin)
    parameters = ", ".join(f"{c[i]} x{i}" for i in ins)
    pointers = "".join(f", const {c[i]} *x{i}" for i in ins) + f", {out} *y"
    one = ", ".join(f"x{i}[i]" for i in ins)
    at = ", ".join(f"x{i}[at[{i}]]" for i in ins)
    loads = "".join(f"\n        const Four<{c[i]}> f{i} = four(x{i}, i);" for i in ins)
    return f"""
// {formula.describe()}
static __device__ __forceinline__ {out} {name}({parameters}) {{
{chr(10).join(lines)}
    return {known[formula.outs[0]]};
}}
extern "C" __global__ void {name}_flat(index_t n{pointers}) {{
    for (EACH(i, n / 4)) {{{loads}
        Four<{out}> r;
        #pragma unroll
        for (int k = 0; k < 4; k++) r.v[k] = {name}({", ".join(f"f{i}.v[k]" for i in ins)});
        put_four(y, i, r);
    }}
    const index_t i = n / 4 * 4 + thread_index();
    if (i < n) y[i] = {name}({one});
}}
extern "C" __global__ void {name}_strided(index_t n, Walk<{formula.nin + 1}> w{pointers}) {{
    for (EACH(i, n)) {{
        index_t at[{formula.nin + 1}];
        offsets(w, i, at);
        y[at[{formula.nin}]] = {name}({at});
    }}
}}"""


def literal(value: float, d: Dtype) -> str:
    """Return a number in C, exact to the last bit."""
    raw = int.from_bytes(raw_number(value, d), "little")
    if d in HALVES:
        return f"(({TYPES[d.code]}){raw})"                           # bits, as in memory
    if d.is_floating_point:
        number = float(value)
        if number != number:
            return "NAN"
        if abs(number) == float("inf") or d.bytes == 4 and abs(number) > 3.5e38:
            return "INFINITY" if number > 0 else "(-INFINITY)"
        return f"(({TYPES[d.code]}){number.hex()})"
    signed = raw - (1 << 8 * d.bytes) if d.is_signed and raw >> (8 * d.bytes - 1) else raw
    return f"(({TYPES[d.code]})({signed}LL))" if signed != -2 ** 63 else "INT64_MIN"
