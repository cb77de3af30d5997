"""Laws of recorded runs: calls in the order of the plan, lanes without overlaps, the bytes of messages,
waits, and unchanged results. Times are only compared with each other.
"""
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from common import f32
from custom_ops import own_registry  # noqa: F401
from dist.rank_graphs import Counting
from dist.ranks import SRC, TESTS, launch, mpi
from flowedu import nn
from flowedu.core.graph.executor import Executor
from flowedu.core.sbp.ranks import current
from flowedu.distributed import set_virtual_devices, spawn
from flowedu.errors import CheckError
from flowedu.show.recording import Span, interrupt, shift_between
from flowedu.show.stamps import Stamps
from traces import check, check_ranks, check_waiting, record_stages, sleepy

B, S0 = flow.sbp.broadcast, flow.sbp.split(0)
ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "gelu": nn.GELU, "norm": lambda: nn.LayerNorm(8)}
layers = st.lists(st.sampled_from(sorted(ACTIVATIONS)), min_size=1, max_size=4)
few = settings(max_examples=max(8, settings().max_examples // 4))


@pytest.fixture(autouse=True)
def restore_devices():
    yield
    set_virtual_devices(1)


def make_model(names):
    flow.manual_seed(3)
    return nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), ACTIVATIONS[n]()) for n in names))


class SquareStep(nn.Graph):
    def __init__(self, model):
        super().__init__()
        self.model = model
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))

    def build(self, x):
        loss = self.model(x).square().mean()
        loss.backward()
        return loss


# ---- one device
@few
@given(layers, st.integers(1, 2))
def test_a_trace_has_the_calls_of_the_plan_and_changes_no_result(names, threads):
    flow.set_num_threads(threads)
    try:
        traced, plain = SquareStep(make_model(names)), SquareStep(make_model(names))
        x = flow.tensor(f32(64, 8))
        for _ in range(3):
            assert traced(x).numpy().tobytes() == plain(x).numpy().tobytes()
            trace = traced.timeline(x)
            check(trace)
            plan = traced._compiled.program.plan
            assert [s.name for s in trace.calls] == [s.name for s in plan.steps]
            assert {s.kind for s in trace.spans} == {"call"} and len(trace.lanes) == threads
            assert traced.profile(x).endswith(" ms")
        for a, b in zip(traced.model.parameters(), plain.model.parameters()):
            assert a.numpy().tobytes() == b.numpy().tobytes()
    finally:
        flow.set_num_threads(1)


def test_a_trace_leaves_the_sequence_of_random_numbers():
    def losses(traced):
        flow.manual_seed(5)
        graph, x = SquareStep(nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))), flow.tensor(f32(16, 8))
        found = []
        for _ in range(3):
            found.append(graph(x).numpy().tobytes())
            if traced:
                graph.timeline(x)
                graph.profile(x)
        return found
    plain = losses(False)
    assert losses(True) == plain and len(set(plain)) == 3


def test_without_a_recording_no_stamp_is_written():
    graph, x = SquareStep(make_model(["relu"])), flow.tensor(f32(4, 8))
    graph(x)
    executor = graph._compiled.program.executor
    assert isinstance(executor, Executor)
    with Stamps(executor) as stamps:
        assert not stamps.times.any()
        graph(x)
        written = stamps.times.copy()
        with pytest.raises(CheckError, match="is being recorded"), Stamps(executor):
            pass
    assert (written[:, 0] > 0).all() and (written[:, 0, 0] <= written[:, 0, 1]).all()
    graph(x)
    assert np.array_equal(stamps.times, written)
    with Stamps(executor) as again:
        graph(x)
    assert (again.times[:, 0, 0] > written[:, 0, 1].max()).all()


def test_a_slow_call_is_the_longest_span():
    slow, x = sleepy(), flow.tensor(f32(4, 8))

    class Slow(nn.Graph):
        def build(self, x):
            return slow(x.exp()).exp() + 1

    graph = Slow()
    graph(x)
    trace = graph.timeline(x)
    check(trace)
    longest = max(trace.spans, key=lambda s: s.seconds)
    assert longest.op == "sleepy" and graph.profile(x).split("\n")[1].split()[1] == "sleepy"
    assert repr(trace).split("longest")[1].split("\n")[1].split()[0] == longest.name


# ---- waits
moments = st.lists(st.integers(0, 1000), max_size=12, unique=True).map(sorted)


@given(moments, moments)
def test_waits_interrupt_calls(calls, waits):
    """Each wait lies in one call or between two, as in a real run."""
    spans = [Span(f"c{i}", 0, a, b, "message", 8, step=i)
             for i, (a, b) in enumerate(zip(calls[::2], calls[1::2]))]
    borders = set(calls)
    pairs = [(a, b, "w") for a, b in zip(waits[::2], waits[1::2])
             if not any(a <= t <= b for t in borders)]
    found = interrupt(spans, pairs)
    found = sorted(found, key=lambda s: s.begin)
    assert all(a.end <= b.begin for a, b in zip(found, found[1:]))
    assert [(s.begin, s.end) for s in found if s.kind == "wait"] == [(a, b) for a, b, _ in pairs]
    done = [s for s in found if s.step >= 0]
    assert [(s.name, s.end) for s in done] == [(s.name, s.end) for s in spans]
    assert sum(s.nbytes for s in found) == 8 * len(spans)
    for span in spans:
        parts = [s for s in found if span.begin <= s.begin and s.end <= span.end]
        assert sum(s.end - s.begin for s in parts) == span.end - span.begin


def test_clocks_of_one_machine_are_the_same():
    assert shift_between(["a", 5], ["a", 9]) == 0 and shift_between(["a", 5], ["b", 9]) == -4


# ---- global tensors
class CountingEngineComm(Counting):
    """A counting communicator that an engine can use."""

    def __getattr__(self, name):
        return getattr(self.comm, name)

    def box(self, route, part, what="", identity=0):
        return super().box(route, part, what)


@few
@given(layers, st.integers(2, 4), st.sampled_from([(B, S0), (S0, B), (S0, S0), (B, B)]))
def test_a_trace_of_a_global_graph_has_the_calls_and_messages_of_each_rank(names, k, sbps):
    set_virtual_devices(k)
    place = flow.placement("cpu", list(range(k)))
    graphs = [SquareStep(make_model(names).to_global(place, B).to_global(place, sbps[0])) for _ in range(2)]
    x = flow.tensor(f32(12, 8)).to_global(place, sbps[1])
    for _ in range(2):
        a, b = (graph(x).to_global(place, B).numpy() for graph in graphs)
        assert a.tobytes() == b.tobytes()
        trace = graphs[0].timeline(x)
        check_ranks(graphs[0], trace, current())
        assert trace.lanes == [f"rank {r}" for r in range(k)] and f"on {k} ranks" in repr(trace)
        calls = sum(len(p.plan.steps) for p in graphs[0]._compiled.spread.programs.programs.values())
        assert graphs[0].profile(x).split("\n")[-1].startswith(f"{calls} calls, ")
    engine = current()
    comms, engine.comms = engine.comms, [CountingEngineComm(c) for c in engine.comms]
    try:
        graphs[0](x)
        # Collectives split an array into parts that may differ by an element, so only the sum is exact.
        assert sum(c.sent for c in engine.comms) == pytest.approx(graphs[0].bytes)
    finally:
        engine.comms = comms


def test_a_rank_waits_for_a_slow_rank():
    set_virtual_devices(2)
    graph, trace = record_stages()
    check_waiting(trace)
    check_ranks(graph, trace, current())


def test_ranks_that_are_threads_get_the_same_trace():
    def program():
        graph, trace = record_stages()
        check_waiting(trace)
        check_ranks(graph, trace, current())
        return trace.lanes, trace.spans
    first, second = spawn(program, 2)
    assert first == second


@mpi
def test_ranks_that_are_processes_get_the_same_trace(tmp_path):
    said = launch(tmp_path, """
        import hashlib
        from flowedu.core.sbp.ranks import current
        from traces import check_ranks, check_waiting, record_stages

        graph, trace = record_stages()
        check_waiting(trace)
        check_ranks(graph, trace, current())
        print(hashlib.sha256(repr((trace.lanes, trace.spans)).encode()).hexdigest())
        """, 2, env={"PYTHONPATH": os.pathsep.join([SRC, TESTS])})
    assert said.code == 0, said.err
    first, second = said.out.split()
    assert first == second
