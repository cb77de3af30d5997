"""Ranks that are threads draw random numbers like processes: the draws of one rank do not depend on the
timing of others.
"""
import numpy as np

import flowedu as flow

SHAPE = (256, 512)              # large: the kernel runs concurrently with other threads


def draw_random_tensors():
    flow.manual_seed(3)
    return [f.numpy() for _ in range(3) for f in (flow.rand(*SHAPE), flow.randn(*SHAPE),
                                                  flow.randint(0, 9, SHAPE))]


def test_all_ranks_draw_the_same_as_a_single_one():
    want = draw_random_tensors()
    for _ in range(5):
        for rank, got in enumerate(flow.distributed.spawn(draw_random_tensors, 4)):
            for i, (a, b) in enumerate(zip(got, want)):
                np.testing.assert_array_equal(a, b, err_msg=f"rank {rank}, draw {i}")


def test_ranks_draw_different_rows():
    def program():
        flow.manual_seed(flow.env.get_rank())
        return flow.rand(*SHAPE).numpy()
    flow.manual_seed(7)
    here = flow.rand(3).numpy()
    flow.manual_seed(7)
    parts = flow.distributed.spawn(program, 3)
    assert len({p.tobytes() for p in parts}) == 3
    np.testing.assert_array_equal(flow.rand(3).numpy(), here)  # and do not affect this thread's generator
