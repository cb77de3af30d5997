"""Global tensors on several GPUs: each part is on its device, and boxing and ops match the CPU part by
part.
"""
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from no_kernel import NO_KERNEL

import flowedu as flow
from dist.boxing_common import draw_integers, layout_pairs, scatter
from flowedu.core.sbp.boxing import route
from flowedu.core.sbp.names import of_text
from flowedu.core.sbp.tensor.global_layout import layout_of
from flowedu.core.sbp.tensor.interpreter import assemble
from flowedu.core.values.dtype import as_dtype
from flowedu.core.values.spec import Spec
from flowedu.errors import ArgumentError, DeviceError, KernelError, UnsupportedError
from laws.calls import attributes, cases, draw_arrays, label
from laws.draws import assert_equal_or_rounded, most_terms
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
    return layout_of(flow.placement(kind, np.array(at.devices).reshape(at.hierarchy).tolist()),
                     tuple(map(of_text, at.sbp)))


def place_parts(kind, at, parts, shape, dtype):
    there = {d: flow.tensor(p, device="cpu" if kind == "cpu" else f"cuda:{d}")
             for d, p in zip(at.devices, parts)}
    return assemble(Spec(shape, as_dtype(dtype)), lay(kind, at), there)


def where(x):
    """Return {rank: device of its part}."""
    return {rank: str(part.device) for rank, part in x.parts.items()}


def copy_parts(x):
    return {rank: part.cpu().numpy() for rank, part in x.parts.items()}


def on_their_devices(x):
    return all(at == ("cpu:0" if x.placement.type == "cpu" else f"cuda:{rank}")
               for rank, at in where(x).items())


# ---- boxing
@settings(max_examples=60)
@given(layout_pairs(PLACES), st.sampled_from([("cuda", "cuda"), ("cpu", "cuda"), ("cuda", "cpu")]),
       st.sampled_from([np.float32, np.int64, np.float16]), st.integers(0, 9))
def test_boxing_matches_the_cpu(pair, kinds, dtype, seed):
    """Parts are equal to the bit for any two layouts, on the same or other devices, on GPUs and between GPU
    and CPU.
    """
    shape, src, dst = pair
    given = scatter(draw_integers(shape, dtype, seed), src, np.random.default_rng(seed))
    x, y = place_parts(kinds[0], src, given, shape, dtype), place_parts("cpu", src, given, shape, dtype)
    want, got = (t.to_global(lay(kind, dst).placement, lay(kind, dst).sbp)
                 for t, kind in ((y, "cpu"), (x, kinds[1])))
    assert (on_their_devices(x) and on_their_devices(got) and got.placement.type == kinds[1]
            and got.sbp == want.sbp)
    for rank, part in copy_parts(want).items():
        np.testing.assert_array_equal(copy_parts(got)[rank], part)
    for part, before in zip(copy_parts(x).values(), given):
        np.testing.assert_array_equal(part, before)          # the input is unchanged
    if route(src, dst, x.spec).hops:
        assert not any(a.shares_block(b) for a in got.parts.values() for b in x.parts.values())


@settings(max_examples=20)
@given(layout_pairs(PLACES), st.booleans())
def test_gradients_of_boxing(pair, home):
    """Gradients return to the original device and layout, as on the CPU."""
    shape, src, dst = pair
    given, found = scatter(draw_integers(shape, np.float32), src, np.random.default_rng(0)), {}
    for kind in ("cpu", "cuda"):
        x = place_parts(kind, src, given, shape, np.float32).requires_grad_()
        to = lay("cpu" if home else kind, dst)
        y = x.to_global(to.placement, to.sbp)
        (y * 3).sum().backward()
        found[kind] = x.grad
    assert found["cuda"].placement == lay("cuda", src).placement and on_their_devices(found["cuda"])
    np.testing.assert_array_equal(found["cuda"].numpy(), found["cpu"].numpy())
    if not home:                                         # on one placement, a gradient keeps its layout
        assert found["cuda"].sbp == found["cpu"].sbp
        for rank, part in copy_parts(found["cpu"]).items():
            np.testing.assert_array_equal(copy_parts(found["cuda"])[rank], part)


# ---- ops
CALLS = cases(lambda op: not op.mutates and not op.random and op.name not in NO_KERNEL)


@pytest.mark.parametrize("case", CALLS, ids=label)
def test_ops_match_the_cpu(case):
    """Compare values, layouts, and gradients under legal signatures."""
    op, example = case
    rng = np.random.default_rng(7)
    arrays = draw_arrays(op, example, np.float32, rng)
    attrs, specs = attributes(op, example), tuple(Spec(a.shape, as_dtype(a.dtype)) for a in arrays)
    for hierarchy in ((2,), (2, 2)) if arrays else ():
        ways = legal(op, specs, attrs, hierarchy, arrays)
        for i in rng.permutation(len(ways))[:3 - len(hierarchy)]:
            here = [scattered(a, s, hierarchy, rng) for a, s in zip(arrays, ways[i])]
            there = [x.to("cuda") for x in here]
            assert all(map(on_their_devices, there))
            for x in (*here, *there):
                x.requires_grad = x.dtype.is_floating_point and bool(op.rules)
            want, got = (y if isinstance(y := op.call(tuple(xs), attrs), tuple) else (y,)
                         for xs in (here, there))
            terms = most_terms(op, arrays)
            for a, b in zip(got, want, strict=True):
                assert on_their_devices(a) and a.sbp == b.sbp and a.placement.type == "cuda"
                assert_equal_or_rounded(a.numpy(), b.numpy(), False, terms)
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


# user-level operations
def make_global_tensor(x, sbp=None, ranks=(0, 1)):
    return flow.tensor(x, placement=cuda(*ranks), sbp=sbp or split(0))


def test_creation():
    for make in (lambda **k: flow.ones(5, 4, **k), lambda **k: flow.full((5, 4), 2, **k),
                 lambda **k: flow.eye(5, 4, **k),
                 lambda **k: flow.arange(20, **k).reshape(5, 4), lambda **k: flow.randn(5, 4, **k),
                 lambda **k: flow.randint(0, 9, (5, 4), **k)):
        for p, sbp in ((cuda(0, 1), split(0)), (cuda(1, 3), B), (cuda([0, 1], [2, 3]), [split(0), P]),
                       (cuda(2), B)):
            flow.manual_seed(3)
            x = make(placement=p, sbp=sbp)
            flow.manual_seed(3)
            y = make(placement=flow.placement("cpu", p.ranks), sbp=sbp)
            assert on_their_devices(x) and x.is_cuda and not x.is_cpu and x.placement == p and x.sbp == y.sbp
            for rank, part in copy_parts(y).items():
                np.testing.assert_array_equal(copy_parts(x)[rank], part)
            assert x.tolist() == y.tolist() and "placement(type=\"cuda\"" in repr(x)


def test_to_and_from_local():
    for device in ("cpu", "cuda:0", "cuda:3"):
        x = flow.arange(6, device=device).float().reshape(2, 3).requires_grad_()
        y = x.to_global(cuda(0, 1), split(0))                # the shards of all ranks of this process
        assert on_their_devices(y) and y.tolist() == x.tolist() * 2
        (y * flow.tensor([[1.0], [2], [3], [4]], placement=cuda(0, 1), sbp=B)).sum().backward()
        assert x.grad.device == x.device and x.grad.tolist() == [[4] * 3, [6] * 3]
    y = make_global_tensor(np.arange(6.0))
    for rank in (0, 1):
        part = y.to_local(rank=rank)
        assert (part.device == flow.device("cuda", rank) and part.tolist() == [3 * rank, 3 * rank + 1,
                                                                               3 * rank + 2])
        assert part.shares_block(y.parts[rank])
    z = y.requires_grad_().to_local(rank=1)
    (z * z).sum().backward()
    assert y.grad.tolist() == [0, 0, 0, 6, 8, 10] and on_their_devices(y.grad)
    back = flow.ones(2, device="cuda:1").to_global(flow.placement("cpu", [0, 1]), P)
    assert on_their_devices(back) and back.tolist() == [2, 2]


def test_device_transfers_keep_the_ranks():
    """x.to("cuda"), x.cuda(), and x.cpu() move to the other kind of device of the same ranks and are
    differentiable.
    """
    for p, sbp in ((flow.placement("cpu", [0, 2]), split(0)), (flow.placement("cpu", [1]), B),
                   (flow.placement("cpu", [[0, 1], [2, 3]]), [B, split(1)])):
        x = flow.tensor(np.arange(12.0).reshape(3, 4), placement=p, sbp=sbp, requires_grad=True)
        for go in (lambda t: t.cuda(), lambda t: t.to("cuda"), lambda t: t.to("cuda", flow.float32)):
            y = go(x)
            assert y.placement == flow.placement("cuda", p.ranks) and y.sbp == x.sbp and on_their_devices(y)
            assert y.cuda() is y and y.to("cuda") is y and x.cpu() is x and y.cpu().placement == p
            x.grad = None
            (y.cpu() * 2).sum().backward()
            assert x.grad.placement == p and x.grad.tolist() == [[2] * 4] * 3
    with pytest.raises(ArgumentError, match="kind of device"):
        x.to("cuda:1")


def test_local_constants_are_refused_and_numbers_join():
    for ranks in ((0, 1), (1,)):
        x = make_global_tensor(np.ones((2, 3)), ranks=ranks, sbp=B if len(ranks) == 1 else split(0))
        for device in ("cpu", "cuda:0", "cuda:1"):
            for other in (flow.arange(3, device=device), flow.full((), 2.0, device=device)):
                with pytest.raises(ArgumentError, match="inconsistent attributes"):
                    x * other
        y = x * 2.0
        assert on_their_devices(y) and y.tolist() == (flow.ones(2, 3) * 2.0).tolist()


def test_writing_in_place():
    x = make_global_tensor(np.zeros((4, 3)))
    x[1:3] = 5
    x.add_(1)
    x.copy_(x * 2)
    x += flow.ones(4, 3, placement=cuda(0, 1), sbp=B)
    assert on_their_devices(x) and x[:, 0].tolist() == [3, 13, 13, 3]
    w = make_global_tensor(np.ones(4)).requires_grad_()
    y = w * 2
    y[:2] = 0
    (y * y).sum().backward()
    assert w.grad.tolist() == [0, 0, 8, 8]
    for ranks in ((0, 1), (1,)):
        z, one = (make_global_tensor(np.zeros(4), ranks=(0, 1)),
                  make_global_tensor(np.ones(4), ranks=ranks, sbp=B))
        z.data = one
        assert (z.tolist() == z.numpy().tolist() == [1] * 4 and on_their_devices(z)
                and (z + z).tolist() == [2] * 4)


OPTIMIZERS = {"SGD": {"lr": 0.1}, "Adam": {"lr": 0.01}, "LAMB": {"lr": 0.01},
              "RMSprop": {"lr": 0.01, "centered": True}}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("weights", [B, split(0)], ids=["data parallel", "model parallel"])
def test_training(name, weights):
    """A module on two GPUs trains as on the CPU; states have the layout of their parameters."""
    if name == "LAMB" and weights is not B:
        return
    found = []
    for kind in ("cpu", "cuda"):
        p = flow.placement(kind, [0, 1])
        flow.manual_seed(1)
        m = flow.nn.Sequential(flow.nn.Linear(6, 8), flow.nn.ReLU(), flow.nn.Dropout(0.1),
                               flow.nn.Linear(8, 4)).to_global(
                                   p, B).to_global(p, weights)
        opt = getattr(flow.optim, name)(m.parameters(), **OPTIMIZERS[name])
        rng, losses = np.random.default_rng(0), []
        x = flow.tensor(rng.standard_normal((5, 6)).astype(np.float32), placement=p,
                        sbp=split(0) if weights is B else B)
        for _ in range(3):
            loss = m(x).square().mean()
            loss.backward()
            opt.step()
            opt.zero_grad()
            losses.append(loss.item())
        states = [s for w in m.parameters() for s in opt.state.get(w, {}).values()]
        assert all(map(on_their_devices, [*m.parameters(), *states]))
        found.append((losses, [w.numpy() for w in m.parameters()]))
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-4)
    for a, b in zip(found[1][1], found[0][1]):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_states_are_saved_and_loaded(tmp_path):
    m = flow.nn.Linear(4, 2).to_global(cuda(0, 1), B)
    flow.save(m.state_dict(), tmp_path / "state", global_dst_rank=0)
    other = flow.nn.Linear(4, 2).to_global(cuda(0, 1), B)
    other.load_state_dict(flow.load(tmp_path / "state", global_src_rank=0))
    assert on_their_devices(other.weight) and other.weight.tolist() == m.weight.tolist()
    there = flow.load(tmp_path / "state", global_src_rank=1, map_location="cuda")["weight"]
    assert there.placement == cuda(1) and on_their_devices(there) and there.tolist() == m.weight.tolist()


def test_modules_move():
    m = flow.nn.Linear(4, 2).to_global(flow.placement("cpu", [0, 1]), B)
    assert on_their_devices(m.cuda().weight) and m.weight.is_cuda and m.cpu().weight.placement.type == "cpu"


# ---- bad input
def test_graphs_are_on_the_cpu():
    class Graph(flow.nn.Graph):
        def build(self, x):
            return x.to_global(cuda(0, 1), B)

    with pytest.raises(UnsupportedError, match=r"inside build are on the CPU"):
        Graph()(flow.ones(4, placement=flow.placement("cpu", [0, 1]), sbp=B))
    with pytest.raises(UnsupportedError, match=r'type="cuda"(.|\n)*runs on the CPU'):
        Graph()(flow.ones(4, placement=cuda(0, 1), sbp=B))


def test_missing_devices_are_reported():
    with pytest.raises(DeviceError, match=r"rank 7 of the placement has no GPU(.|\n)*ranks of 0 to 3"):
        flow.ones(4, placement=cuda(0, 7), sbp=B)
    with pytest.raises(DeviceError, match="rank 4"):
        flow.ones(4).to_global(cuda(*range(5)), B)
    x = make_global_tensor(np.ones(4))
    with pytest.raises(DeviceError, match="rank 4"):
        x.to_global(placement=cuda(0, 4))
    with pytest.raises(ArgumentError, match="same placement"):
        x + flow.ones(4, placement=flow.placement("cpu", [0, 1]), sbp=split(0))
    with pytest.raises(ArgumentError, match="is local"):
        x + flow.tensor(np.ones(4), device="cuda")
    with pytest.raises(BufferError, match="to_local"):
        x.__dlpack__()
    assert x.tolist() == [1] * 4


def test_an_index_outside_of_a_table_that_is_split():
    table, words = (make_global_tensor(np.arange(10.0).reshape(5, 2)),
                    lambda *at: make_global_tensor(np.array(at), sbp=B))
    assert flow.nn.functional.embedding(words(0, 4), table).tolist() == [[0, 1], [8, 9]]
    for bad in (5, 7, -1):
        y = flow.nn.functional.embedding(words(0, bad), table)
        with pytest.raises(KernelError, match=rf"gather: an index is out of range: {bad}"):
            y.numpy()
        for device in range(2):                          # every device that found it reports it
            with suppress(KernelError):
                flow.cuda.synchronize(device)
    assert table.sum().item() == 45


def test_a_single_process_program_gets_a_rank_for_each_gpu(world):
    for k, n in ((1, flow.cuda.device_count()), (2, 2)):
        world(k)
        assert (flow.placement.all("cuda") == cuda(*range(n))
                and flow.placement.all("cpu").ranks.tolist() == [*range(k)])
    world(1)
    x = flow.ones(4, placement=cuda(0, 2), sbp=split(0))
    assert flow.env.get_world_size() == flow.cuda.device_count() and on_their_devices(x)
    with pytest.raises(ArgumentError, match="rank must be less than world size"):
        world(1)
        flow.ones(4, placement=flow.placement("cpu", [0, 2]), sbp=B)
