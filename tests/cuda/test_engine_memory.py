"""Memory, streams, several devices and errors of tensors on cuda."""
import gc

import pytest
from cuda_common import alone, in_simulator

import flowedu as flow
from flowedu.core.ops.define import REGISTRY
from flowedu.errors import KernelError


# ---- memory
def test_memory_of_a_loop_does_not_grow():
    x = flow.ones(1000, device="cuda")
    flow.cuda.empty_cache()

    def step():
        w = flow.ones(1000, device="cuda", requires_grad=True)
        ((w * x).exp() + 1).sum().backward()

    for _ in range(3):
        step()
    gc.collect()
    live, reserved = flow.cuda.memory_allocated(), flow.cuda.memory_reserved()
    for _ in range(20):
        step()
    gc.collect()
    assert (flow.cuda.memory_allocated(), flow.cuda.memory_reserved()) == (live, reserved)
    assert flow.cuda.max_memory_allocated() > live
    flow.cuda.empty_cache()
    assert flow.cuda.memory_reserved() < reserved and flow.cuda.memory_allocated() == live


def test_memory_is_counted():
    flow.cuda.empty_cache()
    flow.cuda.reset_peak_memory_stats()
    before, stats = flow.cuda.memory_allocated(), flow.cuda.memory_stats()
    x = flow.empty(1 << 18, device="cuda")
    assert flow.cuda.memory_allocated() - before == 1 << 20
    y = x.view(-1)[5:]
    del x
    assert flow.cuda.memory_allocated() - before == 1 << 20 and y.storage_offset() == 5
    del y
    assert flow.cuda.memory_allocated() == before and flow.cuda.max_memory_allocated() >= before + (1 << 20)
    after = flow.cuda.memory_stats()
    assert (after["allocation.all.allocated"] > stats["allocation.all.allocated"]
            and after["num_ooms"] == stats["num_ooms"])
    assert (flow.cuda.mem_get_info()[1] > 1 << 20
            and flow.cuda.max_memory_reserved() >= flow.cuda.memory_reserved())


OUT_OF_MEMORY = """
import flowedu as flow
x = flow.ones(1 << 20, device="cuda")
kept = []
try:
    while True: kept.append(x + 1)
except flow.cuda.OutOfMemoryError as e:
    print(str(e).splitlines()[0], len(kept) < 16, isinstance(e, MemoryError))
kept.clear()
y = (x + 1).sum().item()
# of another class: the cached blocks are given back first
big = flow.empty(3 << 20, device="cuda")
print(y, flow.cuda.memory_stats()["num_ooms"], flow.cuda.memory_stats()["num_alloc_retries"] > 1)
"""


@in_simulator
def test_out_of_memory_can_be_survived():
    said = alone(OUT_OF_MEMORY, FLOWEDU_CUDA_MEMORY="32", FLOWEDU_CUDA_CHECK="0")
    assert said == "CUDA out of memory True True\n2097152.0 1 True\n"


@pytest.mark.parametrize("script", [
    "x = flow.ones(3, device='cuda'); y = (x + 1).sum()",
    "s = flow.cuda.Stream(); e = flow.cuda.Event(); e.record(s)",
    "m = flow.nn.Linear(2, 2).cuda(); l = m(flow.ones(1, 2, device='cuda')).sum(); l.backward(); "
    "flow.cuda.empty_cache()"])
def test_a_process_exits_cleanly(script):
    assert alone(f"import flowedu as flow\n{script}\nprint('done')") == "done\n"


# ---- streams
def test_streams_and_events():
    assert (flow.cuda.current_stream() == flow.cuda.default_stream()
            and flow.cuda.current_stream().cuda_stream == 0)
    s, start, end = (flow.cuda.Stream(), flow.cuda.Event(enable_timing=True),
                     flow.cuda.Event(enable_timing=True))
    x = flow.ones(100, device="cuda")
    with flow.cuda.stream(s):
        assert flow.cuda.current_stream() == s and s.cuda_stream != 0
        start.record()
        y = x * 2
        end.record()
    assert flow.cuda.current_stream() == flow.cuda.default_stream()
    flow.cuda.current_stream().wait_stream(s)
    assert (y + 1).sum().item() == 300
    end.synchronize()
    assert end.query() and s.query() and start.elapsed_time(end) >= 0
    y.record_stream(flow.cuda.current_stream())
    del y
    s.synchronize()
    flow.cuda.synchronize()
    with flow.cuda.stream(None):
        pass


def test_memory_of_a_stream_stays_with_it():
    s = flow.cuda.Stream()
    with flow.cuda.stream(s):
        a = flow.empty(1000, device="cuda")
        address = a.data_ptr()
        del a
    b = flow.empty(1000, device="cuda")
    with flow.cuda.stream(s):
        c = flow.empty(1000, device="cuda")
    assert b.data_ptr() != address == c.data_ptr()


DEVICES = """
import flowedu as flow
x = flow.ones(3, device="cuda:1")
assert (flow.cuda.device_count() == 2 and flow.cuda.current_device() == 0
        and x.device == flow.device("cuda", 1))
y = x * 2 + 1
assert y.device == x.device and y.tolist() == [3, 3, 3] and flow.cuda.current_device() == 0
z = y.to("cuda:0")
assert z.device == flow.device("cuda:0") and z.tolist() == [3, 3, 3]
try: x + z
except RuntimeError as e: print(e.got)
with flow.cuda.device(1):
    assert flow.ones(2, device="cuda").get_device() == 1 and flow.ones(2).cuda().get_device() == 1
flow.cuda.set_device(1)
assert flow.zeros(2, device="cuda").get_device() == 1 and flow.zeros(2, device=0).get_device() == 0
assert flow.zeros(2, device="cuda:0").get_device() == 0
w = flow.ones(3, requires_grad=True)
(w.to("cuda:0") * z + (w.to("cuda:1") * x).to("cuda:0")).sum().backward()
assert w.grad.tolist() == [4, 4, 4]
assert flow.cuda.memory_allocated(0) > 0 and flow.cuda.memory_allocated(1) > 0
try: flow.ones(1, device="cuda:2")
except RuntimeError as e: print(e.problem)
"""


@in_simulator
def test_two_devices():
    assert alone(DEVICES,
                 FLOWEDU_CUDA_DEVICES="2") == "x is on cuda:1, y is on cuda:0\nthere is no device cuda:2\n"


# ---- errors
@pytest.mark.parametrize("read", [lambda y: y.cpu(), lambda y: y.tolist(), lambda y: flow.cuda.synchronize()])
def test_an_index_out_of_range_is_reported_at_synchronization(read):
    rows = flow.ones(4, 3, device="cuda")
    y = REGISTRY['gather'](rows, flow.tensor([0, 7], device="cuda"), axis=0)
    with pytest.raises(KernelError, match="gather: an index is out of range: 7"):
        read(y)
    assert REGISTRY['gather'](rows, flow.tensor([0, 3], device="cuda"), axis=0).sum().item() == 6


def test_with_blocking_the_op_itself_raises():
    script = ("import flowedu as flow\nfrom flowedu.ops import REGISTRY\n"
              "x, i = flow.ones(4, 3, device='cuda'), flow.tensor([0, 9], device='cuda')\n"
              "try: REGISTRY['gather'](x, i, axis=0)\nexcept flow.errors.KernelError as e: print(e.problem)")
    assert alone(script, FLOWEDU_CUDA_BLOCKING="1") == "gather: an index is out of range: 9\n"


def test_without_a_gpu():
    script = ("import flowedu as flow\nprint(flow.cuda.is_available(), flow.cuda.memory_allocated())\n"
              "for f in (lambda: flow.ones(2, device='cuda'), lambda: flow.ones(2).cuda(),\n"
              "          lambda: flow.nn.Linear(1, 1).cuda()):\n"
              "    try: f()\n    except RuntimeError as e: print(e.problem)")
    assert alone(script, FLOWEDU_CUDA="off") == "False 0\n" + 3 * (
        "no GPU: this machine computes on the CPU only, and flow.cuda.is_available() is False\n")


def test_device_properties():
    p = flow.cuda.get_device_properties(0)
    assert p.name == flow.cuda.get_device_name() and p.total_memory > 0 and p.warp_size == 32
    assert flow.cuda.get_device_capability() == (p.major, p.minor)
    flow.cuda.manual_seed(5)
    a = flow.rand(3, device="cuda")
    flow.cuda.manual_seed_all(5)
    assert flow.equal(a, flow.rand(3, device="cuda"))
    assert flow.cuda.initial_seed() == 5 and flow.cuda.is_bf16_supported()
    assert flow.cuda.is_bf16_supported(including_emulation=False) == (p.major >= 8)
    states = flow.cuda.get_rng_state_all()
    assert len(states) == flow.cuda.device_count()
    a = flow.rand(3, device="cuda")
    flow.cuda.set_rng_state_all(states)
    assert flow.equal(a, flow.rand(3, device="cuda"))
    flow.cuda.set_rng_state(states[0], "cuda")
    assert flow.equal(a, flow.rand(3, device="cuda"))


def test_a_stream_that_owns_memory_is_not_destroyed():
    """The driver reuses the number of a destroyed stream; the new stream must not get memory that kernels of
    the old one read.
    """
    with flow.cuda.stream(flow.cuda.Stream()) as s:
        number = s.cuda_stream
        x = flow.ones(1000, device="cuda")
    del x, s
    gc.collect()
    flow.cuda.memory_allocated()
    assert number not in [flow.cuda.Stream().cuda_stream for _ in range(20)]
