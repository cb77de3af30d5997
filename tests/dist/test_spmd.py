"""Global tensors where every rank is a separate thread or process: each test's program runs on every rank.

On threads; under the launcher (tests/dist/test_mpi.py) on processes:
python -m flowedu.distributed.launch --nproc_per_node 2 -m pytest tests/dist/test_spmd.py
"""
import numpy as np
import pytest

import flowedu as flow
from flowedu.core.sbp.ranks import current

B, P, split = flow.sbp.broadcast, flow.sbp.partial_sum, flow.sbp.split
PROCESSES = current().size if current().name == "mpi" else 0


@pytest.fixture(params=[PROCESSES] if PROCESSES else [2, 4])
def on_ranks(request):
    """Provide on_ranks(program): run `program(rank, size)` on every rank; return all results, or that of this
    process.
    """
    k = request.param

    def run(program):
        if PROCESSES:
            return [program(current().rank, k)]
        return flow.distributed.spawn(lambda: program(current().rank, k), k)
    return run


def everyone(k=None):
    return flow.placement("cpu", range(k or current().size))


def test_ranks(on_ranks):
    def program(rank, size):
        assert flow.env.get_rank() == rank and flow.env.get_world_size() == size
        assert flow.placement.all("cpu") == flow.env.all_device_placement("cpu") == everyone(size)
        flow.ones(2, 3).check_meta_consistency()
        with pytest.raises(RuntimeError, match="the ranks' tensors differ"):
            flow.ones(2 + rank).check_meta_consistency()
    on_ranks(program)


def test_shards_of_different_sizes_become_one(on_ranks):
    def program(rank, size):
        n = 2 * size + 1                                       # balanced: the first rank has one more
        rows = np.array_split(np.arange(n * 3, dtype=np.float32).reshape(n, 3), size)[rank]
        x = flow.tensor(rows).to_global(everyone(), split(0))
        assert tuple(x.shape) == (n, 3) and x.to_local().numpy().tolist() == rows.tolist()
        np.testing.assert_array_equal(x.numpy(), np.arange(n * 3).reshape(n, 3))
    on_ranks(program)


def test_mismatched_shards_raise_on_every_rank(on_ranks):
    def program(rank, size):
        with pytest.raises(RuntimeError, match="same size, but got at least two size"):
            flow.ones(2, 3 + (rank == 0)).to_global(everyone(), split(0))
        with pytest.raises(RuntimeError, match="must be same or match balanced split"):
            flow.ones(1 + rank, 3).to_global(everyone(), split(0))
        with pytest.raises(RuntimeError, match="same dtype, but found at least two"):
            flow.ones(2, dtype=flow.float32 if rank else flow.float64).to_global(everyone(), B)
        with pytest.raises(RuntimeError, match="rank must be less than world size"):
            flow.ones(2).to_global(flow.placement("cpu", [0, size]), B)
    on_ranks(program)


def test_broadcast_uses_the_values_of_the_first_rank(on_ranks):
    def program(rank, size):
        x = flow.tensor([float(rank), 5.0]).to_global(everyone(), B)
        assert x.to_local().tolist() == [0.0, 5.0]
        if size == 4:  # on a grid: of the first along the broadcast axis
            grid = flow.placement("cpu", [[0, 1], [2, 3]])
            y = flow.tensor([float(rank)]).to_global(grid, (split(0), B))
            assert y.tolist() == [0.0, 2.0] and y.to_local().item() == rank // 2 * 2
    on_ranks(program)


@pytest.mark.parametrize("sbp, grads", [(split(0), lambda r, v: 2 * v), (P, lambda r, v: None),
                                        (B, lambda r, v: 2 * v if r == 0 else 0)])
def test_gradients_have_the_dual_layout(on_ranks, sbp, grads):
    """For (x * x).sum(): S: each rank its own part; B: the first rank, zeros elsewhere; P: the whole gradient
    on every rank.
    """
    def program(rank, size):
        value = rank + 1.0
        x = flow.tensor([value], requires_grad=True)
        g = x.to_global(everyone(), sbp)
        (g * g).sum().backward()
        want = 2 * sum(range(1, size + 1)) if sbp is P else grads(rank, 1.0 if sbp is B else value)
        assert x.grad.is_local and x.grad.item() == want
    on_ranks(program)


@pytest.mark.parametrize("sbp", [split(0), B])
def test_gradient_of_a_shard(on_ranks, sbp):
    """From global to local: gradients of a broadcast value are summed over the ranks, those of a shard stay
    on their rank.
    """
    def program(rank, size):
        x = flow.ones(size, placement=everyone(), sbp=sbp, requires_grad=True)
        (x.to_local() * (rank + 1.0)).sum().backward()
        total = size * (size + 1) / 2
        assert x.grad.sbp == (sbp,)
        assert x.grad.tolist() == ([total] * size if sbp is B else [float(r + 1) for r in range(size)])
    on_ranks(program)


def test_random_numbers_do_not_depend_on_earlier_local_draws(on_ranks):
    def program(rank, size):
        flow.manual_seed(rank)
        flow.rand(3 + rank)
        return (flow.randn(4, 4, placement=everyone(), sbp=B).to_local().tolist(),
                flow.randint(0, 99, (2 * size,), placement=everyone(), sbp=split(0)).tolist())
    found = on_ranks(lambda rank, size: flow.comm.all_gather is not None and program(rank, size))
    assert all(f == found[0] for f in found)


@pytest.mark.parametrize("dtype", [flow.int32, flow.float64, flow.bool, flow.bfloat16])
def test_a_rank_outside_of_the_placement_has_shape_and_dtype(on_ranks, dtype):
    def program(rank, size):
        x = flow.ones(4, 3).to(dtype) if rank == 1 else flow.zeros(1)
        for sbp in B, split(0), P:
            y = x.to_global(flow.placement("cpu", [1]), sbp)
            y.check_meta_consistency()
            assert y.shape == (4, 3) and y.dtype is dtype
        z = y.to_global(everyone(), B)
        z.check_meta_consistency()
        np.testing.assert_array_equal(z.to_local().float().numpy(), np.ones((4, 3)))
    on_ranks(program)


def test_ranks_outside_the_placement(on_ranks):
    def program(rank, size):
        x = flow.tensor([[1.0, 2.0], [3.0, 4.0]], placement=flow.placement("cpu", [1]), sbp=B,
                        requires_grad=True)
        y = (x @ x).sum()
        y.backward()
        assert y.item() == 54 and "placement" in repr(y)
        assert x.grad.tolist() == [[7.0, 11.0], [9.0, 13.0]]
        assert tuple(x.to_local().shape) == ((2, 2) if rank == 1 else (0, 0))
        moved = x.to_global(flow.placement("cpu", [0]), B)
        assert (tuple(moved.to_local().shape) == ((2, 2) if rank == 0 else (0, 0))
                and moved.tolist() == x.tolist())
    on_ranks(program)


def make_mlp():
    flow.manual_seed(2)
    return flow.nn.Sequential(flow.nn.Linear(6, 8), flow.nn.Tanh(), flow.nn.Linear(8, 4))


RNG = np.random.default_rng(1)
X, Y = RNG.standard_normal((8, 6)).astype(np.float32), RNG.integers(0, 4, 8)


def train_model(model, x, y, steps=5):
    optimizer, losses = flow.optim.Adam(model.parameters(), lr=0.05), []
    for _ in range(steps):
        loss = flow.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("kind", ["data", "model"])
def test_training_equals_one_device(on_ranks, kind):
    want = train_model(make_mlp(), flow.tensor(X), flow.tensor(Y))

    def program(rank, size):
        model = make_mlp().to_global(everyone(), B)
        if kind == "model":  # columns of the first layer, rows of the second
            for p, sbp in zip(model.parameters(), (split(0), split(0), split(1), B)):
                p.data = p.data.to_global(sbp=sbp)
        place = {"placement": everyone(), "sbp": split(0) if kind == "data" else B}
        return train_model(model, flow.tensor(X, **place), flow.tensor(Y, **place))
    for losses in on_ranks(program):
        np.testing.assert_allclose(losses, want, rtol=1e-5)


def test_checkpoints_load_under_another_layout(on_ranks, tmp_path):
    # under the launcher, the ranks need one path: rank 0's
    def program(rank, size):
        path = current().comm(rank).all_gather_object(str(tmp_path))[0] + "/state"
        model = make_mlp().to_global(everyone(), B)
        for p in model.parameters():
            p.data = p.data.to_global(sbp=split(0))
        optimizer = flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        model(flow.tensor(X, placement=everyone(), sbp=B)).sum().backward()
        optimizer.step()
        flow.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, path)
        state = flow.load(path, global_src_rank=size - 1)
        assert state["epoch"] == 3
        weight = state["model"]["0.weight"]
        assert weight.placement == flow.placement("cpu", [size - 1]) and weight.sbp == (B,)
        other = make_mlp().to_global(everyone(), B)
        other.load_state_dict(state["model"])
        again = flow.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
        again.load_state_dict(state["optimizer"])
        for p, q in zip(model.parameters(), other.parameters()):
            assert q.sbp == (B,) and again.state[q]["momentum_buf"].sbp == (B,)
            np.testing.assert_array_equal(p.numpy(), q.numpy())
            np.testing.assert_array_equal(optimizer.state[p]["momentum_buf"].numpy(),
                                          again.state[q]["momentum_buf"].numpy())
        local = flow.load(path)["model"]
        one = make_mlp()
        one.load_state_dict(local)
        np.testing.assert_array_equal(one[0].weight.numpy(), weight.numpy())
    on_ranks(program)


def test_an_error_of_the_reading_rank_raises_on_all(on_ranks, tmp_path):
    def program(rank, size):
        with pytest.raises(AssertionError, match="nothing there|doesn't exist"):
            flow.load(tmp_path / "nowhere", global_src_rank=1)
    on_ranks(program)


class Steps(flow.nn.Graph):
    def __init__(self, model, optimizer):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, x):
        loss = self.model(x).sum()
        loss.backward()
        return loss


@pytest.mark.parametrize("source, target", [(split(0), B), (B, split(0))])
def test_a_state_on_one_rank_is_sent_to_all(on_ranks, source, target):
    """Some ranks pass a local state, the others None: all continue with it, in any layout."""
    def program(rank, size):
        def made(sbp):
            flow.manual_seed(2)
            model = flow.nn.Sequential(flow.nn.Linear(3, 4), flow.nn.Tanh()).to_global(everyone(), B)
            for p in model.parameters():
                p.data = p.data.to_global(sbp=sbp)
            return model, Steps(model, flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))

        x = flow.tensor(X[:, :3], placement=everyone(), sbp=B)
        model, graph = made(source)
        for _ in range(2):
            graph(x)
        state = graph.state_dict()
        local = flow.utils.global_view.to_global(state, flow.placement("cpu", [1]), B,
                                                 warn_on_non_tensor_leaf=False)
        local = flow.utils.global_view.to_local(local) if rank == 1 else None
        seen = []

        def layout(whole, t):
            seen.append(t is whole["model"]["0.weight"])
            return B
        state = flow.utils.global_view.to_global(local, flow.placement("cpu", [1]), layout)
        assert sum(seen) == 1 and state["model"]["0.weight"].shape == (4, 3)
        everywhere = flow.utils.global_view.to_global(state, everyone(), B)
        for loaded in state, everywhere:
            other, again = made(target)
            again.load_state_dict(loaded)
            count = again.state_dict()["System-Train-TrainStep"]
            assert count.numpy() == 2 and other[0].weight.sbp == (target,)
            again(x)
            if loaded is state:
                graph(x)
            for p, q in zip(model.parameters(), other.parameters()):
                np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-5)
    on_ranks(program)


def test_states_become_global_and_local(on_ranks):
    def program(rank, size):
        state = {"a": flow.ones(2, 2), "b": [flow.zeros(3), "text"], "c": (1, flow.full((2,), float(rank)))}
        g = flow.utils.global_view.to_global(state, everyone(), lambda s, t: split(0) if t.ndim == 2 else P)
        assert tuple(g["a"].shape) == (2 * size, 2) and g["b"][1] == "text"
        assert g["c"][1].tolist() == [size * (size - 1) / 2] * 2
        back = flow.utils.global_view.to_local(g)
        assert (back["a"].is_local and tuple(back["a"].shape) == (2, 2)
                and back["c"][1].tolist() == [rank, rank])
    on_ranks(program)
