"""Law: the work of a graph's first call grows linearly with its nodes, in every stage.

Work is counted, not timed: Python bytecodes, and comparisons of values or nodes, which a linear search
through a list makes. Doubling the nodes adds an equal amount of work. (Buffer placement runs outside Python
and has a separate law.)
"""
import sys
from collections.abc import Callable

import pytest

import flowedu as flow
from flowedu import nn
from flowedu.core.graph.ir import GraphValue, Node

from .making import make_graph

SIZES = 48, 96, 192
SEARCH = 50                 # bytecodes per comparison, so that searches in short lists already show


def chain(n: int) -> tuple[nn.Module, Callable]:
    w = nn.Linear(4, 4, bias=False)

    def forward(model, x):
        for _ in range(n):
            x = x + w.weight
        return x
    return w, forward


def mixed(n: int) -> tuple[nn.Module, Callable]:
    w = nn.Linear(4, 4, bias=False)

    def forward(model, x):
        for _ in range(n // 4):
            x = flow.relu(x @ w.weight).transpose(0, 1).reshape(4, 4)
        return x
    return w, forward


def wide(n: int) -> tuple[nn.Module, Callable]:
    w = nn.Linear(4, 4)

    def forward(model, x):
        y = w(x)
        return flow.stack([flow.tanh(y * float(i)) for i in range(n // 2)]).sum(0)
    return w, forward


def summed(n: int) -> tuple[nn.Module, Callable]:
    w = nn.Linear(4, 4)

    def forward(model, x):
        y = w(x)
        total = y
        for i in range(n // 3):
            total = total + flow.tanh(y * float(i))
        return total
    return w, forward


def sliced(n: int) -> tuple[nn.Module, Callable]:
    w = nn.Linear(4, 2 * n)

    def forward(model, x):
        return sum(flow.tanh(part) for part in w(x).chunk(n // 2, 1))
    return w, forward


def layers(n: int) -> tuple[nn.Module, Callable]:
    return nn.Sequential(*(nn.Linear(4, 4) for _ in range(n // 2))), lambda model, x: model(x)


def images(n: int) -> tuple[nn.Module, Callable]:
    parts = [part for _ in range(n // 6) for part in (nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.ReLU())]
    return nn.Sequential(*parts), lambda model, x: model(x.reshape(1, 1, 4, 4).expand(1, 4, 4, 4))


def outputs(n: int) -> tuple[nn.Module, Callable]:
    w = nn.Linear(4, 4)
    return w, lambda model, x: tuple(w(x) + float(i) for i in range(n // 2))


def first_call(make: Callable, n: int, training: bool):
    """Build a graph of about n nodes; return a function that calls it for the first time."""
    model, forward = make(n)

    def build(self, x):
        y = forward(self.model, x)
        if training:
            y = y.mean()
            y.backward()
        return y
    g = make_graph(build, *[flow.optim.Adam(model.parameters())] * training, model=model)
    return lambda: g(flow.ones(4, 4))


def work(call: Callable) -> int:
    """Count the executed bytecodes, and the comparisons of values and of nodes."""
    count = 0

    def traced(frame, event, _):
        nonlocal count
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return traced

    def compared(self, other):
        nonlocal count
        count += SEARCH
        return self is other

    kinds = (GraphValue, Node)
    before = sys.gettrace()
    for kind in kinds:
        kind.__eq__, kind.__hash__ = compared, object.__hash__
    sys.settrace(traced)
    try:
        call()
    finally:
        sys.settrace(before)
        for kind in kinds:
            del kind.__eq__, kind.__hash__
    return count


def steady(counts: list[int]) -> bool:
    """Return True if n more nodes add the same work as the first n."""
    few, some, many = counts
    return (many - some) / (some - few) < 2.05


MAKERS = (chain, mixed, wide, summed, sliced, layers, images)


@pytest.mark.slow
@pytest.mark.parametrize("make, training", [(f, t) for f in MAKERS
                                            for t in (False, True)] + [(outputs, False)])
def test_twice_the_nodes_are_twice_the_work(make, training):
    first_call(make, SIZES[0], training)()                   # imports, and caches of shapes
    counts = [work(first_call(make, n, training)) for n in SIZES]
    assert steady(counts), counts


def test_a_search_for_each_node_would_be_detected():
    """The counter covers loops, comprehensions, and the implicit searches of lists."""
    def searching(n):
        nodes = [Node.__new__(Node) for _ in range(n)]
        return lambda: [nodes.index(node) for node in nodes]

    def looping(n):
        return lambda: [j for i in range(n) for j in range(i)]

    for quadratic in (searching, looping):
        assert not steady([work(quadratic(n)) for n in SIZES])
    assert steady([work(lambda n=n: [j + 1 for j in range(n)]) for n in SIZES])
