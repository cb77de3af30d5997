"""Law: the signatures of optimizer updates are exactly the valid ones: a parameter can be split together with
its gradient and state if the rule is elementwise, and not at all if it needs the norm of the whole
parameter.

Brute force, as in test_signatures.py: the arrays of a parameter are laid out in every combination of whole
and split. (Partial sums, "P", are not tried: a variable is whole or split, never partial.)
"""
import itertools

import numpy as np
import pytest

from flowedu.core.sbp.signature import signatures
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.errors import FlowError
from flowedu.ops import REGISTRY

from .calls import reference
from .test_signatures import gathers_to, scatter
from .test_updates import GROUPS, group_of

SHAPE = (6, 12)
LAYOUTS = ("B", "S0", "S1")


def inputs_of(name: str, parameters: int, rng):
    """Return lr, step, and the groups of some parameters."""
    arrays = [np.array([0.1]), np.array([3], np.int64)]
    for _ in range(parameters):
        arrays += group_of(name, SHAPE, np.float64, rng)
    return arrays


def specs_of(arrays):
    return [Spec(a.shape, as_dtype(a.dtype)) for a in arrays]


def attributes_of(op, parameters):
    flags = {a: True for a in ("do_bias_correction", "nesterov") if a in op.attr_index}
    return op.complete({"scale": 0.5, "weight_decay": (0.1,) * parameters, "l1": (0.2,), "l2": (0.3,),
                        **flags})


def holds(op, arrays, attrs, layouts, want, p, rng) -> bool:
    """Return True if devices that run the rule on their shards apply the same update as on the whole."""
    shards = [scatter(a, s, p, rng) for a, s in zip(arrays, layouts)]
    got = []
    for device in range(p):
        mine = [s[device].copy() for s in shards]
        try:
            op.infer(specs_of(mine), attrs)
        except FlowError:
            return False
        got.append(reference(op, mine, attrs))
    written = op.mutates(len(arrays))
    return all(gathers_to([g[k] for g in got], layouts[i], w) for k, (i, w) in enumerate(zip(written, want)))


@pytest.mark.parametrize("p", [2, 3])
@pytest.mark.parametrize("name", GROUPS)
def test_signatures_of_updates_are_sound_and_complete(name, p):
    op, rng = REGISTRY[name], np.random.default_rng(p)
    attrs, found = attributes_of(op, 1), None
    for _ in range(3):                                # with a gradient of 0, other layouts are valid
        arrays = inputs_of(name, 1, rng)
        want = reference(op, [a.copy() for a in arrays], attrs)
        hold = {s for s in itertools.product(*[LAYOUTS if a.shape == SHAPE else ("B",) for a in arrays])
                if holds(op, arrays, attrs, s, want, p, rng)}
        found = hold if found is None else found & hold
    assert found == set(signatures(op, specs_of(arrays), attrs))
    assert len(found) == (1 if op.whole else 3)


@pytest.mark.parametrize("name", GROUPS)
def test_each_parameter_is_split_independently(name):
    op, rng = REGISTRY[name], np.random.default_rng(0)
    arrays = inputs_of(name, 2, rng)
    attrs = attributes_of(op, 2)
    want = reference(op, [a.copy() for a in arrays], attrs)
    for s in signatures(op, specs_of(arrays), attrs):
        assert holds(op, arrays, attrs, s, want, 2, rng), s


@pytest.mark.parametrize("turned", [{}, {"transpose_a": True}, {"transpose_b": True}], ids=str)
def test_the_update_inside_a_product(turned):
    """matmul_update: w -= lr * a @ b. It can be split along w's rows or columns; the contracted axis would
    need a sum.
    """
    op, rng = REGISTRY["matmul_update"], np.random.default_rng(0)
    a, b = (4, 6) if "transpose_a" in turned else (6, 4), (12, 4) if "transpose_b" in turned else (4, 12)
    arrays = [rng.standard_normal(a), rng.standard_normal(b), np.array([0.1], np.float32),
              rng.standard_normal(SHAPE)]
    attrs = op.complete({**turned, "scale": 0.5})
    want = reference(op, [x.copy() for x in arrays], attrs)
    found = {s for s in itertools.product(LAYOUTS, LAYOUTS, ("B",), LAYOUTS)
             if holds(op, arrays, attrs, s, want, 2, rng)}
    legal = {s for s in signatures(op, specs_of(arrays), attrs) if not any("P" in c for c in s)}
    assert found == legal and len(found) == 3
