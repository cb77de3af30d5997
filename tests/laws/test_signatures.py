"""Law: the SBP signatures derived from the axis equation and the linear groups are exactly those that hold.

Brute force: every way to lay the inputs and outputs on 2 and on 3 devices is tried numerically.
"""
import itertools

import numpy as np
import pytest

import flowedu.graph.passes  # noqa: F401
from flowedu.blob.dtype import as_dtype
from flowedu.blob.spec import Spec
from flowedu.dist.signature import signatures
from flowedu.errors import FlowError

from .calls import attributes, cases, input_name, label, reference, types_of, values

CALLS = [(op, e) for op, e in cases(lambda op: op.ref is not None and not getattr(op, "mutates", None) and not op.random)
         if all(0 not in s for s in e["shapes"])]     # of an empty array everything holds


def layouts(shape, p):
    return ["B", "P", *[f"S{i}" for i, n in enumerate(shape) if n % p == 0 and n > 0]]


def scatter(x, sbp, p, rng):
    if sbp == "B":
        return [x] * p
    if sbp == "P":
        parts = [rng.standard_normal(x.shape) for _ in range(p - 1)]
        return [*parts, x - sum(parts)]
    return np.split(x, p, axis=int(sbp[1:]))


def gathers_to(parts, sbp, want) -> bool:
    if sbp == "B":
        return all(q.shape == want.shape and np.allclose(q, want, atol=1e-9) for q in parts)
    if sbp == "P":
        total = sum(parts)
        return total.shape == want.shape and np.allclose(total, want, atol=1e-9)
    try:
        whole = np.concatenate(parts, axis=int(sbp[1:]))
    except ValueError:
        return False
    return whole.shape == want.shape and np.allclose(whole, want, atol=1e-9)


def local_shape(shape, sbp, p):
    if not sbp.startswith("S"):
        return tuple(shape)
    axis = int(sbp[1:])
    return tuple(n // p if i == axis else n for i, n in enumerate(shape))


def local_attributes(op, attrs, shards, out_shape, full):
    """Attributes on one shard, where the record says they change."""
    if op.localize is None:
        return attrs
    specs = [Spec(x.shape, as_dtype(x.dtype)) for x in shards]
    names = op.bind(specs, attrs, out=Spec(out_shape, as_dtype(np.float64)), full=full)
    return tuple(op.ask(op.localize, names).get(n, v) for n, v in zip(op.attrs, attrs))


def holds(op, arrays, attrs, want, sig, p, rng) -> bool:
    """Whether running `op` on every device's shards gives the logical outputs."""
    shards = [scatter(a, s, p, rng) for a, s in zip(arrays, sig)]
    outs = sig[len(arrays):]
    got = []
    for device in range(p):
        mine = [s[device] for s in shards]
        try:
            local = local_attributes(op, attrs, mine, local_shape(want[0].shape, outs[0], p),
                                     arrays[0].shape if arrays else ())
            specs = [Spec(x.shape, as_dtype(x.dtype)) for x in mine]
            op.infer(specs, local)
            got.append(reference(op, mine, local))
        except (FlowError, ValueError, IndexError, KeyError, ZeroDivisionError, AssertionError):
            return False
    return all(gathers_to([g[k] for g in got], s, w) for k, (s, w) in enumerate(zip(outs, want)))


def drawable(arrays, sig) -> bool:
    """Partial sums of indices and masks mean nothing."""
    return all(s != "P" or a.dtype.kind == "f" for a, s in zip(arrays, sig))


@pytest.mark.parametrize("p", [2, 3])
@pytest.mark.parametrize("case", CALLS, ids=label)
def test_signatures_are_sound_and_complete(case, p):
    op, example = case
    rng = np.random.default_rng(p)
    attrs = attributes(op, example)
    arrays = [values(op.domain.get(input_name(op, i), "any"), s, t, rng, i)
              for i, (s, t) in enumerate(zip(example["shapes"], types_of(op, example, np.float64)))]
    attrs = tuple(as_dtype(np.float64) if repr(a) == "flowedu.float32" else a for a in attrs)
    want = reference(op, arrays, attrs)
    if any(y.size == 0 for y in want):
        return                                        # every layout of nothing holds
    derived = {s for s in signatures(op, [Spec(a.shape, as_dtype(a.dtype)) for a in arrays], attrs)
               if drawable(arrays, s)}
    spaces = [layouts(x.shape, p) for x in (*arrays, *want)]
    derived = {s for s in derived if all(c in space for c, space in zip(s, spaces))}
    found = {s for s in itertools.product(*spaces)
             if drawable(arrays, s) and holds(op, arrays, attrs, want, s, p, rng)}
    assert derived - found == set(), "unsound: these do not hold"
    assert found - derived == set(), "incomplete: these hold too"

