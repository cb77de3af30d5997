"""Laws over the registry: every legal signature on a row or a grid of devices computes the call; an
impossible one has a reason; the choice is deterministic; strict mode accepts exactly the legal ones, and
its error lists partners.
"""
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dist.signature_common import (
    CALLS,
    arrays_of,
    drawable,
    gather,
    layouts_of,
    refuse,
    sample_items,
    scatter,
    sizes,
    specs_of,
)
from flowedu.core.ops.define import Op
from flowedu.core.ops.record import Laws, Meaning, Split, read
from flowedu.core.sbp.candidates import ways
from flowedu.core.sbp.choose import choose
from flowedu.core.sbp.sbp import fits
from flowedu.core.sbp.signature import extra, signatures
from flowedu.distributed import oneflow_rule
from flowedu.errors import JobBuildAndInferError
from flowedu.ops import REGISTRY
from laws.calls import label, reference, thin

ROWS = [(1,), (2,), (3,), (4,)]
GRIDS = [(2, 2), (2, 3), (3, 1), (1, 2), (2, 1, 2)]


def assert_local_calls_compute_call(op, arrays, attrs, want, way, hierarchy):
    """Assert that the local calls, run one by one, compute the call."""
    rng = np.random.default_rng(1)
    n = len(arrays)
    given_ = [scatter(a, s, hierarchy, rng) for a, s in zip(arrays, way.signature)]
    made = []
    for i, call in enumerate(way.calls):
        mine = [parts[i] for parts in given_]
        assert specs_of(mine) == call.ins
        made.append(reference(call.op, mine, call.attrs))
        assert [y.shape for y in made[-1]] == [s.shape for s in call.outs]
    for j, (y, sbps) in enumerate(zip(want, way.signature[n:])):
        got = gather([m[j] for m in made], sbps, hierarchy)
        assert got.shape == y.shape
        np.testing.assert_allclose(got, y, rtol=1e-8, atol=1e-8 * max(1.0,
                                                                      float(np.max(np.abs(y), initial=0))),
                                   err_msg=f"{op.name} {way.signature} on {hierarchy}")


@pytest.mark.parametrize("case", thin(CALLS), ids=label)
def test_every_signature_is_sound(case):
    """All signatures on rows of 1 to 4 devices, some on a grid of 2x2; with even and uneven sizes."""
    op, example = case
    for e in sizes(op, example):
        arrays, attrs = arrays_of(op, e)
        specs, want = specs_of(arrays), reference(op, *arrays_of(op, e))
        if any(0 in a.shape for a in arrays):
            continue
        for hierarchy in [*ROWS, (2, 2)]:
            legal = [w for w in ways(op, specs, attrs, hierarchy) if drawable(arrays, w.signature)
                     and not w.mixed]
            for way in sample_items(legal, 100 if len(hierarchy) == 1 else 5, 0):
                if way.fault:
                    assert "element" in way.fault or "uneven" in way.fault
                elif way.calls is not None:                      # None: the split is uneven
                    assert_local_calls_compute_call(op, arrays, attrs, want, way, hierarchy)


@given(st.sampled_from(CALLS), st.sampled_from(GRIDS), st.integers(0, 2 ** 31))
def test_signatures_on_other_grids_are_sound(case, hierarchy, seed):
    op, example = case
    for e in sizes(op, example):
        arrays, attrs = arrays_of(op, e, seed)
        if any(0 in a.shape for a in arrays):
            continue
        want = reference(op, arrays, attrs)
        legal = [w for w in ways(op, specs_of(arrays), attrs, hierarchy) if drawable(arrays, w.signature)
                 and not w.mixed and not w.fault and w.calls is not None]
        for way in sample_items(legal, 6, seed):
            assert_local_calls_compute_call(op, arrays, attrs, want, way, hierarchy)


def test_signatures_are_missing_only_for_short_axes_or_uneven_splits():
    """On a grid, every combination of per-axis signatures is legal, or refused with the reason."""
    for op, example in CALLS:
        if "groups" in op.attrs:  # with one group per device, groups cannot be split further
            continue
        arrays, attrs = arrays_of(op, example)
        specs = specs_of(arrays)
        found = {w.path for w in ways(op, specs, attrs, (2, 2))}
        short = {w.path[0] for w in ways(op, specs, attrs, (2, 2)) if w.fault and len(w.path) == 1}
        row = list(signatures(op, specs, attrs))
        values = [*specs, *op.infer(specs, attrs)]
        for a, b in itertools.product(row, row):
            grid = list(zip(a, b))
            if a not in short and all(fits(s, v.shape, (2, 2)) for s, v in zip(grid, values)):
                special = extra(op, specs, attrs)
                assert (a, b) in found or a in special or b in special, (op.name, a, b)


# ---- choice
@given(st.sampled_from(CALLS), st.sampled_from([(2,), (3,), (4,), (2, 2)]), st.data())
def test_the_choice_is_deterministic_and_takes_the_fewest_bytes(case, hierarchy, data):
    op, example = case
    arrays, attrs = arrays_of(op, data.draw(st.sampled_from(sizes(op, example))))
    specs = specs_of(arrays)
    sources = [w for w in ways(op, specs, attrs, hierarchy) if not w.mixed and w.calls is not None]
    mix = [data.draw(st.sampled_from(sources)) for _ in specs]  # each input in a layout of some signature
    present = [[layouts_of([w.signature[i]], hierarchy)[0]] for i, w in enumerate(mix)]
    devices = tuple(range(int(np.prod(hierarchy))))
    for rule in oneflow_rule.RULES:
        def call(rule=rule):
            return choose(op, specs, attrs, [list(p) for p in present], devices, hierarchy,
                          rule=rule)

        choice = call()
        assert call() is choice
        said = choice.explain()
        choose.__globals__["_find_choice"].cache_clear()
        assert call().explain() == said and call().signature == choice.signature
        assert choice.bytes == sum(r.bytes for r in choice.routes if r is not None)
        assert (choice.calls is None) == all(s == "B" for v in choice.signature for s in v)
        assert "because: " in said and " -> " in said
        if rule == "bytes":
            assert choice.bytes == min(c.bytes for c in choice.candidates if not c.fault)


@given(st.sampled_from([c for c in CALLS if c[1]["shapes"]]), st.sampled_from([(2,), (3,), (2, 2)]),
       st.data())
def test_strict_mode_accepts_legal_signatures_and_refuses_others_with_partners(case, hierarchy, data):
    op, example = case
    arrays, attrs = arrays_of(op, data.draw(st.sampled_from(sizes(op, example))))
    specs = specs_of(arrays)
    texts = ["B", "P", *(f"S{i}" for i in range(3))]
    have = []
    for spec in specs:
        legal = [s for s in itertools.product(texts, repeat=len(hierarchy)) if fits(s, spec.shape, hierarchy)]
        have.append(data.draw(st.sampled_from(legal)))
    layouts = layouts_of(have, hierarchy)
    wanted = [w.signature for w in ways(op, specs, attrs, hierarchy)
              if not w.mixed and w.calls is not None and w.signature[:len(specs)] == tuple(have)]
    if wanted:
        choice = refuse(op, specs, attrs, layouts)
        assert choice.signature in wanted and choice.bytes == 0 and all(r is None for r in choice.routes)
        return
    with pytest.raises(JobBuildAndInferError) as e:
        refuse(op, specs, attrs, layouts)
    assert str(e.value).startswith(f"{op.name}: ")
    assert "legal partners of " in e.value.expected or e.value.expected.startswith("one of ")
    assert " -> " in e.value.expected and ("box " in e.value.fix)


def test_wrong_rows_are_detected():
    """A device that reads another device's rows of an embedding is detected."""
    right = REGISTRY["gather"]
    wrong = Op(read(right.signature), Meaning(right.axes, right.ref, shape=right.shape, check=right.check),
               Split(linear=["params"], spread=lambda params, axis: {
                   (f"S{axis}", "B", "P"): (REGISTRY["gather_part"], lambda start, stop: {
                       "axis": axis, "first": 0, "size": params.shape[axis]})}),
               Laws(right.examples, right.domain))
    arrays, attrs = arrays_of(wrong, {"shapes": [(6, 4), (12,)]})
    way = next(w for w in ways(wrong, specs_of(arrays), attrs, (2,)) if w.signature[0] == ("S0",))
    with pytest.raises(AssertionError):
        assert_local_calls_compute_call(wrong, arrays, attrs, reference(wrong, arrays, attrs), way, (2,))
