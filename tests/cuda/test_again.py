"""Repeated calls that reuse a recorded launch with other addresses, streams, devices, and seeds, and calls
that cannot be reused.
"""
import gc

import numpy as np
from cuda_common import alone, in_simulator

import flowedu as flow
from flowedu.core.values.dtype import float32
from flowedu.cuda import engine, launch
from flowedu.cuda.again import BASES, ROOM, rehearsed
from flowedu.cuda.launch import Launch
from flowedu.cuda.view import View


def test_addresses_are_distinguished_from_numbers():
    """A number that looks like a placeholder address is recognized as a number, because it is the same in
    both recordings.
    """
    x, y = View(256, float32, (8,)), View(512, float32, (8,))
    odd = BASES[0] + ROOM // 2

    def row(call):
        call.each("fill", 8, odd, call.args[1].pointer + 4, n=8)
        call.clear(call.args[0].pointer, 8)
        call.each("fill", 8, -1, call.work, n=8)

    made = rehearsed(Launch("odd", 2, row, "copy.cu", "uint32_t", "", None), [x, y], (), (), None, False)
    (_, _, form, numbers, places, _), clear, (*_, third, _) = made.steps
    assert places == [(1, 1, 4)] and numbers[0][8:] == odd.to_bytes(8, "little") and form.size == 24
    assert clear[4] == [(0, 0, 0)] and [which for _, which, _ in third] == [2]


def test_launches_that_compute_with_addresses_are_not_cached():
    x = View(256, float32, (8,))

    def row(call):
        call.each("fill", 8, call.args[0].pointer // 2, call.args[0].pointer, n=8)

    assert rehearsed(Launch("half", 2, row, "copy.cu", "uint32_t", "", None), [x], (), (), None,
                     False) is None
    lengths = iter((1, 2))

    def other(call):
        for _ in range(next(lengths)):
            call.clear(call.args[0].pointer, 8)

    assert rehearsed(Launch("changing", 2, other, "copy.cu", "uint32_t", "", None), [x], (), (), None,
                     False) is None


def test_views_with_other_layouts_are_other_calls():
    base = flow.tensor(np.arange(64, dtype=np.float32)).cuda()
    for _ in range(2):
        for first, step in ((0, 1), (1, 1), (2, 3), (4, 1), (3, 1)):
            part = base[first:first + 10 * step:step]
            np.testing.assert_array_equal((part + part).cpu().numpy(),
                                          2 * np.arange(first, first + 10 * step, step))
    square = base.reshape(8, 8)
    for _ in range(2):
        np.testing.assert_array_equal((square + square.t()).cpu().numpy(),
                                      (lambda a: a + a.T)(np.arange(64).reshape(8, 8)))


def test_changing_strides_do_not_fill_the_cache():
    base = flow.ones(40, 40).cuda()
    for k in range(1, 30):
        x = base.as_strided((3, 3), (k, 1))
        assert float((x + x).sum()) == 18
    kept = [e for e in gc.get_objects() if type(e) is engine.Ready and e.row.name == "elementwise"]
    assert kept and max(len(e.again) for e in kept) <= 16


def test_constants_of_resize_live_as_long_as_the_call():
    x = np.random.default_rng(0).standard_normal((1, 1, 4, 4)).astype(np.float32)

    def call(t):
        return flow.nn.functional.interpolate(t, size=(7, 5), mode="bilinear", align_corners=False)

    want = call(flow.tensor(x)).numpy()
    there = flow.tensor(x).cuda()
    np.testing.assert_allclose(call(there).cpu().numpy(), want, rtol=1e-6)
    launch.KEPT.clear()                                    # as if many other calls had evicted it
    gc.collect()
    others = [flow.zeros(64, device="cuda") for _ in range(50)]
    np.testing.assert_allclose(call(there).cpu().numpy(), want, rtol=1e-6)
    assert len(others) == 50


def test_draws_differ_and_repeat():
    for _ in range(2):
        flow.manual_seed(7)
        a, b = flow.rand(9, device="cuda"), flow.rand(9, device="cuda")
        assert not flow.equal(a, b)
        flow.manual_seed(7)
        np.testing.assert_allclose(a.cpu().numpy(), flow.rand(9).numpy(), rtol=1e-6)
        np.testing.assert_allclose(b.cpu().numpy(), flow.rand(9).numpy(), rtol=1e-6)


def test_on_other_streams():
    x = flow.ones(1000, 30).cuda()
    for _ in range(2):
        with flow.cuda.stream(flow.cuda.Stream()) as s:
            # with scratch memory of the stream
            y = flow.linalg.inv(flow.eye(5, device="cuda")).sum() + x.sum(1)[3]
        s.synchronize()
        assert float(y) == 35


@in_simulator
def test_on_several_devices():
    assert alone("""
import flowedu as flow
for k in (0, 1, 0, 2, 1):
    x = flow.ones(20, 3, device=f"cuda:{k}")
    y = (x + x).sum(0) * 2.0
    assert y.device.index == k and y.cpu().numpy().tolist() == [80, 80, 80]
print("right")
""", FLOWEDU_CUDA_DEVICES="3") == "right\n"
