"""Law: backward(), backward(inputs=) and autograd.grad deliver the same gradients and run the same hooks
equally often.
"""
import itertools
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow

LEAVES, VALUES = 2, 5


@dataclass
class Program:
    """A small graph: each value is an op of two earlier ones; `hooks[i]` are the factors of the hooks of
    value i.
    """

    ops: list[tuple[str, int, int]]
    hooks: dict[int, list[float]]
    retained: set[int]
    roots: list[int]

    def run(self):
        """Return the values and the log that hooks write."""
        log = []
        values = [flow.tensor([1.0 + i, -2.0], requires_grad=True, dtype=flow.float64) for i in range(LEAVES)]
        for name, i, j in self.ops:
            values.append(getattr(flow, name)(values[i], values[j]))
        for i, x in enumerate(values):
            for factor in self.hooks.get(i, ()):
                x.register_hook(lambda g, i=i, factor=factor: (log.append(("hook", i, factor)),
                                                               g * factor)[1])
            if i < LEAVES:
                x.register_post_accumulate_grad_hook(lambda t, i=i: log.append(("after", i)))
            elif i in self.retained:
                x.retain_grad()
        return values, log


@st.composite
def programs(draw):
    ops = [(draw(st.sampled_from(["add", "mul", "sub"])), draw(st.integers(0, LEAVES + k - 1)),
            draw(st.integers(0, LEAVES + k - 1))) for k in range(VALUES)]
    size = LEAVES + VALUES
    indices = st.integers(0, size - 1)
    return Program(ops, draw(st.dictionaries(indices, st.lists(st.sampled_from([2.0, -3.0, 0.5]), max_size=2),
                                             max_size=4)),
                   draw(st.sets(indices)), draw(st.lists(indices, min_size=1, max_size=2)))


def reference(program: Program, create_graph: bool):
    """Return the gradients of all leaves by backward() without inputs, and the log of the hooks."""
    values, log = program.run()
    outs = [values[i] for i in program.roots]
    flow.autograd.backward(outs, [flow.ones_like(y) for y in outs], create_graph=create_graph)
    return [x.grad for x in values[:LEAVES]], log


def are_equal_gradients(a, b) -> bool:
    return a is b is None or a is not None and b is not None and a.tolist() == b.tolist()


def hooks_of_leaves(log, wanted):
    return sorted(event for event in log if event[1] in wanted)


@pytest.mark.parametrize("create_graph", [False, True])
@given(program=programs(), data=st.data())
def test_backward_with_inputs_is_backward_restricted_to_them(program, data, create_graph):
    wanted = data.draw(st.lists(st.integers(0, LEAVES - 1), min_size=1, max_size=3))
    grads, log = reference(program, create_graph)
    values, partial_log = program.run()
    outs = [values[i] for i in program.roots]
    flow.autograd.backward(outs, [flow.ones_like(y) for y in outs], create_graph=create_graph,
                           inputs=[values[i] for i in wanted])
    for i in range(LEAVES):
        assert are_equal_gradients(values[i].grad, grads[i] if i in wanted else None)
    assert hooks_of_leaves(partial_log, wanted) == hooks_of_leaves(log, wanted)
    assert not hooks_of_leaves(partial_log, set(range(LEAVES)) - set(wanted))
    if set(wanted) == set(range(LEAVES)):
        assert sorted(partial_log) == sorted(log)


@pytest.mark.parametrize("create_graph", [False, True])
@given(program=programs(), data=st.data())
def test_grad_returns_the_gradients_that_backward_accumulates(program, data, create_graph):
    wanted = data.draw(st.lists(st.integers(0, LEAVES - 1), min_size=1, max_size=3))
    grads, log = reference(program, create_graph)
    values, grad_log = program.run()
    outs = [values[i] for i in program.roots]
    results = flow.autograd.grad(outs, [values[i] for i in wanted], [flow.ones_like(y) for y in outs],
                                 allow_unused=True, create_graph=create_graph)
    for i, g in zip(wanted, results):
        assert are_equal_gradients(g, grads[i])
    assert all(x.grad is None for x in values[:LEAVES])
    expected = [event for event in hooks_of_leaves(log, wanted) if event[0] == "hook"]
    assert hooks_of_leaves(grad_log, wanted) == expected


@given(program=programs(), data=st.data())
def test_inner_values_get_the_gradient_that_retain_grad_stores(program, data):
    """The gradient of an inner value equals the one that retain_grad stores, retained or not, and is
    delivered once.
    """
    inner = data.draw(st.lists(st.integers(LEAVES, LEAVES + VALUES - 1), min_size=1, max_size=3))
    everything = Program(program.ops, program.hooks, set(range(LEAVES + VALUES)), program.roots)
    values, _ = everything.run()
    outs = [values[i] for i in program.roots]
    flow.autograd.backward(outs, [flow.ones_like(y) for y in outs])
    expected = [values[i].grad for i in inner]

    values, log = program.run()
    outs = [values[i] for i in program.roots]
    flow.autograd.backward(outs, [flow.ones_like(y) for y in outs], inputs=[values[i] for i in inner])
    assert all(are_equal_gradients(values[i].grad, g) for i, g in zip(inner, expected))
    assert all(x.grad is None for x in values[:LEAVES]) and not any(i < LEAVES for _, i, *_ in log)

    values, _ = program.run()
    outs = [values[i] for i in program.roots]
    results = flow.autograd.grad(outs, [values[i] for i in inner], [flow.ones_like(y) for y in outs],
                                 allow_unused=True)
    assert all(are_equal_gradients(a, b) for a, b in zip(results, expected))


def test_gradients_of_the_three_ways_may_be_written():
    """A `.grad` shares no memory with another gradient, so an in-place change of one does not affect the
    others.
    """
    for way, twice in itertools.product(("backward", "inputs"), (False, True)):
        x = flow.tensor([1.0, 2.0], requires_grad=True)
        y = flow.tensor([3.0, 4.0], requires_grad=True)
        h = x + y
        h.retain_grad()
        for _ in range(1 + twice):
            h.backward(flow.ones(2), retain_graph=True, inputs=None if way == "backward" else [x, y, h])
        x.grad.mul_(100)
        assert y.grad.tolist() == h.grad.tolist() == [1.0 + twice] * 2
