"""Global tensors: attributes, repr, creation, conversions, and errors. (tests/laws/test_global.py tests ops
on them.)
"""
import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.core.sbp.sbp import boxes

B, P, split = flow.sbp.broadcast, flow.sbp.partial_sum, flow.sbp.split
A = np.arange(16, dtype=np.float32).reshape(4, 4)


@pytest.fixture(autouse=True)
def four(world):
    world(4)


def row(*ranks):
    return flow.placement("cpu", list(ranks))


def grid():
    return flow.placement("cpu", [[0, 1], [2, 3]])


def make_global(sbp, placement=None, a=A):
    return flow.tensor(a, placement=placement or row(0, 1), sbp=sbp)


def shards(x):
    return {rank: part.numpy() for rank, part in x.parts.items()}


class TestPlacement:
    def test_text(self):
        assert repr(row(0, 1)) == 'flowedu.placement(type="cpu", ranks=[0, 1])'
        assert repr(grid()) == 'flowedu.placement(type="cpu", ranks=[[0, 1], [2, 3]])'

    def test_equal_by_value_and_kept_sorted(self):
        assert row(3, 2, 1, 0) == row(0, 1, 2, 3) and hash(row(1, 0)) == hash(row(0, 1))
        assert row(0, 1, 2, 3) != grid() and row(0, 1) != flow.placement("cuda", [0, 1])
        assert (flow.placement("cpu", {0: [0, 1]}) == row(0, 1)
                and flow.placement("cpu", range(2)) == row(0, 1))

    def test_a_placement_has_type_ranks_and_hierarchy(self):
        p = grid()
        assert (p.type == p.device_type == "cpu" and p.ranks.tolist() == [[0, 1], [2, 3]]
                and p.hierarchy == (2, 2))
        assert isinstance(p.hierarchy, flow.Size) and flow.placement.all("cpu") == row(0, 1, 2, 3)

    @pytest.mark.parametrize("ranks", [[], [[0, 1], [2]], [0, 0], [-1], [0.5], "01", None])
    def test_invalid_ranks_are_refused(self, ranks):
        with pytest.raises(flow.errors.ArgumentError, match="ranks|twice"):
            flow.placement("cpu", ranks)

    def test_an_unknown_device_type_is_refused(self):
        with pytest.raises(RuntimeError, match='expected: "cpu" or "cuda"|"cpu" or "cuda"'):
            flow.placement("gpu", [0])

    def test_a_rank_beyond_the_world_raises_when_it_is_used(self):
        p = row(0, 5)
        with pytest.raises(RuntimeError, match="rank must be less than world size") as e:
            flow.ones(4, placement=p, sbp=B)
        assert "set_virtual_devices(6)" in str(e.value)

    def test_cuda_without_a_gpu(self):
        with pytest.raises(NotImplementedError, match="no GPU"):
            flow.ones(4, placement=flow.placement("cuda", [0]), sbp=B)


class TestSbp:
    def test_text(self):
        assert [repr(s) for s in (split(0), B, P)] == ["flowedu.sbp.split(dim=0)", "flowedu.sbp.broadcast",
                                                       "flowedu.sbp.partial_sum"]
        assert split(dim=1) is split(1) and B() is B and split(axis=1) is split(1) and split(0) != split(1)
        assert copy.deepcopy(B) is B

    @pytest.mark.parametrize("dim, words", [(-1, "must not be negative, but got -1"), ("0", "not the number"),
                                            (None, "not the number")])
    def test_an_invalid_axis_of_split_is_refused(self, dim, words):
        with pytest.raises(RuntimeError, match=words):
            split(dim)

    @pytest.mark.parametrize("sbp, words", [("B", "fix.*flow.sbp.broadcast"), ("S(1)", r"fix.*split\(1\)"),
                                            ([B, B], "2 vs 1"), ([], "must be type of")])
    def test_invalid_sbp(self, sbp, words):
        with pytest.raises((TypeError, RuntimeError)) as e:
            flow.ones(4, placement=row(0, 1), sbp=sbp)
        assert __import__("re").search(words, str(e.value))

    def test_one_for_each_axis_of_the_grid(self):
        with pytest.raises(RuntimeError, match="1 vs 2"):
            flow.ones(4, placement=grid(), sbp=B)
        assert flow.ones(4, 4, placement=grid(), sbp=[split(0), B]).sbp == (split(0), B)

    def test_a_missing_or_too_short_axis(self):
        with pytest.raises(RuntimeError, match=r"range of \[0, 2\), but got 5"):
            make_global(split(5))
        with pytest.raises(RuntimeError, match="3 vs 4"):
            flow.ones(3, placement=row(0, 1, 2, 3), sbp=split(0))


class TestCreation:
    def test_shards_of_a_tensor(self):
        assert {r: p.tolist() for r, p in shards(make_global(split(0))).items()} == {0: A[:2].tolist(),
                                                                                     1: A[2:].tolist()}
        assert shards(make_global(split(1)))[1].tolist() == A[:, 2:].tolist()
        parts = shards(make_global(P))
        assert parts[0].tolist() == A.tolist() and not parts[1].any()
        grid_parts = shards(make_global([split(0), split(1)], grid()))
        assert grid_parts[0].tolist() == [[0, 1], [4, 5]] and grid_parts[3].tolist() == [[10, 11], [14, 15]]

    @pytest.mark.parametrize("n, k, sizes", [(5, 2, [3, 2]), (7, 4, [2, 2, 2, 1]), (6, 4, [2, 2, 1, 1])])
    def test_shards_of_uneven_axes_are_balanced(self, n, k, sizes):
        x = flow.arange(n, placement=row(*range(k)), sbp=split(0))
        assert [len(p) for p in shards(x).values()] == sizes and x.tolist() == list(range(n))

    def test_two_splits_of_one_axis_are_not_one(self):
        x = flow.arange(6, placement=grid(), sbp=[split(0), split(0)])
        assert [len(p) for p in shards(x).values()] == [2, 1, 2, 1]

    @pytest.mark.parametrize("make", [
        lambda **k: flow.ones(4, 6, **k), lambda **k: flow.zeros((4, 6), **k),
        lambda **k: flow.full((4, 6), 2.5, **k),
        lambda **k: flow.eye(4, 6, **k), lambda **k: flow.ones(4, 6, dtype=flow.int64, **k),
        lambda **k: flow.arange(24, **k), lambda **k: flow.linspace(0, 1, 24, **k),
        lambda **k: flow.rand(4, 6, **k),
        lambda **k: flow.randn(4, 6, **k), lambda **k: flow.randint(0, 9, (4, 6), **k),
        lambda **k: flow.randperm(24, **k),
        lambda **k: flow.normal(0.0, 1.0, (4, 6), **k), lambda **k: flow.tensor(A, **k)])
    def test_the_logical_value_does_not_depend_on_the_devices(self, make):
        flow.manual_seed(3)
        local = make().numpy()
        for placement, sbp in ((row(0), B), (row(0, 1), split(0)), (row(0, 1, 2, 3), split(0)),
                               (row(1, 2), P),
                               (row(0, 1, 2), B), (grid(), [split(0), split(0)]), (grid(), [P, split(0)])):
            flow.manual_seed(3)
            x = make(placement=placement, sbp=sbp)
            assert x.is_global and x.placement == placement and x.dtype == flow.tensor(local).dtype
            np.testing.assert_array_equal(x.numpy(), local)

    def test_like_another_tensor(self):
        x = make_global(P)
        for y, want in ((flow.zeros_like(x), 0), (flow.ones_like(x), 1), (flow.full_like(x, 3), 3)):
            assert y.placement == x.placement and y.sbp == (P,) and (y.numpy() == want).all()
        assert flow.randn_like(make_global(split(1))).sbp == (split(1),)

    def test_placement_and_sbp_are_required_together(self):
        with pytest.raises(AssertionError, match="sbp: None"):
            flow.ones(4, placement=row(0, 1))
        with pytest.raises(AssertionError, match="placement: None"):
            flow.ones(4, sbp=B)
        with pytest.raises(RuntimeError, match="device and placement"):
            flow.ones(4, placement=row(0, 1), sbp=B, device="cpu")

    def test_requires_grad(self):
        x = flow.ones(4, 4, placement=row(0, 1), sbp=split(0), requires_grad=True)
        assert x.requires_grad and x.is_leaf and x.grad_fn is None


class TestConversion:
    def test_local_shards_become_one(self):
        local = flow.ones(2, 2)
        assert {s: tuple(local.to_global(grid(), s).shape) for s in ((split(0), split(1)), (split(0), B),
                                                                     (split(0), split(0)))} == {
            (split(0), split(1)): (4, 4), (split(0), B): (4, 2), (split(0), split(0)): (8, 2)}
        assert local.to_global(row(0, 1), P).numpy().tolist() == [[2, 2], [2, 2]]
        assert local.to_global(row(0, 1), B).numpy().tolist() == [[1, 1], [1, 1]]

    @pytest.mark.parametrize("sbp, grad", [(B, 6.0), (P, 24.0), (split(0), 12.0)])
    def test_gradient_of_a_local_tensor_used_for_every_shard(self, sbp, grad):
        # y = sum((c x)^2) of the logical value: B: x once; P: 2x; S: x twice. Compared with the analytic
        # derivative.
        x = flow.tensor([3.0], requires_grad=True)
        y = x.to_global(row(0, 1), sbp)
        (y * y).sum().backward()
        assert x.grad.is_local and x.grad.item() == grad

    def test_shard_and_back(self):
        x = make_global(split(0))
        x.requires_grad = True
        y = x.to_local(rank=1)
        assert y.is_local and y.numpy().tolist() == A[2:].tolist()
        (y * 2).sum().backward()
        assert (x.grad.sbp == (split(0),)
                and x.grad.numpy().tolist() == np.r_[np.zeros((2, 4)), np.full((2, 4), 2)].tolist())

    def test_a_shard_shares_memory(self):
        x = make_global(split(0))
        x.to_local(rank=0)[0, 0] = 7
        assert x.numpy()[0, 0] == 7

    @pytest.mark.parametrize("sbp", [split(0), split(1), B])
    def test_a_converted_tensor_has_separate_memory(self, sbp):
        x = make_global(B)
        y = x.to_global(sbp=sbp, copy=True)
        y.parts[1].fill_(7)
        assert x.numpy().tolist() == A.tolist() and (y.parts[1].numpy() == 7).all()

    def test_devices_that_share_a_copy_do_not_hand_it_out(self):
        x = make_global(B)
        x.to_local(rank=0).fill_(5)
        assert x.numpy().tolist() == A.tolist()

    def test_shard_on_each_device(self):
        with pytest.raises(RuntimeError, match="which shard"):
            make_global(split(0)).to_local()
        assert make_global(B, row(2)).to_local().numpy().tolist() == A.tolist()
        with pytest.raises(RuntimeError, match="another process"):
            make_global(B).to_local(rank=9)

    def test_a_rank_outside_the_placement_has_an_empty_part(self):
        assert tuple(make_global(split(0)).to_local(rank=3).shape) == (0, 0)

    def test_conversion_without_arguments_changes_nothing(self):
        x = make_global(split(0))
        assert x.to_global() is x and x.to_global(sbp=split(0)) is x
        assert x.to_global(sbp=B).placement == x.placement and x.to_global(row(2, 3)).sbp == x.sbp

    def test_texts_of_the_specification(self):
        local, x = flow.ones(2), make_global(B)
        for call, words in (
                (lambda: local.to_global(row(0, 1)), "must have placement and sbp parameters"),
                (lambda: local.to_local(), "Expected global tensor for to_local but got local tensor"),
                (lambda: local.global_to_global(sbp=B), "input must be a global tensor"),
                (lambda: x.local_to_global(row(0), B), "input must be a local tensor"),
                (lambda: x.device, "Only local tensors have 'device'"),
                (lambda: local.placement, "Only global tensors have 'placement'"),
                (lambda: local.sbp, "Local tensor has no sbp property"),
                (lambda: x.to_global(sbp=split(5)), r"range of \[0, 2\), but got 5"),
                (lambda: x.to_global(grid()), "another hierarchy needs an sbp")):
            with pytest.raises((RuntimeError, AssertionError), match=words):
                call()

    def test_grad_sbp(self):
        x = make_global(B)
        x.requires_grad = True
        y = x.to_global(sbp=split(0), grad_sbp=split(1))
        g, = flow.autograd.grad((y * y).sum(), x)
        assert g.sbp == (split(1),) and g.numpy().tolist() == (2 * A).tolist()

    def test_the_gradient_returns_to_its_original_placement(self):
        x = make_global(split(0))
        x.requires_grad = True
        y = x.to_global(row(2, 3), split(1))
        (y * y).sum().backward()
        assert (x.grad.placement == x.placement and x.grad.sbp == x.sbp
                and x.grad.numpy().tolist() == (2 * A).tolist())

    @given(st.data())
    def test_logical_value_survives(self, data):
        """Converts through any three layouts; the parts are the shards of the last."""
        x = make_global(split(0))
        for _ in range(3):
            placement = data.draw(st.sampled_from([row(0), row(1, 3), row(0, 1, 2), row(0, 1, 2, 3), grid()]))
            sbp = [data.draw(st.sampled_from([B, P, split(0), split(1)])) for _ in placement.hierarchy]
            x = x.to_global(placement, sbp)
        np.testing.assert_array_equal(x.numpy(), A)
        if P not in x.sbp:
            where = boxes(tuple(s.text for s in x.sbp), tuple(x.placement.hierarchy), (4, 4))
            for part, (r, c) in zip(shards(x).values(), where):
                np.testing.assert_array_equal(part, A[slice(*r), slice(*c)])


class TestOps:
    def test_local_and_global_do_not_mix(self):
        local = flow.tensor([1.0, 2.0, 3.0, 4.0])
        with pytest.raises(RuntimeError, match="attributes of inputs is: global, local") as e:
            make_global(B) + local
        assert "y.to_global" in str(e.value)

    def test_devices_beyond_a_smaller_world_are_refused(self, world):
        x = make_global(split(0), row(0, 1, 2, 3))
        world(2)
        with pytest.raises(RuntimeError, match="rank must be less than world size"):
            x + x

    def test_two_placements(self):
        with pytest.raises(RuntimeError,
                           match=r"at least two placements, .*\(positional 0\) and .*\(positional 1\)"):
            make_global(B) + make_global(B, row(2, 3))

    def test_no_local_value_is_written_by_a_global_one(self):
        with pytest.raises(RuntimeError, match="a global tensor cannot be written into a local one"):
            flow.ones(4, 4).copy_(make_global(B))
        with pytest.raises(RuntimeError, match="a local tensor cannot be written into a global one"):
            make_global(B)[0] = flow.tensor(A[0])

    @pytest.mark.parametrize("sbps, placement", [(s, p) for s in (B, P, split(0), split(1))
                                                 for p in (row(0, 1), row(2))]
                             + [((split(1), P), grid())])
    @pytest.mark.parametrize("value", [A, A[0], A.astype(np.int64), A[:, :1].astype(np.float64)], ids="abcd")
    def test_copy_accepts_an_array_or_a_local_tensor_as_the_logical_value(self, sbps, placement, value):
        for v in value, flow.tensor(value), flow.tensor(value, placement=placement,
                                                        sbp=[B] * len(placement.hierarchy)):
            x = make_global(sbps, placement, 0 * A)
            before = x.sbp
            assert (x.copy_(v) is x and x.sbp == before and x.placement == placement
                    and x.dtype is flow.float32)
            np.testing.assert_array_equal(x.numpy(), np.broadcast_to(value, (4, 4)).astype(np.float32))

    @pytest.mark.parametrize("sbp", [B, P, split(0)])
    def test_copy_gives_a_local_tensor_its_gradient(self, sbp):
        local = flow.tensor(A[0], requires_grad=True)
        (make_global(sbp).copy_(local) * make_global(B)).sum().backward()
        assert local.grad.is_local
        np.testing.assert_array_equal(local.grad.numpy(), A.sum(0))

    @pytest.mark.parametrize("cut", [
        lambda x: x[1:3], lambda x: x[0], lambda x: x[-1, 1:], lambda x: x[:, ::2], lambda x: x[..., None, 2],
        lambda x: x[[3, 0]], lambda x: x.narrow(1, 1, 2), lambda x: x.select(0, 2), lambda x: x.chunk(2)[1],
        lambda x: x.split(3, 1)[0], lambda x: x.unbind(1)[3], lambda x: x.diagonal(), lambda x: x.t()[1:],
        lambda x: x.view(2, 8)[1]])
    @pytest.mark.parametrize("sbps, placement", [(P, row(0, 1, 2)), ((P, P), grid())])
    def test_a_slice_of_a_partial_sum_is_partial(self, cut, sbps, placement):
        x, local = make_global(sbps, placement).requires_grad_(), flow.tensor(A, requires_grad=True)
        y, want = cut(x), cut(local)
        assert set(y.sbp) == {P}
        np.testing.assert_array_equal(y.numpy(), want.numpy())
        (y * y).sum().backward()
        (want * want).sum().backward()
        assert x.grad.sbp == x.sbp
        np.testing.assert_array_equal(x.grad.numpy(), local.grad.numpy())

    @pytest.mark.parametrize("sbp", [B, P, split(0), split(1)])
    @pytest.mark.parametrize("write", [lambda x: x.add_(1), lambda x: x.mul_(x), lambda x: x.zero_(),
                                       lambda x: x[1:3].fill_(9), lambda x: x.t()[0].sub_(2),
                                       lambda x: x.relu_(),
                                       lambda x: x.detach().add_(3), lambda x: x.view(16)[3:5].neg_(),
                                       lambda x: x.__setitem__((0, 1), 4.0)])
    def test_in_place_keeps_the_sbp(self, sbp, write):
        x, local = make_global(sbp), flow.tensor(A)
        view, whole = x[1], x.reshape(16)
        write(x), write(local)
        assert x.sbp == (sbp,)
        np.testing.assert_array_equal(x.numpy(), local.numpy())
        np.testing.assert_array_equal(view.numpy(), local.numpy()[1])
        np.testing.assert_array_equal(whole.numpy(), local.numpy().ravel())

    @pytest.mark.parametrize("sbp", [B, P, split(0), split(1)])
    def test_gradient_through_in_place(self, sbp):
        def f(x):
            y = x * 2
            y[1:3].mul_(x[1:3])
            y += x
            return (y * y).sum()
        x, local = make_global(sbp), flow.tensor(A)
        x.requires_grad = local.requires_grad = True
        f(x).backward(), f(local).backward()
        assert x.grad.sbp == (sbp,)
        np.testing.assert_allclose(x.grad.numpy(), local.grad.numpy())

    def test_backward_uses_the_saved_value_after_a_write(self):
        x = make_global(split(0))
        x.requires_grad = True
        y = x * 1
        z = y * y
        y.zero_()
        z.sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), 2 * A)

    def test_leaf_in_place(self):
        x = make_global(split(0))
        x.requires_grad = True
        with pytest.raises(RuntimeError, match="a leaf Tensor that requires grad"):
            x.add_(1)
        with flow.no_grad():
            x.add_(1)
        assert x.requires_grad and x.is_leaf and x.numpy()[0, 0] == 1

    def test_leaf_gradients_have_the_layout_of_the_leaf(self):
        x, w = make_global(split(0)), make_global(B)
        w.requires_grad = True
        loss = (x @ w).sum()
        assert loss.sbp == (P,) and loss.item() == (A @ A).sum()
        raw, = flow.autograd.grad(loss, w, retain_graph=True)
        assert raw.sbp == (P,)
        loss.backward()
        loss2 = (x @ w).sum()
        loss2.backward()
        assert w.grad.sbp == (B,)
        np.testing.assert_allclose(w.grad.numpy(), 2 * A.T @ np.ones((4, 4)))

    def test_second_derivative(self):
        x, local = make_global(split(0)), flow.tensor(A)
        for t in (x, local):
            t.requires_grad = True
            g, = flow.autograd.grad((t ** 3).sum(), t, create_graph=True)
            (g * g).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), local.grad.numpy())

    def test_hooks_and_dropout(self):
        flow.manual_seed(1)
        want = flow.nn.functional.dropout(flow.tensor(A), 0.5).numpy()
        x = make_global(split(0))
        x.requires_grad = True
        seen = []
        x.register_hook(lambda g: seen.append(g.sbp))
        flow.manual_seed(1)
        y = flow.nn.functional.dropout(x, 0.5)
        y.sum().backward()
        assert y.numpy().tolist() == want.tolist() and len(seen) == 1

    def test_repr_shows_placement_and_sbp(self):
        assert repr(flow.ones(1, 6, placement=row(0, 1), sbp=split(1))) == (
            "tensor([[1., 1., 1., 1., 1., 1.]],\n       placement=flowedu.placement(type=\"cpu\", "
            "ranks=[0, 1]),\n       sbp=(flowedu.sbp.split(dim=1),), dtype=flowedu.float32)")

    def test_one_device_behaves_like_a_local_tensor(self):
        a = flow.ones(4, 4, placement=row(0), sbp=B)
        b = a @ a + a.sum() * 2
        assert (b.is_global and b.placement == row(0)
                and b.to_local().numpy().tolist() == np.full((4, 4), 36).tolist())
        a += 1
        assert a.is_global and a.numpy()[0, 0] == 2
        with pytest.raises(RuntimeError, match="two placements"):
            a + flow.ones(4, 4, placement=row(1), sbp=B)
        with pytest.raises(RuntimeError, match="inconsistent"):
            a + flow.tensor(A)


class TestRandomAndModules:
    @pytest.mark.parametrize("fill", [
        lambda x: x.normal_(), lambda x: x.uniform_(-1, 1), lambda x: flow.nn.init.kaiming_uniform_(x),
        lambda x: flow.nn.init.xavier_normal_(x), lambda x: flow.nn.init.trunc_normal_(x),
        lambda x: x.bernoulli_(0.5),
        lambda x: flow.nn.init.orthogonal_(x), lambda x: flow.nn.init.constant_(x, 3.0)])
    @pytest.mark.parametrize("sbp", [split(0), B])
    def test_filling_in_place(self, fill, sbp):
        x, local = flow.zeros(4, 6, placement=row(0, 1), sbp=sbp), flow.zeros(4, 6)
        flow.manual_seed(5)
        fill(local)
        flow.manual_seed(5)
        fill(x)
        assert x.sbp == (sbp,)
        np.testing.assert_allclose(x.numpy(), local.numpy(), rtol=1e-5, atol=1e-6)

    def test_a_module_becomes_global_and_local_again(self):
        m = flow.nn.Linear(4, 2)
        old, weight = m.weight, m.weight.numpy().copy()
        assert m.to_global(row(0, 1), split(0)) is m and m.weight is old
        assert tuple(m.weight.shape) == (4, 4) and isinstance(m.weight, flow.nn.Parameter)
        assert m.weight.numpy().tolist() == np.r_[weight, weight].tolist() and m.weight.requires_grad
        with pytest.raises(RuntimeError, match="which shard"):
            m.to_local()
        one = flow.nn.Linear(4, 2).to_global(row(2), B).to_local()
        assert one.weight.is_local and one.weight.requires_grad

    def test_batch_norm_counts_and_averages(self):
        m, local = flow.nn.BatchNorm1d(4), flow.nn.BatchNorm1d(4)
        m.to_global(row(0, 1), B)
        for _ in range(3):
            m(make_global(split(0))), local(flow.tensor(A))
        assert m.num_batches_tracked.item() == 3
        np.testing.assert_allclose(m.running_mean.numpy(), local.running_mean.numpy(), rtol=1e-6)

    def test_clipping_and_copies(self):
        m = flow.nn.Linear(4, 4).to_global(row(0, 1), B)
        m.weight.data = m.weight.data.to_global(sbp=split(0))
        twin = copy.deepcopy(m)
        assert twin.weight.sbp == (split(0),) and twin.weight is not m.weight
        m(make_global(split(0))).sum().backward()
        before = np.sqrt(sum((p.grad.numpy() ** 2).sum() for p in m.parameters()))
        norm = flow.nn.utils.clip_grad_norm_(m.parameters(), 1.0)
        after = np.sqrt(sum((p.grad.numpy() ** 2).sum() for p in m.parameters()))
        assert norm.item() == pytest.approx(before, rel=1e-5) and after == pytest.approx(1.0, rel=1e-4)
        assert m.weight.grad.sbp == (split(0),)

    @pytest.mark.parametrize("make", [lambda ps: flow.optim.LAMB(ps, lr=0.1)])
    def test_rules_that_need_a_whole_parameter_raise(self, make):
        w = flow.ones(4, 4, placement=row(0, 1), sbp=split(0), requires_grad=True)
        w.sum().backward()
        with pytest.raises(RuntimeError, match="needs the norm of a whole parameter"):
            make([w]).step()

    def test_a_custom_function(self):
        class Double(flow.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, dy):
                x, = ctx.saved_tensors
                return 2 * x * dy
        x = make_global(split(0))
        x.requires_grad = True
        Double.apply(x).sum().backward()
        assert x.grad.numpy().tolist() == (2 * A).tolist() and x.grad.sbp == (split(0),)


class TestExplain:
    def test_explain_prints_layouts_bytes_and_the_reason(self, capsys):
        x, w = make_global(split(0)), make_global(B)
        flow.explain(x @ w)
        said = capsys.readouterr().out
        assert "-> a=S(0), b=B -> y=S(0): 0 bytes" in said and "because: the fewest bytes" in said

    def test_explain_of_a_given_layout_names_no_alternative(self, capsys):
        flow.explain(make_global(split(0)))
        flow.explain(flow.ones(2))
        assert "as it was asked for" in (said := capsys.readouterr().out) and "a local tensor" in said

    @pytest.mark.parametrize("target", [B, split(0), split(1)])
    def test_explain_of_a_boxed_value_prints_its_route(self, target, capsys):
        partial = make_global(split(1)) @ make_global(split(0))
        assert partial.sbp == (flow.sbp.partial_sum,)
        flow.explain(partial.to_global(sbp=target))
        text, route = capsys.readouterr().out, flow.boxing.route(partial, sbp=target)
        assert f"{route.name} of partial sums" in text and f"{route.bytes} bytes" in text

    def test_the_gradient_of_data_parallel_training(self, capsys):
        x, w = make_global(split(0)), make_global(B)
        w.requires_grad = True
        (x @ w).square().sum().backward()
        flow.explain(w.grad)
        assert "all-reduce of partial sums" in capsys.readouterr().out

    def test_explain_of_a_function_lists_its_ops(self, capsys):
        flow.explain(lambda x: (x @ make_global(split(0))).relu(), make_global(split(0)))
        said = capsys.readouterr().out
        assert "matmul" in said and "relu" in said and "2 ops, " in said and " moved between devices" in said

    def test_strict_mode_refuses_inputs_that_need_boxing(self):
        with flow.boxing.strict(), pytest.raises(RuntimeError, match="a is S\\(0\\) but b is S\\(0\\)") as e:
            make_global(split(0)) @ make_global(split(0))
        assert "b=B -> y=S(0)" in str(e.value) and "box a to S(1) (32 bytes)" in str(e.value)
        make_global(split(0)) @ make_global(split(0))

    def test_the_rule_chooses_between_signatures(self):
        with flow.boxing.rule("oneflow"):
            assert (make_global(split(0)) + make_global(B)).sbp == (B,)
        assert (make_global(split(0)) + make_global(B)).sbp == (split(0),)
        with pytest.raises(RuntimeError, match="no such rule"):
            flow.boxing.rule("mine")

    def test_a_route_has_bytes_messages_and_a_drawing(self, tmp_path):
        r = flow.boxing.route(make_global(split(0)), sbp=B)
        assert r.bytes == 64 and r.name == "all-gather" and sorted(r.messages()) == [(0, 1, 32), (1, 0, 32)]
        r.draw(tmp_path / "a.svg")
        assert (tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<svg")
        s = flow.boxing.route((4, 4), row(2, 3), B, src=(grid(), [P, split(1)]))
        assert s.bytes > 0 and "reduce" in s.describe()
        with pytest.raises(RuntimeError, match="a local tensor"):
            flow.boxing.route(flow.ones(4), sbp=B)
        with pytest.raises(RuntimeError, match="where is it now"):
            flow.boxing.route((4, 4), row(0, 1), B)


@pytest.mark.parametrize("sbp", [B, P, split(0), split(1)])
@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, float("inf"), float("-inf"), 0.0])
def test_the_returned_gradient_norm_is_broadcast(sbp, order):
    local = flow.tensor(A, requires_grad=True)
    x = make_global(sbp).requires_grad_()
    norms = []
    for t in local, x:
        (t * t).sum().backward()
        norms.append(flow.nn.utils.clip_grad_norm_(t, 0.5, order))
    assert norms[1].sbp == (B,)
    np.testing.assert_allclose(norms[1].to_local(rank=1).numpy(), norms[0].numpy(), rtol=1e-5)
    np.testing.assert_allclose(x.grad.numpy(), local.grad.numpy(), rtol=1e-5)


def test_zero_gradients_have_the_layout_of_the_input():
    x = flow.ones(4, 3, placement=flow.placement("cpu", [0, 1]), sbp=flow.sbp.split(0)).requires_grad_()
    (g,) = flow.grad(flow.relu(x).sum(), [x], create_graph=True)
    (h,) = flow.grad(g.sum(), [x], materialize_grads=True, allow_unused=True)
    assert h.is_global and h.placement == x.placement and not h.numpy().any()
