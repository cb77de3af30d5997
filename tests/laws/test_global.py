"""Law: a global tensor has the values and gradients of a local one under every legal signature; an illegal
signature is refused where boxing is not allowed, and the error lists the legal partners.

On virtual devices; and on processes, if the launcher starts pytest (tests/dist/test_mpi.py):
python -m flowedu.distributed.launch --nproc_per_node 2 -m pytest tests/laws/test_global.py
"""
import itertools

import numpy as np
import pytest

import flowedu as flow
from common import as_list
from flowedu.boxing import strict
from flowedu.core.sbp.candidates import ways
from flowedu.core.sbp.names import of_text
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.sbp import boxes, pretty
from flowedu.core.sbp.signature import extra, names_of
from flowedu.core.sbp.tensor.global_layout import layout_of
from flowedu.core.sbp.tensor.interpreter import assemble
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec

from .calls import attributes, cases, draw_arrays, label, reference, thin
from .test_signatures import drawable as addends
from .test_signatures import layouts, that_hold

CALLS = cases(lambda op: not op.mutates and not op.random)
WORLDS = [(1,), (2,), (3,), (4,), (2, 2)]
MOST = 5            # signatures tried on a grid; on a row, all are tried


@pytest.fixture(autouse=True)
def four(world):
    world(4)


def scattered(a: np.ndarray, sbp: tuple, hierarchy: tuple, rng):
    """Convert a logical array to a global tensor: random addends where it is partial, smaller (larger)
    numbers where it is a maximum (minimum).
    """
    placement = flow.placement("cpu", np.arange(int(np.prod(hierarchy))).reshape(hierarchy).tolist())
    lay = layout_of(placement, tuple(of_text(s) for s in sbp))
    at, parts = lay.layout, {}
    partial = [i for i, s in enumerate(sbp) if s[0] == "P"]
    shape = [hierarchy[i] for i in partial]
    addends = np.empty([*shape, *a.shape], a.dtype)
    kinds = {sbp[i] for i in partial}
    cells = list(np.ndindex(*shape))
    for cell in cells:
        noise = rng.uniform(0.5, 2, a.shape) if a.dtype.kind == "f" else rng.integers(1, 4, a.shape)
        addends[cell] = ((a + noise * (-1 if kinds == {"Pmax"} else 1)) if kinds <= {"Pmax", "Pmin"} and kinds
                         else noise)
    if kinds == {"P"}:
        addends[cells[-1]] = a - sum(addends[c] for c in cells[:-1])
    else:
        addends[cells[-1]] = a
    for i, box in enumerate(boxes(at.sbp, at.hierarchy, a.shape)):
        if i not in current().owned:
            continue
        mine = addends[tuple(at.coords(i)[axis] for axis in partial)]
        parts[i] = flow.tensor(mine[tuple(slice(*b) for b in box)])
    return assemble(Spec(a.shape, as_dtype(a.dtype)), lay, parts)


def draw_call(op, example, rng):
    attrs = tuple(flow.float64 if repr(a) == "flowedu.float32" else a for a in attributes(op, example))
    arrays = draw_arrays(op, example, np.float64, rng)
    return arrays, attrs


def evaluated(op, inputs, attrs, weights):
    """Return the outputs, and the gradients of their weighted sum for the floating inputs.

    Ops without gradient rules have no gradients: backward would raise (see test_no_gradient.py).
    """
    outs = as_list(op.call(tuple(inputs), attrs))
    wanted = [x for x in inputs if x.requires_grad]
    known = [(y, w) for y, w in zip(outs, weights) if y.requires_grad]
    grads = flow.autograd.grad([y for y, _ in known], wanted, [w(y) for y, w in known], allow_unused=True) \
        if known and wanted and op.rules else []
    return outs, grads


def weight(i):
    """Return an initial gradient, either local or global, with the same logical value."""
    def make(y):
        n = np.random.default_rng(i).uniform(-1, 1, tuple(y.shape))
        where = ({"placement": y.placement, "sbp": [flow.sbp.broadcast] * len(y.placement.hierarchy)}
                 if y.is_global else {})
        return flow.tensor(n, dtype=y.dtype, **where)
    return make


def drawable(arrays, signature) -> bool:
    """Return False for partial indices and masks, whose sums and maxima have no meaning."""
    return all(a.dtype.kind == "f" or s[0] != "P" for a, sbp in zip(arrays, signature) for s in sbp)


def legal(op, specs, attrs, hierarchy, arrays, without=()):
    """Return the legal input layouts by the interpreter; `without`: SBPs to exclude."""
    found = {w.signature[:len(specs)]: w for w in ways(op, specs, attrs, hierarchy)
             if not w.fault and not w.mixed and (w.whole or w.calls is not None)
             and drawable(arrays, w.signature)
             and not any(s in without for sbp in w.signature for s in sbp)}
    return list(found)


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
def test_global_equals_local_under_every_signature(case):
    op, example = case
    rng = np.random.default_rng(5)
    arrays, attrs = draw_call(op, example, rng)
    local = [flow.tensor(a, requires_grad=a.dtype.kind == "f") for a in arrays]
    weights = [weight(i) for i in range(8)]
    want, want_grads = evaluated(op, local, attrs, weights)
    specs = tuple(Spec(a.shape, as_dtype(a.dtype)) for a in arrays)
    if not specs:
        return
    for hierarchy in (h for h in WORLDS if np.prod(h) <= current().size):
        tried = legal(op, specs, attrs, hierarchy, arrays)
        if len(hierarchy) > 1 and len(tried) > MOST:
            tried = [tried[i] for i in rng.choice(len(tried), MOST, replace=False)]
        for signature in tried:
            inputs = [scattered(a, s, hierarchy, rng) for a, s in zip(arrays, signature)]
            for x in inputs:
                x.requires_grad = x.dtype.is_floating_point
            with strict():
                op.call(tuple(x.detach() for x in inputs), attrs)        # without any boxing
            got, grads = evaluated(op, inputs, attrs, weights)
            for a, b in zip(got, want, strict=True):
                assert a.is_global and a.dtype is b.dtype and tuple(a.shape) == tuple(b.shape)
                np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-8, atol=1e-8,
                                           err_msg=str((hierarchy, signature)))
            for g, h in zip(grads, want_grads, strict=True):
                assert (g is None) == (h is None)
                if g is not None:
                    np.testing.assert_allclose(g.numpy(), h.numpy(), rtol=1e-7, atol=1e-7,
                                               err_msg=f"gradient, {hierarchy}, {signature}")


def true_signatures(op, arrays, attrs, rng) -> set:
    """Return the input layouts on two devices found by brute force: every device runs its shards, and the
    concatenated or summed results equal the logical ones. Layouts that need the device's rank come from
    the op's rules.
    """
    want = reference(op, arrays, attrs)
    spaces = [layouts(x.shape, 2) for x in (*arrays, *want)]
    found = that_hold(op, arrays, attrs, want, spaces, 2, rng)
    for _ in range(3):                                # a few numbers may sum to the right result by chance
        found &= that_hold(op, arrays, attrs, want, spaces, 2, rng)
    n, specs = len(arrays), [Spec(a.shape, as_dtype(a.dtype)) for a in arrays]
    found |= {s for s in extra(op, specs, attrs) if addends(arrays, s)}
    return {tuple((c,) for c in s[:n]) for s in found}


def tried_on_two(arrays) -> list:
    """Return all input layouts on two devices that split axes evenly."""
    spaces = [[(s,) for s in layouts(a.shape, 2)] for a in arrays]
    return [s for s in itertools.product(*spaces) if drawable(arrays, s)]


SMALL = [c for c in CALLS if len(c[1]["shapes"]) in (1, 2) and all(0 not in s for s in c[1]["shapes"])]


@pytest.mark.parametrize("case", thin(SMALL), ids=label)
def test_exactly_the_valid_layouts_are_legal(case):
    op, example = case
    rng = np.random.default_rng(5)
    arrays, attrs = draw_call(op, example, rng)
    specs = tuple(Spec(a.shape, as_dtype(a.dtype)) for a in arrays)
    if any(y.size == 0 for y in reference(op, arrays, attrs)):
        return                                        # for an empty array, every layout is valid
    tried = set(tried_on_two(arrays))
    # without sums: dist/test_signatures.py
    mine = legal(op, specs, attrs, (2,), arrays, without=("Pmax", "Pmin"))
    assert set(mine) & tried == true_signatures(op, arrays, attrs, rng) & tried


@pytest.mark.parametrize("case", thin(SMALL), ids=label)
def test_illegal_signatures_are_refused_without_boxing(case):
    op, example = case
    rng = np.random.default_rng(5)
    arrays, attrs = draw_call(op, example, rng)
    if any(y.size == 0 for y in reference(op, arrays, attrs)):
        return
    specs = tuple(Spec(a.shape, as_dtype(a.dtype)) for a in arrays)
    every = [w.signature for w in ways(op, specs, attrs, (2,))]
    folds = {s[:len(arrays)] for s in every if {"Pmax", "Pmin"} & set(sum(s, ()))}
    good = true_signatures(op, arrays, attrs, rng) | folds
    bad = [s for s in tried_on_two(arrays) if s not in good]
    rng.shuffle(bad)
    for signature in bad[:4]:
        signature = tuple(map(tuple, signature))
        inputs = [scattered(a, s, (2,), rng) for a, s in zip(arrays, signature)]
        with strict(), pytest.raises(flow.errors.FlowError) as e:
            op.call(tuple(inputs), attrs)
        text, names = str(e.value), names_of(op, len(arrays))
        assert op.name in text and "fix:" in text
        if "legal partners of" not in text:                # otherwise no input can keep its layout
            assert (not any(a == b and a != ("B",) for s in good for a, b in zip(s, signature))
                    or "cannot be" in text)
            assert any(f"{n}={pretty(s)}" in text for n, s in zip(names, signature)) or " is " in text
            continue
        said = text[text.index("legal partners of"):].split("\n")[0]
        anchor = next(i for i, (n, s) in enumerate(zip(names, signature))
                      if f"legal partners of {n}={pretty(s)}" in said)
        for s in (s for s in good if s[anchor] == signature[anchor]):
            others = ", ".join(f"{n}={pretty(b)}" for i, (n, b) in enumerate(zip(names, s)) if i != anchor)
            assert others in said or "and " in said, (others, said)
