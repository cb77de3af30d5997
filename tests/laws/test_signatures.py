"""Law: the SBP signatures derived from the axis equation and the linear groups are exactly the valid ones.

Brute force: every layout of the inputs and outputs on 2 and on 3 devices is tried numerically.
(dist/test_signatures.py tests soundness, not completeness, of rank-dependent signatures and partial maxima.)
"""
import itertools

import numpy as np
import pytest

from flowedu.core.ops.define import REGISTRY
from flowedu.core.sbp.signature import extra, signatures
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.errors import FlowError

from .calls import attributes, cases, draw_arrays, label, reference, thin, types_of

MANY = 8
CALLS = [(op, e) for op, e in cases(lambda op: op.ref is not None and not op.mutates and not op.random)
         if all(0 not in s for s in e["shapes"])]     # for an empty array, everything is valid


def layouts(shape, p):
    return ["B", "P", *[f"S{i}" for i, n in enumerate(shape) if n % p == 0 and n > 0]]


def scatter(x, sbp, p, rng):
    if sbp == "B":
        return [x] * p
    if sbp == "P":
        # far out: fmod(x, 3) is linear near 0
        parts = [4 * rng.standard_normal(x.shape) for _ in range(p - 1)]
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


def local_attributes(op, attrs, shards, out_shape, full, full_out):
    """Return the attributes on one shard, where the op adapts them."""
    if op.localize is None:
        return attrs
    specs = [Spec(x.shape, as_dtype(x.dtype)) for x in shards]
    names = op.bind(specs, attrs, out=Spec(out_shape, as_dtype(np.float64)), full=full, full_out=full_out)
    return tuple(op.ask(op.localize, names).get(n, v) for n, v in zip(op.attrs, attrs))


def run_on_devices(op, attrs, shards, p, out, full, full_out):
    """Run every device on its shards, with `out` as layout of the first output; None if one of them
    raises.
    """
    got = []
    for device in range(p):
        mine = [s[device] for s in shards]
        try:
            local = local_attributes(op, attrs, mine, local_shape(full_out, out, p), full, full_out)
            specs = [Spec(x.shape, as_dtype(x.dtype)) for x in mine]
            op.infer(specs, local)
            got.append(reference(op, mine, local))
        except (FlowError, ValueError, IndexError, KeyError, ZeroDivisionError, AssertionError):
            return None
    return got


def layouts_of_inputs(spaces):
    """Return every layout of the inputs; for more than 8 inputs, those in which at most two are not
    broadcast.
    """
    if len(spaces) <= MANY or any("B" not in space for space in spaces):
        yield from itertools.product(*spaces)
        return
    whole = ["B"] * len(spaces)
    for two in itertools.combinations_with_replacement(range(len(spaces)), 2):
        for sbps in itertools.product(*(spaces[i] for i in two)):
            yield tuple(dict(zip(two, sbps)).get(i, b) for i, b in enumerate(whole))


def that_hold(op, arrays, attrs, want, spaces, p, rng) -> set:
    """Return all layouts of inputs and outputs with which running `op` on every device's shards gives the
    logical outputs.
    """
    n, found = len(arrays), set()
    shards = [{s: scatter(a, s, p, rng) for s in space} for a, space in zip(arrays, spaces)]
    full, full_out = arrays[0].shape if arrays else (), want[0].shape
    for ins in layouts_of_inputs(spaces[:n]):
        if not drawable(arrays, ins):
            continue
        mine, got = [parts[s] for parts, s in zip(shards, ins)], {}
        for out in spaces[n] if op.localize is not None else spaces[n][:1]:
            got[out] = run_on_devices(op, attrs, mine, p, out, full, full_out)
        for out in spaces[n]:
            made = got.get(out, got[spaces[n][0]])
            if made is not None:
                rights = [[s for s in (space if k else [out]) if gathers_to([g[k] for g in made], s, w)]
                          for k, (space, w) in enumerate(zip(spaces[n:], want))]
                found |= {(*ins, *outs) for outs in itertools.product(*rights)}
    return found


def holds(op, arrays, attrs, want, sig, p, rng) -> bool:
    """Return True if this signature is valid."""
    return bool(that_hold(op, arrays, attrs, want, [[s] for s in sig], p, rng))


def tried(derived, op, arrays, attrs, want, spaces, p, rng) -> set:
    """Return the valid layouts, of all layouts, or of `layouts_of_inputs` and the derived ones."""
    found = that_hold(op, arrays, attrs, want, spaces, p, rng)
    return found | {s for s in derived - found if holds(op, arrays, attrs, want, s, p, rng)}


def drawable(arrays, sig) -> bool:
    """Return False for partial indices and masks, whose sums have no meaning."""
    return all(s != "P" or a.dtype.kind == "f" for a, s in zip(arrays, sig))


def assert_signatures_match_brute_force(op, example, p: int) -> None:
    """Assert that the derived signatures of a call equal the signatures that brute force finds."""
    rng = np.random.default_rng(p)
    attrs = attributes(op, example)
    arrays = draw_arrays(op, example, np.float64, rng)
    attrs = tuple(as_dtype(np.float64) if repr(a) == "flowedu.float32" else a for a in attrs)
    want = reference(op, arrays, attrs)
    if any(y.size == 0 for y in want):
        return                                        # for an empty array, every layout is valid
    specs = [Spec(a.shape, as_dtype(a.dtype)) for a in arrays]
    special = set(extra(op, specs, attrs))
    derived = {s for s in signatures(op, specs, attrs) if drawable(arrays, s)}
    spaces = [layouts(x.shape, p) for x in (*arrays, *want)]
    derived = {s for s in derived if all(c in space for c, space in zip(s, spaces))}
    found = tried(derived, op, arrays, attrs, want, spaces, p, rng)
    for _ in range(3 if found - derived else 0):      # a few numbers may sum to the right result by chance
        found &= tried(derived, op, arrays, attrs, want, spaces, p, rng)
    assert derived - special - found == set(), "unsound: these do not hold"
    assert found - derived == set(), "incomplete: these hold too"


@pytest.mark.parametrize("p", [2, 3])
@pytest.mark.parametrize("case", thin(CALLS), ids=label)
def test_signatures_are_sound_and_complete(case, p):
    assert_signatures_match_brute_force(*case, p)


# With a 1x1 kernel, devices can split the pixels of an image, but only if output pixel (i, j) reads input
# pixel (i, j). Half of 6 rows at stride 4 gives one output row, half of the two rows of the whole, but reads
# another input row; padding gives each half a separate border.
POINTWISE = [(4, 0, 2), (1, 1, 8), (1, 0, 6)]            # stride, padding, size of the output


@pytest.mark.parametrize("p", [2, 3])
@pytest.mark.parametrize(("stride", "pad", "out"), POINTWISE)
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("role", ["", "_input_grad", "_weight_grad"] if "conv2d" in REGISTRY else [])
def test_signatures_of_1x1_kernels_are_sound_and_complete(role, last, stride, pad, out, p):
    order = (0, 2, 3, 1) if last else (0, 1, 2, 3)
    x, dy = (tuple((6, 6, n, n)[i] for i in order) for n in (6, out))
    w, more = (6, 6, 1, 1), {"_input_grad": {"hw": (6, 6)}, "_weight_grad": {"kernel": (1, 1)}}.get(role, {})
    shapes = {"": [x, w], "_input_grad": [dy, w], "_weight_grad": [dy, x]}[role]
    example = dict(shapes=shapes, strides=(stride, stride), pads=(pad,) * 4, **more)
    assert_signatures_match_brute_force(REGISTRY["conv2d_last" + role if last else "conv2d" + role], example,
                                        p)


def test_attributes_may_be_passed_by_name():
    for op, example in CALLS:
        types = types_of(op, example, np.float32)
        specs = [Spec(tuple(s), as_dtype(t)) for s, t in zip(example["shapes"], types)]
        attrs = attributes(op, example)
        by_name = {name: attrs[i] for name, i in op.attr_index.items()}
        assert list(signatures(op, specs, by_name)) == list(signatures(op, specs, attrs))
