"""DistributedDataParallel.join: ranks with different numbers of batches finish with equal parameters."""
import importlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import mock, nn
from flowedu.errors import CommError


@pytest.fixture
def torch():
    with mock.enable("torch"):
        yield importlib.import_module("torch")


class Joins(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.norm, self.two = nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)

    def forward(self, x):
        return self.two(self.norm(self.one(x)))


def joining(ddp, batches, **options):
    """Return parameters and buffers of a rank with `batches[rank]` batches, every other one in no_sync on
    request.
    """
    r = flow.env.get_rank()
    flow.manual_seed(r)
    m = ddp(Joins(), broadcast_buffers=options.pop("buffers", True))
    opt = flow.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    micro = options.pop("micro", 1)
    with m.join(**options):
        for i in range(batches[r]):
            x = flow.tensor(np.random.default_rng(100 * r + i).normal(size=(4, 3)).astype("f4"))
            if (i + 1) % micro:
                with m.no_sync():
                    m(x).sin().sum().backward()
                continue
            m(x).sin().sum().backward()
            opt.step()
            opt.zero_grad()
    return [x.detach().numpy().copy() for x in (*m.parameters(), *m.buffers())]


def as_one(batches, by_all: bool):
    """Run the same steps in one process: each step has the gradients of the active ranks. Without buffers."""
    flow.manual_seed(0)
    m, k = Joins(), len(batches)
    opt = flow.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)
    for i in range(max(batches)):
        working = [r for r in range(k) if i < batches[r]]
        for r in working:
            x = flow.tensor(np.random.default_rng(100 * r + i).normal(size=(4, 3)).astype("f4"))
            (m(x).sin().sum() / (k if by_all else len(working))).backward()
        opt.step()
        opt.zero_grad()
    return [p.detach().numpy().copy() for p in m.parameters()]


@given(batches=st.lists(st.integers(0, 4), min_size=1, max_size=4), by_all=st.booleans(),
       buffers=st.booleans(), micro=st.sampled_from([1, 1, 2]))
def test_ranks_with_different_numbers_of_batches(batches, by_all, buffers, micro):
    """All finish with the same values, which equal those of one process that sums the gradients of the active
    ranks.
    """
    with mock.enable("torch"):
        ddp = importlib.import_module("torch.nn.parallel").DistributedDataParallel
        batches = [micro * b for b in batches]
        got = flow.distributed.spawn(lambda: joining(ddp, batches, divide_by_initial_world_size=by_all,
                                                     buffers=buffers, micro=micro), len(batches))
    for mine in got:
        assert all(np.array_equal(a, b) for a, b in zip(mine, got[0], strict=True))
    if micro == 1:
        for a, b in zip(got[0], as_one(batches, by_all)):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_an_early_end_can_raise_on_every_rank(torch):
    ddp, said = torch.nn.parallel.DistributedDataParallel, []

    def f():
        try:
            joining(ddp, [3, 1, 2], throw_on_early_termination=True)
        except CommError as e:
            said.append(str(e))

    flow.distributed.spawn(f, 3)
    assert len(said) == 3 and all("2 of 3 ranks with one more" in t for t in said)
    flow.distributed.spawn(lambda: joining(ddp, [2, 2], throw_on_early_termination=True, enable=True), 2)


def test_a_rank_that_raises_inside_join_ends_all(torch):
    ddp = torch.nn.parallel.DistributedDataParallel

    def f():
        m = ddp(Joins())
        with m.join():
            for i in range(3):
                if flow.env.get_rank() == 1 and i == 1:
                    raise ValueError("mine")
                m(flow.ones(4, 3)).sum().backward()

    with pytest.raises(ValueError, match="mine"):
        flow.distributed.spawn(f, 2)
