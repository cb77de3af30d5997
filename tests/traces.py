"""Checks of recorded runs, and a graph whose second rank waits for a slow call of the first."""
import json
import time

import flowedu as flow
from common import f32
from flowedu import nn

B = flow.sbp.broadcast


def check(trace):
    """Check the laws of every trace."""
    for lane in trace.lanes:
        spans = trace.on(lane)
        assert all(s.begin <= s.end for s in spans)
        assert all(a.end <= b.begin for a, b in zip(spans, spans[1:])), "spans of a lane overlap"
        steps = [s.step for s in spans if s.step >= 0]
        assert steps == sorted(set(steps)), "calls are in the order of the plan"
    start = min((s.begin for s in trace.spans), default=0)
    assert start == 0 and json.loads(json.dumps(trace.chrome()))


def check_ranks(graph, trace, engine):
    """Check a trace of a global graph: the calls of each plan, and the bytes of messages."""
    check(trace)
    view = graph._compiled.spread
    for rank in engine.owned:
        mine, plan = trace.on(f"rank {rank}"), view.programs.programs[rank].plan
        assert [s.name for s in mine if s.step >= 0] == [s.name for s in plan.steps]
        messages = {s.name: s.nbytes for s in mine if s.kind == "message" and s.step >= 0}
        assert messages == view.ranks[rank].moved
    assert sum(s.nbytes for s in trace.spans if s.kind == "message") == graph.bytes


def sleepy():
    """Return an op that sleeps. The sleep is much longer than any other call of these tests."""
    def forward(x):
        time.sleep(0.05)
        return x * 2
    return flow.custom_op("sleepy", forward, lambda dy, x: dy * 2, replace=True)


class Stages(nn.Graph):
    """A slow op on rank 0, and a call on rank 1 that needs its result."""

    def __init__(self, slow, places):
        super().__init__()
        self.slow, self.places = slow, places

    def build(self, x):
        return self.slow(x.exp()).to_global(self.places[1], B).exp()


def check_waiting(trace):
    """Check that rank 1 waits for the message that follows the slow call of rank 0."""
    check(trace)
    slow = max((s for s in trace.spans if s.kind == "call"), key=lambda s: s.seconds)
    assert slow.op == "sleepy" and trace.lanes[slow.lane] == "rank 0"
    waits = [s for s in trace.on("rank 1") if s.kind == "wait"]
    longest = max(waits, key=lambda s: s.seconds)
    assert longest.begin < slow.end <= longest.end
    assert longest.seconds > sum(s.seconds for s in trace.on("rank 1") if s.kind == "call")
    sent = [s for s in trace.on("rank 0") if s.kind == "message" and s.nbytes]
    assert slow.end <= sent[0].begin and "box" in sent[0].op


def record_stages():
    places = [flow.placement("cpu", [r]) for r in (0, 1)]
    graph = Stages(sleepy(), places)
    x = flow.tensor(f32(4, 8)).to_global(places[0], B)
    graph(x)
    return graph, graph.timeline(x)
