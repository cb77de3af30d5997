"""DistributedDataParallel: ranks with parts of a batch train like one rank with the whole batch."""
import os
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from dist.ranks import SRC, TESTS, launch, mpi
from flowedu import nn
from flowedu.distributed.plain_parallel import average_gradients, same_on_all_ranks
from flowedu.errors import ArgumentError, CommError, DTypeError

WORDS, FEATURES, OUT = 7, 5, 3


class BranchedNet(nn.Module):
    """Model with dense layers, an embedding that a batch uses partly, and a branch that only some ranks
    use.
    """

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(FEATURES, 8)
        self.table = nn.Embedding(WORDS, 8)
        self.branch = nn.Linear(8, 8, bias=False)
        self.never = nn.Linear(2, 2)
        self.last = nn.Linear(8, OUT)

    def forward(self, x, words, branch=False):
        h = (self.first(x) + self.table(words)).relu()
        return self.last(self.branch(h) if branch else h)


def net(rank: int = 0, kind=BranchedNet):
    """Initialize with the same values on rank 0 of any run, and with others elsewhere."""
    m, rng = kind(), np.random.default_rng(5 + rank)
    for p in m.parameters():
        p.data.copy_(flow.tensor(rng.normal(size=tuple(p.shape)).astype("f4") / 2))
    return m


def batch(n: int):
    rng = np.random.default_rng(1)
    return (flow.tensor(rng.normal(size=(n, FEATURES)).astype("f4")), flow.tensor(rng.integers(0, WORDS, n)),
            flow.tensor(rng.normal(size=(n, OUT)).astype("f4")))


def train_on_rank(rank: int, k: int, bucket_size: int = 10, steps: int = 3, accumulate: int = 1):
    """Return the parameters after some steps on the rank's part of the batch; k=1: a plain module on all of
    it.
    """
    m = net(rank) if k == 1 else nn.parallel.DistributedDataParallel(net(rank), bucket_size=bucket_size)
    opt = flow.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    x, words, y = (t[rank * (12 // k):(rank + 1) * (12 // k)] for t in batch(12))
    for _ in range(steps):
        for _ in range(accumulate):
            ((m(x, words) - y) ** 2).mean().backward()
        opt.step()
        opt.zero_grad()
    return [p.numpy().copy() for p in m.parameters()]


def assert_parameters_of_one_process(parameters):
    for got, want in zip(parameters, train_on_rank(0, 1)):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("bucket_size", [1, 3, 10])
def test_parts_train_like_the_whole(k, bucket_size):
    every = flow.distributed.spawn(lambda: train_on_rank(flow.env.get_rank(), k, bucket_size), k)
    for parameters in every:
        assert_parameters_of_one_process(parameters)
        assert all((a == b).all() for a, b in zip(parameters, every[0]))


@given(k=st.integers(1, 4), bucket_size=st.integers(1, 9), accumulate=st.integers(1, 2))
def test_any_number_of_ranks(k, bucket_size, accumulate):
    want = train_on_rank(0, 1, accumulate=accumulate, steps=2)
    for got in flow.distributed.spawn(lambda: train_on_rank(flow.env.get_rank(), k, bucket_size, 2,
                                                            accumulate), k):
        for a, b in zip(got, want):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


@given(k=st.integers(1, 4), bucket_size=st.integers(1, 9), alone=st.booleans())
def test_buckets_average_like_one_message_per_parameter(k, bucket_size, alone):
    """Even if only one rank takes a branch, and ranks start with different values."""
    x, words, y = batch(12)

    def gradients(rank, plain):
        m = net(rank)
        m = same_on_all_ranks(m) if plain else nn.parallel.DistributedDataParallel(m, bucket_size=bucket_size)
        ((m(x[rank:rank + 3], words[rank:rank + 3],
            branch=alone and rank == 0) - y[rank:rank + 3]) ** 2).mean().backward()
        if plain:
            average_gradients(m)
        return {n: np.zeros(tuple(p.shape)) if p.grad is None else p.grad.numpy().copy()
                for n, p in m.named_parameters()}

    for plain, real in zip(on(k, lambda rank: gradients(rank, True)),
                           on(k, lambda rank: gradients(rank, False))):
        assert list(plain) == list(real)
        for name in plain:
            np.testing.assert_allclose(real[name], plain[name], rtol=1e-5, atol=1e-6, err_msg=name)


def on(k, f):
    return flow.distributed.spawn(lambda: f(flow.env.get_rank()), k)


def test_parameters_unused_on_some_or_all_ranks():
    x, words, _ = batch(4)

    def f(rank):
        m = nn.parallel.DistributedDataParallel(net(), bucket_size=2)
        m(x, words, branch=rank == 1).sum().backward()
        return {n: p.grad.numpy().copy() for n, p in m.named_parameters()}

    alone = net()
    alone(x, words, branch=True).sum().backward()
    for grads in on(2, f):
        np.testing.assert_allclose(grads["branch.weight"], alone.branch.weight.grad.numpy() / 2, rtol=1e-5)
        assert (grads["never.weight"] == 0).all()


def test_gradients_are_averaged_over_ranks():
    def f(rank):
        m = nn.Linear(1, 1, bias=False)
        assert nn.parallel.DistributedDataParallel(m) is m
        m(flow.ones(1, 1) * (rank + 1)).sum().backward()
        return m.weight.grad.item()

    assert on(2, f) == [1.5, 1.5]


def test_frozen_parameters_and_no_grad():
    def f(rank):
        m = nn.parallel.DistributedDataParallel(net(), bucket_size=2)
        m.first.weight.requires_grad_(False)
        x, words, _ = batch(2)
        with flow.no_grad():
            assert not m(x, words).requires_grad
        m(x * rank, words).sum().backward()
        return m.first.weight.grad, m.last.weight.grad.numpy().tolist()

    (a, x), (b, y) = on(2, f)
    assert a is None and b is None and x == y


Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize("pack", [lambda y: [y, y * 2], lambda y: {"a": y, "b": (y * 2, 3)},
                                  lambda y: Pair(y, y * 2),
                                  lambda y: (y, [y, {"z": y}])], ids=["list", "dict", "namedtuple", "twice"])
def test_gradients_flow_through_nested_outputs(pack):
    class Packed(nn.Linear):
        def forward(self, x):
            return pack(super().forward(x))

    def total(out):
        if isinstance(out, flow.Tensor):
            return out.sum()
        inside = out.values() if isinstance(out, dict) else out
        return sum((total(x) for x in inside if not isinstance(x, int)), start=flow.zeros(()))

    def f(rank):
        m = nn.parallel.DistributedDataParallel(Packed(2, 2))
        out = m(flow.ones(3, 2) * rank)
        total(out).backward()
        return type(out), m.weight.grad.numpy().tolist()

    (kind, a), (_, b) = on(2, f)
    assert a == b and np.ptp(a) == 0 and a[0][0] > 0 and kind is type(pack(flow.ones(1)))


def test_buffers_follow_rank_0():
    def f(rank, **options):
        m = nn.parallel.DistributedDataParallel(nn.BatchNorm1d(3), **options)
        for _ in range(2):
            m(flow.ones(4, 3) * rank)
        return m.running_mean.numpy().tolist()

    a, b = on(2, f)
    assert a == [0.0] * 3 and np.allclose(b, 0.1)                # those of rank 0, one step later
    a, b = on(2, lambda r: f(r, broadcast_buffers=False))
    assert a == [0.0] * 3 and np.allclose(b, 0.19)


def test_rank_0_may_evaluate_alone():
    def f(rank):
        m = nn.parallel.DistributedDataParallel(nn.BatchNorm1d(3)).eval()
        return m(flow.ones(2, 3)).shape if rank == 0 else None

    assert on(2, f) == [(2, 3), None]


def test_invalid_models_and_arguments_are_refused():
    with pytest.raises(CommError, match="the ranks' modules differ") as e:
        on(2, lambda r: nn.parallel.DistributedDataParallel(nn.Linear(2, 2 + r)))
    assert "'weight', [3, 2]" in str(e.value) and "'weight', [2, 2]" in str(e.value)
    with pytest.raises(ArgumentError, match="bucket_size"):
        nn.parallel.DistributedDataParallel(nn.Linear(2, 2), bucket_size=0)
    with pytest.raises(DTypeError, match="parameter weight has another dtype"):
        nn.parallel.DistributedDataParallel(nn.Linear(2, 2).half())


def test_a_rank_that_skips_backward_is_reported():
    def f(rank):
        m = nn.parallel.DistributedDataParallel(nn.Linear(2, 2))
        y = m(flow.ones(1, 2)).sum()
        if rank == 0:
            y.backward()

    with pytest.raises(CommError, match="rank 1 has finished"):
        on(2, f)


@mpi
@pytest.mark.parametrize("k", [2, 3])
def test_ranks_may_be_processes(tmp_path, k):
    said = launch(tmp_path, Path(__file__).read_text("utf-8"), k,
                  env={"PYTHONPATH": os.pathsep.join([SRC, TESTS])})
    assert said.code == 0 and said.out.split() == ["ok"] * k, said.err


if __name__ == "__main__":
    assert_parameters_of_one_process(train_on_rank(flow.env.get_rank(), flow.env.get_world_size()))
    print("ok", flush=True)
