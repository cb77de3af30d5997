"""Law: an output depends only on its inputs: NaN, infinity, or a huge number in one row changes no bit of the
other rows.

A lower-case letter of the axis equation shared by an output and an input can be split over devices, so an
output at one position of that axis depends on no other position. Fast kernels read more: whole vectors,
tiles, blocks of rows.
"""
from __future__ import annotations

import numpy as np
import pytest

from flowedu.core.ops.axes import parse
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec

from .calls import attributes, cases, draw_arrays, input_name, label, resized, run_eagerly, types_of

SPECIALS = [np.nan, np.inf, -np.inf, 1e30]
FREE = ("any", "few", "positive")

# One invalid value refuses the whole call.
TOGETHER = {
    **dict.fromkeys(("svd", "pseudo_inverse", "eigh"), "LAPACK refuses what is not finite"),
    **dict.fromkeys(("within", "require"), "they refuse what is outside of bounds"),
}


def terms_of(op, example) -> tuple[list[str], list[str]]:
    types = types_of(op, example, np.float32)
    specs = [Spec(tuple(s), as_dtype(t)) for s, t in zip(example["shapes"], types)]
    return parse(op.equation(specs, attributes(op, example)), len(specs))


def free_inputs(op, example) -> list[int]:
    """Return the inputs that may hold any float."""
    types = types_of(op, example, np.float32)
    return [i for i, t in enumerate(types) if t == np.float32 and op.domain.get(input_name(op, i),
                                                                                "any") in FREE]


def letters_of(op, example) -> dict[str, int]:
    """Return letters that occur once in every output and in an input of arbitrary floats, with their
    sizes.
    """
    if op.ref is None or op.mutates or op.random or op.name in TOGETHER or not example["shapes"]:
        return {}
    ins, outs = terms_of(op, example)
    sizes: dict[str, set[int]] = {}
    for term, shape in zip(ins, example["shapes"]):
        for c, n in zip(term, shape):
            sizes.setdefault(c, set()).add(n)
    shared = set.intersection(*map(set, outs)) & set("".join(ins[i] for i in free_inputs(op, example)))
    return {c: min(sizes[c]) for c in sorted(shared)
            if c.islower() and len(sizes[c]) == 1 and all(t.count(c) <= 1 for t in (*ins, *outs))
            and min(sizes[c]) > 1}


CALLS = [(op, e) for op, e in cases() if letters_of(op, e)]


# longer than a vector of any instruction set, and not a multiple
@pytest.mark.parametrize("size", [None, 18])
@pytest.mark.parametrize("case", CALLS, ids=label)
def test_other_rows_keep_their_bits(case, size):
    op, example = case
    if size is not None and example.get("groups", 1) == 1:   # channels of a group depend on each other
        example = resized(op, example, lambda c, n: size if n > 1 else n)
    rng = np.random.default_rng(0)
    attrs = attributes(op, example)
    arrays = draw_arrays(op, example, np.float32, rng)
    ins, outs = terms_of(op, example)
    before = run_eagerly(op, arrays, attrs)
    for letter, n in letters_of(op, example).items():
        if any(y.shape[term.index(letter)] != n for y, term in zip(before, outs)):
            continue  # one letter for several axes: groups, merged axes
        for special in SPECIALS:
            row, changed = int(rng.integers(n)), list(arrays)
            for i in free_inputs(op, example):
                if letter in ins[i]:
                    here = np.arange(n).reshape([-1 if c == letter else 1 for c in ins[i]]) == row
                    some = rng.random(arrays[i].shape) < 0.5
                    changed[i] = np.where(here & some, np.float32(special), arrays[i])
            for y, z, term in zip(before, run_eagerly(op, changed, attrs), outs):
                others = [np.delete(v, row, term.index(letter)).tobytes() for v in (y, z)]
                assert others[0] == others[1], f"{special} in row {row} of {n} of axis {letter}"


def test_most_ops_have_a_local_axis():
    assert len({op.name for op, _ in CALLS}) > 150
