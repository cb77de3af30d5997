"""flow.random.CoinFlip: the given probability, reproducibility, and independence of ops and of the runs of a
job.
"""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
import flowedu.typing as tp
from common import fresh_session, job, refused  # noqa: F401
from flowedu.errors import ArgumentError
from flowedu.ops.host import forget_states


@given(st.integers(1, 50), st.integers(0, 2**32))
def test_coins_follow_the_seed(n, seed):
    forget_states()
    first = flow.random.CoinFlip(n, seed, 0.3).numpy()
    forget_states()
    assert np.array_equal(flow.random.CoinFlip(n, seed, 0.3).numpy(), first)
    assert first.dtype == np.int8 and first.shape == (n,) and set(first) <= {0, 1}
    assert not flow.random.CoinFlip(n, probability=0.0).numpy().any()
    assert flow.random.CoinFlip(n, probability=1).numpy().all()


def test_coins_have_the_given_probability_and_follow_the_global_seed():
    flow.random.seed(1)
    a, b = (flow.random.CoinFlip(10_000, probability=0.3).numpy() for _ in range(2))
    assert abs(a.mean() - 0.3) < 0.025 and not np.array_equal(a, b)      # 5 standard deviations
    flow.random.seed(1)
    assert np.array_equal(flow.random.CoinFlip(10_000, probability=0.3).numpy(), a)
    for wrong in (dict(batch_size=0), dict(probability=1.5)):
        with refused(ArgumentError, "CoinFlip", next(iter(wrong))):
            flow.random.CoinFlip(**wrong)


@pytest.mark.parametrize("eager_job", [False, True], ids=["no job", "eager job"])
def test_setting_the_global_seed_restarts_eager_ops(eager_job):
    """Includes ops that keep a generator: coins with their own seed, and random image crops."""
    flow.enable_eager_execution(eager_job)
    picture = np.arange(3000, dtype=np.uint8).reshape(50, 20, 3)

    def draw():
        crop = flow.image.random_crop(flow.TensorBuffer([picture]))
        found.append([flow.random.CoinFlip(60).numpy().tobytes(),
                      flow.random.CoinFlip(60, 3).numpy().tobytes(),
                      getattr(crop, "value", crop)[0].tobytes()])

    found = []
    call = job(draw, returns=None) if eager_job else draw

    def draw_again():
        return call() or found[-1]

    runs = []
    for seed in (1, 1, 2):
        flow.random.seed(seed)
        runs.append([draw_again(), draw_again()])
    assert runs[0] == runs[1], "the same seed, the same numbers"
    for i, same in enumerate((False, True, False)):
        assert (runs[0][0][i] == runs[2][0][i]) == same, "a seed of its own counts more than the global one"
        assert runs[0][0][i] != runs[0][1][i], "and every call draws other numbers"


def test_a_compiled_job_keeps_its_seeds():
    def coins(reseed):
        flow.clear_default_session()
        flow.random.seed(4)
        task = job(lambda x: flow.cast(flow.random.CoinFlip(40), flow.float32) + x, np.zeros(1, np.float32))
        found = []
        for _ in range(4):
            found.append(task(np.zeros(1, np.float32)).tolist())
            if reseed:
                flow.random.seed(4)
        return found

    assert coins(True) == coins(False)


def test_coins_of_a_job_differ_from_run_to_run_and_op_to_op():
    def runs(draws_between):
        flow.clear_default_session()
        flow.random.seed(4)

        @flow.global_function()
        def toss() -> tuple[tp.Numpy, tp.Numpy]:
            first, second = flow.random.CoinFlip(40), flow.random.CoinFlip(40)
            assert first.op_name == "CoinFlip" != second.op_name and first.dtype is flow.int8
            return first, second

        found = []
        for _ in range(5):
            found += [coins.tolist() for coins in toss()]
            for _ in range(draws_between):
                flow.random.CoinFlip(3)
        return found

    first = runs(0)
    assert len({tuple(c) for c in first}) == 10
    assert runs(3) == first                     # unaffected by random numbers drawn elsewhere
