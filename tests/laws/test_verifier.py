"""Laws of the verifier: each planted fault of a pass or a planner is detected, and the error names the pass
or planner.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.core.graph import memory, passes
from flowedu.core.graph.ir import Graph, GraphValue, Node
from flowedu.core.graph.passes import register_pass
from flowedu.core.graph.plan import Planner, make_plan
from flowedu.core.graph.rewrite import replace
from flowedu.core.values.spec import Spec
from flowedu.diagnostics.verify import VARIABLE, at_level, level
from flowedu.diagnostics.verify.plans import check_plan
from flowedu.errors import ArgumentError, CheckpointError, GraphError
from flowedu.ops import REGISTRY
from flowedu.swap import swapped


class Train(nn.Graph):
    def __init__(self, momentum=0.9):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
        self.add_optimizer(flow.optim.SGD(self.model.parameters(), lr=0.1, momentum=momentum))

    def build(self, x):
        y = self.model(x)
        loss = (y * y).sum()
        loss.backward()
        return loss, y, y + 1, nn.functional.dropout(x, 0.5)


def x():
    return flow.tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))


# --- passes
# -----------------------------------------------------------------------------------------------------------
# The graph under test: forward, backward, one momentum update of four parameters.


def first(graph, op):
    return next(n for n in graph.nodes if n.op.name == op)


def drops_an_output(graph):
    graph.outputs = graph.outputs[:-1]


def adds_an_output(graph):
    graph.outputs = [*graph.outputs, graph.outputs[0]]


def swaps_two_nodes(graph):
    i = next(i for i, n in enumerate(graph.nodes) if any(x.node is graph.nodes[i - 1] for x in n.inputs))
    graph.nodes[i - 1 : i + 1] = graph.nodes[i], graph.nodes[i - 1]


def reverses_the_nodes(graph):
    graph.nodes = graph.nodes[::-1]


def removes_a_node_that_is_read(graph):
    graph.nodes.remove(first(graph, "tanh"))


def lists_a_node_twice(graph):
    graph.nodes.append(graph.nodes[0])


def takes_a_name_twice(graph):
    graph.nodes[1].name = graph.nodes[0].name


def changes_a_spec(graph):
    y = first(graph, "tanh").outputs[0]
    y.spec = Spec((8, 3), y.spec.dtype)


def changes_a_dtype(graph):
    y = first(graph, "tanh").outputs[0]
    y.spec = Spec(y.spec.shape, flow.float64)


def returns_another_shape(graph):
    graph.outputs[1] = graph.outputs[0]


def reads_another_shape(graph):
    replace(graph, {first(graph, "tanh").outputs[0]: next(iter(graph.inputs.values()))})


def drops_an_update(graph):
    graph.nodes = [n for n in graph.nodes if not n.mutates]


def updates_twice(graph):
    n = next(n for n in graph.nodes if n.mutates)
    graph.nodes.append(Node(n.op, n.inputs, n.attrs, [], "again", n.line))


def drops_a_variable(graph):
    graph.variables.popitem()


def adds_an_input(graph):
    graph.input("another", Spec((2,), flow.float32))


def changes_a_parameter(graph):
    value = next(iter(graph.variables.values()))
    value.spec = Spec((1, *value.spec.shape), value.spec.dtype)


def reads_a_value_of_another_graph(graph):
    node = first(graph, "tanh")
    node.inputs = (GraphValue(node.inputs[0].spec, "input", "elsewhere"),)


def returns_a_value_of_another_graph(graph):
    graph.outputs[0] = GraphValue(graph.outputs[0].spec, "node", "elsewhere")


def exchanges_the_outputs_of_nodes(graph):
    a, b = first(graph, "tanh"), graph.nodes[0]
    a.outputs, b.outputs = b.outputs, a.outputs


def changes_an_attribute(graph):
    node = next(n for n in graph.nodes if n.op.name == "sum")
    node.attrs = (tuple(range(node.inputs[0].ndim)), True)


def raises_a_key_error(graph):
    raise KeyError(graph.nodes[0])


BAD = [
    drops_an_output,
    adds_an_output,
    swaps_two_nodes,
    reverses_the_nodes,
    removes_a_node_that_is_read,
    lists_a_node_twice,
    takes_a_name_twice,
    changes_a_spec,
    changes_a_dtype,
    returns_another_shape,
    reads_another_shape,
    drops_an_update,
    updates_twice,
    drops_a_variable,
    adds_an_input,
    changes_a_parameter,
    reads_a_value_of_another_graph,
    returns_a_value_of_another_graph,
    exchanges_the_outputs_of_nodes,
    changes_an_attribute,
    raises_a_key_error,
]


# Wrong results of the right shape: only a comparison detects these.
def returns_another_output(graph):
    graph.outputs[1] = graph.outputs[2]


def leaves_an_op_out(graph):
    node = first(graph, "tanh")
    replace(graph, {node.outputs[0]: node.inputs[0]})


def updates_by_another_gradient(graph):
    node = next(n for n in graph.nodes if n.mutates)
    inputs = list(node.inputs)
    node.inputs = tuple(_exchanged(inputs))


def _exchanged(inputs):
    """Return the inputs of an update with a gradient replaced by its parameter."""
    at = next(i for i, v in enumerate(inputs) if v.kind == "node")
    value = next(v for v in inputs if v.kind == "variable" and v.spec == inputs[at].spec)
    return [*inputs[:at], value, *inputs[at + 1 :]]


def draws_other_random_numbers(graph):
    node = next(n for n in graph.nodes if n.op.random)
    i = node.op.attr_index["seed"]
    node.attrs = (*node.attrs[:i], node.attrs[i] + 1, *node.attrs[i + 1 :])


WRONG = [returns_another_output, leaves_an_op_out, updates_by_another_gradient, draws_other_random_numbers]


@pytest.fixture
def registered(monkeypatch):
    """Provide registered(f): f is a pass until the test ends, the first one unless `before` is passed."""
    monkeypatch.setattr(passes, "PASSES", [*passes.PASSES])
    monkeypatch.setattr(passes, "NAMES", [*passes.NAMES])

    def register(f):
        def bad(graph):
            f(graph)
            return "bad"

        bad.__name__ = f.__name__
        register_pass(bad, before=passes.PASSES[0])

    return register


@pytest.mark.parametrize("f", BAD, ids=lambda f: f.__name__)
def test_a_pass_that_breaks_a_rule_is_named(f, registered, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    registered(f)
    with pytest.raises(GraphError) as e:
        Train()(x())
    assert e.value.problem.startswith(f'pass "{f.__name__}": ')
    assert e.value.expected and e.value.got and e.value.fix


@pytest.mark.parametrize(
    "f", [changes_a_spec, removes_a_node_that_is_read, reads_another_shape], ids=lambda f: f.__name__
)
def test_the_error_has_the_line_of_the_call(f, registered, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    registered(f)
    with pytest.raises(GraphError) as e:
        Train()(x())
    assert "test_verifier.py" in e.value.at


def adds_an_axis(graph):
    tanh = first(graph, "tanh")
    new = Node(REGISTRY["expand"], tanh.inputs, ((1, 3, 8),), [Spec((1, 3, 8), flow.float32)], "new", "")
    graph.nodes.insert(graph.nodes.index(tanh), new)
    tanh.inputs = tuple(new.outputs)


def makes_a_node_of_another_shape(graph):
    x = next(iter(graph.inputs.values()))
    graph.nodes.append(Node(REGISTRY["tanh"], (x,), (), [Spec((8, 3), x.spec.dtype)], "new", ""))


@pytest.mark.parametrize("f, than, expected, got", [
    # the result of the sum was right before the pass, which gave it a wrong attribute
    (changes_an_attribute, "before the pass", "float32[]", "float32[1, 1]"),
    # the result of each op that reads the new shape was right before the pass
    (adds_an_axis, "before the pass", "float32[3, 8]", "float32[1, 3, 8]"),
    (makes_a_node_of_another_shape, "its op infers", "float32[3, 4]", "float32[8, 3]"),
], ids=lambda v: getattr(v, "__name__", None))
def test_the_result_before_the_pass_is_expected(f, than, expected, got, registered, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    registered(f)
    with pytest.raises(GraphError) as e:
        Train()(x())
    assert e.value.problem.endswith(f"has another shape or dtype than {than}")
    assert (e.value.expected, e.value.got) == (expected, got)


@pytest.mark.parametrize("f", WRONG, ids=lambda f: f.__name__)
def test_a_pass_that_changes_results_is_named(f, registered, monkeypatch):
    registered(f)
    monkeypatch.setenv(VARIABLE, "1")
    Train()(x())  # breaks only rules that require running the graph
    monkeypatch.setenv(VARIABLE, "2")
    with pytest.raises(GraphError) as e:
        Train()(x())
    assert e.value.problem.startswith(f'pass "{f.__name__}": ')


def loses_an_update_of_two(graph):
    graph.nodes.remove([n for n in graph.nodes if n.mutates][0])


def reorders_updates(graph):
    reads = [n for n in graph.nodes if not n.mutates]
    graph.nodes = reads + [n for n in graph.nodes if n.mutates][::-1]


@pytest.mark.parametrize("f", [loses_an_update_of_two, reorders_updates], ids=lambda f: f.__name__)
def test_updates_are_neither_lost_nor_reordered(f, registered, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    registered(f)

    class TwoOptimizers(nn.Graph):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
            for part in (self.a, self.b):
                self.add_optimizer(flow.optim.SGD(part.parameters(), lr=0.1, momentum=0.5))

        def build(self, x):
            loss = self.b(self.a(x)).sum()
            loss.backward()
            return loss

    with pytest.raises(GraphError, match=f'pass "{f.__name__}": '):
        TwoOptimizers()(x())


@pytest.mark.parametrize("f", [*BAD, *WRONG], ids=lambda f: f.__name__)
def test_check_detects_the_fault_afterwards(f, registered, monkeypatch):
    """graph.check(x) runs the passes again, on the graph as it was traced."""
    monkeypatch.setenv(VARIABLE, "0")
    graph = Train()
    graph(x())
    state = {k: v.numpy().copy() for k, v in graph.model.state_dict().items()}
    graph.check()
    graph.check(x())
    registered(f)
    with pytest.raises(GraphError, match=f'pass "{f.__name__}": '):
        graph.check(x())
    for k, v in graph.model.state_dict().items():
        np.testing.assert_array_equal(v.numpy(), state[k])  # a check does not train


def test_a_disabled_pass_is_not_run(registered, monkeypatch):
    monkeypatch.setenv(VARIABLE, "2")
    registered(raises_a_key_error)
    graph = Train()
    graph.config.off = graph.config.off | {"raises_a_key_error"}
    graph(x())


@pytest.mark.parametrize("number", ["1", "2"])
@pytest.mark.parametrize("off", [(), *[(name,) for name in passes.NAMES], tuple(passes.NAMES)], ids=" ".join)
def test_the_passes_of_the_library_follow_the_rules(number, off, monkeypatch):
    monkeypatch.setenv(VARIABLE, number)
    for momentum in (0.0, 0.9):
        graph = Train(momentum)
        graph.config.disable_pass(*off)
        graph(x())
        graph(x())


def test_results_are_the_same_at_every_level(monkeypatch):
    found = []
    for number in ("0", "1", "2"):
        monkeypatch.setenv(VARIABLE, number)
        flow.manual_seed(3)
        graph = Train()
        found.append([[y.numpy() for y in graph(x())] for _ in range(3)])
    for other in found[1:]:
        np.testing.assert_equal(other, found[0])


# --- planners
# ---------------------------------------------------------------------------------------------------------


def all_at_zero(buffers):
    for b in buffers:
        b.offset = 0
    return 1 << 20


def _stacked(buffers):
    """Place every buffer after the one before it: a correct placement without sharing."""
    end = 0
    for b in buffers:
        if b.in_arena:
            b.offset, end = end, end + memory.rounded(b.nbytes)
    return end


def one_block_too_low(buffers):
    size = _stacked(buffers)
    last = [b for b in buffers if b.in_arena and b.nbytes and b.offset][-1]
    last.offset -= 64
    return size


def below_zero(buffers):
    size = _stacked(buffers)
    next(b for b in buffers if b.in_arena).offset = -64
    return size


def unaligned(buffers):
    size = _stacked(buffers)
    [b for b in buffers if b.in_arena][-1].offset += 4
    return size + 64


def leaves_one_out(buffers):
    size = _stacked(buffers)
    [b for b in buffers if b.in_arena][-1].offset = -1
    return size


def arena_of_one_block(buffers):
    _stacked(buffers)
    return 64


def arena_without_the_last(buffers):
    return _stacked(buffers) - 64


def returns_nothing(buffers):
    _stacked(buffers)


def frees_too_early(buffers):
    for b in buffers:
        if b.in_arena:
            b.last = b.first
    return _stacked(buffers)


def reserves_too_late(buffers):
    for b in buffers:
        if b.in_arena:
            b.first = b.last
    return _stacked(buffers)


PLACES = [
    all_at_zero,
    one_block_too_low,
    below_zero,
    unaligned,
    leaves_one_out,
    arena_of_one_block,
    arena_without_the_last,
    returns_nothing,
    frees_too_early,
    reserves_too_late,
]


@pytest.mark.parametrize("f", PLACES, ids=lambda f: f.__name__)
def test_a_planner_that_breaks_a_rule_is_named(f, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    with swapped(memory.place, f), pytest.raises(GraphError) as e:
        Train()(x())
    assert e.value.problem.startswith("planner ")
    late = f in (frees_too_early, reserves_too_late)
    assert late or f'"{f.__name__}"' in e.value.problem


def test_a_correct_planner_passes(monkeypatch):
    monkeypatch.setenv(VARIABLE, "2")
    with swapped(memory.place, _stacked):
        Train()(x())


def three_steps():
    """Return the plan of tanh(exp(x)) + exp(x), where x is a 6 x 6 float64 tensor."""
    graph = Graph("law")
    value = graph.input("x", Spec((6, 6), flow.float64))
    with graph.building():
        once = REGISTRY["exp"](value)
        graph.outputs = [REGISTRY["tanh"](once) + once]
    with at_level(0):
        return make_plan(graph, {})


def drop_a_step(plan):
    plan.steps.pop(0)


def repeat_a_step(plan):
    plan.steps.append(plan.steps[-1])


def exchange_steps(plan):
    plan.steps[0], plan.steps[1] = plan.steps[1], plan.steps[0]


def write_into_the_input(plan):
    source = plan.where[plan.graph.inputs["x"]]
    step = plan.steps[0]
    step.places = [step.places[0], source]
    plan.where[step.node.outputs[0]] = source


def write_over_a_value_that_is_read_later(plan):
    """Put the second result into the first one's buffer, which the third step reads."""
    first, second = plan.steps[0].node.outputs[0], plan.steps[1].node.outputs[0]
    plan.where[second].buffer = plan.where[first].buffer


def share_scratch(plan):
    scratch = memory.Buffer("scratch", "scratch", 64, 0, len(plan.steps), 1 << 16)
    plan.buffers.append(scratch)
    plan.arena = (1 << 16) + 64
    plan.steps[0].scratch = plan.steps[1].scratch = scratch


def look_outside_a_buffer(plan):
    plan.steps[0].places[-1].offset = 1


def forget_a_buffer(plan):
    plan.buffers.remove(plan.steps[0].places[-1].buffer)


PLANS = [
    drop_a_step,
    repeat_a_step,
    exchange_steps,
    write_into_the_input,
    write_over_a_value_that_is_read_later,
    share_scratch,
    look_outside_a_buffer,
    forget_a_buffer,
]


@pytest.mark.parametrize("corrupt", PLANS, ids=lambda f: f.__name__)
def test_a_plan_that_breaks_a_rule_is_detected(corrupt):
    plan = three_steps()
    check_plan(plan)
    corrupt(plan)
    with pytest.raises(GraphError, match='planner "make_plan": '):
        check_plan(plan)


def _takes_any_input(self, node, places, names, number):
    """Compute in place even if the input is read again."""
    spec = node.outputs[0].spec
    return next(
        (
            p
            for p in places
            if p.buffer.kind == "temp"
            and p.spec == spec
            and p.contiguous
            and not p.offset
            and p.buffer.nbytes == spec.nbytes
        ),
        None,
    )


def test_in_place_computation_over_a_needed_value_is_detected(monkeypatch):
    monkeypatch.setenv(VARIABLE, "1")
    with swapped(Planner.reusable, _takes_any_input), pytest.raises(GraphError, match="planner "):
        Train()(x())


# --- front ends and settings
# ------------------------------------------------------------------------------------------


def test_the_environment_variable_sets_the_level(monkeypatch):
    for text, number in (("", 0), ("0", 0), ("1", 1), ("2", 2)):
        monkeypatch.setenv(VARIABLE, text)
        assert level() == number
    monkeypatch.setenv(VARIABLE, "yes")
    with pytest.raises(ArgumentError, match=VARIABLE):
        level()
    monkeypatch.delenv(VARIABLE)
    assert level() == 0


def test_a_graph_must_be_called_before_it_is_checked():
    with pytest.raises(GraphError, match="not compiled yet"):
        Train().check()


def test_loaded_graphs_are_checked(tmp_path, registered, monkeypatch):
    graph = nn.Graph.trace(lambda x: (x.exp() + 1).tanh() * x)
    graph(x())
    flow.save(graph, tmp_path / "g")
    flow.load_graph(tmp_path / "g").check()
    monkeypatch.setenv(VARIABLE, "1")
    registered(removes_a_node_that_is_read)
    with pytest.raises(CheckpointError, match="removes_a_node_that_is_read"):
        flow.load_graph(tmp_path / "g")


def test_jobs_are_checked(registered, monkeypatch):
    from flowedu import typing as tp

    monkeypatch.setenv(VARIABLE, "2")

    def body(a: tp.Numpy.Placeholder((3, 4))) -> tp.Numpy:
        return flow.math.tanh(flow.math.exp(a))

    flow.clear_default_session()
    job = flow.global_function("predict")(body)
    a = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_allclose(job(a), np.tanh(np.exp(a)), rtol=1e-6)  # some 8 eps of float32
    job.check()
    registered(removes_a_node_that_is_read)
    flow.clear_default_session()
    with pytest.raises(GraphError, match='pass "removes_a_node_that_is_read": '):
        flow.global_function("predict")(body)(a)


def test_graphs_of_global_tensors_are_checked(world, registered, monkeypatch):
    monkeypatch.setenv(VARIABLE, "0")
    world(2)
    place = flow.placement("cpu", [0, 1])
    a = x().to_global(place, flow.sbp.broadcast)
    graph = nn.Graph.trace(lambda x: (x.exp() + 1).tanh())
    graph(a)
    graph.check()
    registered(removes_a_node_that_is_read)
    with pytest.raises(GraphError, match='pass "removes_a_node_that_is_read": '):
        graph.check()


def test_nothing_is_checked_by_default(tmp_path):
    """Runs in a new process: neither a pass nor a plan is checked."""
    program = (
        "import flowedu as flow\nfrom flowedu.diagnostics import verify\n"
        "def no(*a): raise AssertionError\nverify.check_graph = verify.check_plan = no\n"
        "g = flow.nn.Graph.trace(lambda x: x.exp())\nprint(g(flow.zeros(2)).numpy().tolist())\n"
    )
    env = {k: v for k, v in os.environ.items() if k != VARIABLE}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, cwd=tmp_path, capture_output=True, encoding="utf-8"
    )
    assert done.stdout.strip() == "[1.0, 1.0]", done.stderr


@pytest.mark.parametrize("dtype", [flow.float16, flow.bfloat16, flow.float64], ids=str)
def test_results_of_other_dtypes_are_compared(dtype, monkeypatch):
    monkeypatch.setenv(VARIABLE, "2")
    nn.Graph.trace(lambda x: ((x * 0.3).tanh() + x.sum()) * x)(x().to(dtype))
