"""Global tensors on several GPUs: parts lie on their devices, boxing and ops are those of the CPU, part by part."""
import numpy as np
import pytest
from dist.boxing_common import layouts, pairs, scatter, values
from hypothesis import given, settings
from hypothesis import strategies as st
from no_kernel import NO_KERNEL

import flowedu as flow
from flowedu.core.sbp.boxing import route
from flowedu.core.sbp.names import of_text
from flowedu.core.sbp.tensor.interpreter import assembled
from flowedu.core.sbp.tensor.lay import lay_of
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, DeviceError, UnsupportedError
from laws.calls import attributes, cases, input_name, label, types_of, values as drawn
from laws.draws import agree, most_terms
from laws.test_global import legal, scattered

pytestmark = pytest.mark.skipif(flow.cuda.device_count() < 4, reason="four GPUs, or the simulator")
B, P, split = flow.sbp.broadcast, flow.sbp.partial_sum, flow.sbp.split
PLACES = [((0,), (1,)), ((3,), (1,)), ((0, 1), (2,)), ((0, 2), (2,)), ((1, 2, 3), (3,)), ((0, 1, 2, 3), (4,)),
          ((0, 1, 2, 3), (2, 2))]


@pytest.fixture(autouse=True)
def four(world):
    world(4)


def cuda(*ranks):
    return flow.placement("cpu" if ranks[0] == "cpu" else "cuda", list(ranks[ranks[0] == "cpu":]))


def lay(kind, at):
    return lay_of(flow.placement(kind, np.array(at.devices).reshape(at.hierarchy).tolist()), tuple(map(of_text, at.sbp)))


def laid(kind, at, parts, shape, dtype):
    there = {d: flow.tensor(p, device="cpu" if kind == "cpu" else f"cuda:{d}") for d, p in zip(at.devices, parts)}
    return assembled(Spec(shape, as_dtype(dtype)), lay(kind, at), there)


def where(x):
    """The device of every part."""
    return {rank: str(part.device) for rank, part in x.parts.items()}


def numbers(x):
    return {rank: part.cpu().numpy() for rank, part in x.parts.items()}


def on_their_devices(x):
    return all(at == ("cpu:0" if x.placement.type == "cpu" else f"cuda:{rank}") for rank, at in where(x).items())


# ---- boxing
@settings(max_examples=60)
@given(pairs(PLACES), st.sampled_from([("cuda", "cuda"), ("cpu", "cuda"), ("cuda", "cpu")]),
       st.sampled_from([np.float32, np.int64, np.float16]), st.integers(0, 9))
def test_boxing_is_that_of_the_cpu(pair, kinds, dtype, seed):
    """Part by part, to the bit: between any two layouts, on the same devices or others, on GPUs and off them."""
    shape, src, dst = pair
    given = scatter(values(shape, dtype, seed), src, np.random.default_rng(seed))
    x, y = laid(kinds[0], src, given, shape, dtype), laid("cpu", src, given, shape, dtype)
    want, got = (t.to_global(lay(kind, dst).placement, lay(kind, dst).sbp) for t, kind in ((y, "cpu"), (x, kinds[1])))
    assert on_their_devices(x) and on_their_devices(got) and got.placement.type == kinds[1] and got.sbp == want.sbp
    for rank, part in numbers(want).items():
        np.testing.assert_array_equal(numbers(got)[rank], part)
    for part, before in zip(numbers(x).values(), given):
        np.testing.assert_array_equal(part, before)          # what was given stays as it was
    if route(src, dst, x.spec).hops:
        assert not any(a.shares_block(b) for a in got.parts.values() for b in x.parts.values())


@settings(max_examples=20)
@given(pairs(PLACES), st.booleans())
def test_gradients_of_boxing(pair, home):
    """They come back to the device and the layout they came from, as on the CPU."""
    shape, src, dst = pair
    given, found = scatter(values(shape, np.float32), src, np.random.default_rng(0)), {}
    for kind in ("cpu", "cuda"):
        x = laid(kind, src, given, shape, np.float32).requires_grad_()
        to = lay("cpu" if home else kind, dst)
        y = x.to_global(to.placement, to.sbp)
        (y * 3).sum().backward()
        found[kind] = x.grad
    assert found["cuda"].sbp == found["cpu"].sbp and found["cuda"].placement.type == "cuda"
    assert on_their_devices(found["cuda"])
    for rank, part in numbers(found["cpu"]).items():
        np.testing.assert_array_equal(numbers(found["cuda"])[rank], part)


# ---- ops
CALLS = cases(lambda op: not op.mutates and not op.random and op.name not in NO_KERNEL)


@pytest.mark.parametrize("case", CALLS, ids=label)
def test_ops_are_those_of_the_cpu(case):
    """Under legal signatures: values, their layouts, and gradients."""
    op, example = case
    rng = np.random.default_rng(7)
    arrays = [drawn(op.domain.get(input_name(op, i), "any"), s, t, rng, i)
              for i, (s, t) in enumerate(zip(example["shapes"], types_of(op, example, np.float32)))]
    attrs, specs = attributes(op, example), tuple(Spec(a.shape, as_dtype(a.dtype)) for a in arrays)
    for hierarchy in ((2,), (2, 2)) if arrays else ():
        ways = legal(op, specs, attrs, hierarchy, arrays)
        for i in rng.permutation(len(ways))[:2]:
            here = [scattered(a, s, hierarchy, rng) for a, s in zip(arrays, ways[i])]
            there = [x.to("cuda") for x in here]
            assert all(map(on_their_devices, there))
            for x in (*here, *there):
                x.requires_grad = x.dtype.is_floating_point and bool(op.rules)
            want, got = (y if isinstance(y := op.call(tuple(xs), attrs), tuple) else (y,) for xs in (here, there))
            terms = most_terms(op, arrays)
            for a, b in zip(got, want, strict=True):
                assert on_their_devices(a) and a.sbp == b.sbp and a.placement.type == "cuda"
                agree(a.numpy(), b.numpy(), False, terms)
            totals = [sum((y * y).sum() for y in ys if y.requires_grad) for ys in (want, got)]
            if not isinstance(totals[0], int):
                totals[0].backward()
                totals[1].backward()
                for x, y in zip(here, there):
                    assert (x.grad is None) == (y.grad is None)
                    if x.grad is not None:
                        assert on_their_devices(y.grad) and y.grad.sbp == x.grad.sbp
                        top = max(1.0, float(np.abs(x.grad.numpy()).max(initial=0)))
                        np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol=3e-4, atol=3e-4 * top)
