"""flow.profiler: counts, times, and bytes of ops and ranges, and programs that it leaves unchanged."""
import json
import threading
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.core.eager.dispatch import call_seeded, run_unobserved, set_observer
from flowedu.core.ops.call import current_interpreter
from flowedu.core.values.storage import bytes_in_use
from flowedu.core.values.thread_state import thread_state
from flowedu.errors import ArgumentError
from flowedu.profiler import EventList, profile, record_function

# {step: (its function of a 3x3 tensor, the records that it runs)}
STEPS = {
    "add": (lambda x: x + 1.0, ["add"]),
    "mul": (lambda x: x * x, ["mul"]),
    "matmul": (lambda x: x @ x, ["matmul"]),
    "relu": (lambda x: x.relu(), ["relu"]),
    "tanh": (lambda x: x.tanh(), ["tanh"]),
    "view": (lambda x: x.T, ["transpose"]),
    "random": (lambda x: x * flow.rand(3, 3), ["random_uniform", "mul"]),
}
programs = st.lists(st.sampled_from(sorted(STEPS)), max_size=8)


def count_records(f):
    """Count the calls of each record in f(), with an observer of its own."""
    counts = Counter()

    def observe(op, inputs, attrs, drawn=None):
        if current_interpreter() is None:
            counts[op.name] += 1
        return run_unobserved(op, inputs, attrs) if drawn is None else call_seeded(op, inputs, attrs, *drawn)

    set_observer(observe)
    try:
        f()
    finally:
        set_observer(None)
    return counts


def run_program(steps):
    flow.manual_seed(0)
    x = y = flow.tensor(np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3), requires_grad=True)
    for name in steps:
        y = STEPS[name][0](y)
    (y.sum() + x.sum()).backward()
    return y.numpy().tobytes(), x.grad.numpy().tobytes()


@given(programs)
def test_calls_of_the_forward_pass_are_those_of_its_records(steps):
    x = flow.ones(3, 3)
    with profile() as p:
        for name in steps:
            x = STEPS[name][0](x)
    want = Counter(record for name in steps for record in STEPS[name][1])
    assert {e.key: e.count for e in p.key_averages()} == want


@given(programs)
def test_calls_with_the_backward_pass_are_those_of_the_dispatcher(steps):
    with profile() as p:
        run_program(steps)
    found = {e.key: e.count for e in p.key_averages()}
    assert found == count_records(lambda: run_program(steps))
    assert sum(found.values()) > len(steps)


@given(programs)
def test_results_have_the_same_bits(steps):
    plain = run_program(steps)
    with profile(record_shapes=True, profile_memory=True, with_stack=True):
        assert run_program(steps) == plain
    assert run_program(steps) == plain


ranges = st.recursive(programs, lambda inner: st.lists(inner, max_size=3), max_leaves=8)


def run_ranges(tree, kept, depth=0):
    """Run a tree of programs, each in a range of its own. kept: the tensors that stay in memory."""
    with record_function(f"range {depth}"):
        for child in tree:
            if isinstance(child, list):
                run_ranges(child, kept, depth + 1)
            else:
                kept.append(STEPS[child][0](flow.ones(3, 3)))


@given(ranges, st.booleans())
def test_self_times_and_self_bytes_add_up_to_those_of_the_range(tree, free):
    kept = []
    with profile(profile_memory=True) as p:
        before = bytes_in_use()
        with record_function("all"):
            run_ranges(tree, kept)
            if free:
                kept.clear()
        difference = bytes_in_use() - before
    events = p.events()
    whole = events[-1]
    assert whole.name == "all" and whole.cpu_parent is None
    assert whole.cpu_memory_usage == difference == sum(e.self_cpu_memory_usage for e in events)
    assert all(e.own_nanoseconds >= 0 for e in events)
    assert whole.nanoseconds == sum(e.own_nanoseconds for e in events)
    for e in events:
        assert all(c.cpu_parent is e for c in e.cpu_children)
        assert e.nanoseconds == e.own_nanoseconds + sum(c.nanoseconds for c in e.cpu_children)
        if not e.is_user_annotation:
            assert e.cpu_memory_usage >= 0                   # an op keeps its result, and frees its scratch
    total = p.key_averages().total_average()
    assert total.count == len(events) and total.nanoseconds == whole.nanoseconds


def test_an_op_has_the_bytes_of_its_result():
    x = flow.ones(64, 64)
    with profile(profile_memory=True) as p:
        y = x + x                                                               # 64 * 64 float32
        del y
    (event,) = p.events()
    assert event.cpu_memory_usage == event.self_cpu_memory_usage == 64 * 64 * 4


@pytest.mark.parametrize("place", ["op", "range", "backward"])
def test_an_error_leaves_the_dispatcher_as_before(place):
    x = flow.ones(2, 3, requires_grad=True)
    with pytest.raises((RuntimeError, ValueError)), profile(), record_function("a"):
        if place == "op":
            x @ x
        if place == "backward":
            x.backward()
        raise ValueError("in a range")
    assert thread_state.observer is None and thread_state.frames == () and thread_state.profiles == 0
    with profile() as p:
        x + x
    assert [e.name for e in p.events()] == ["add"]


def test_profiles_nest_and_measure_one_thread():
    x = flow.ones(2)
    with profile() as outer:
        x + x
        with profile() as inner:
            x * x
        x + x
        other = threading.Thread(target=lambda: x - x)
        other.start()
        other.join()
    x * x
    names = [[e.name for e in p.events()] for p in (outer, inner)]
    assert names == [["add", "mul", "add"], ["mul"]]


def test_traced_and_transformed_calls():
    """Calls that a graph traces are not measured. A function inside vmap runs its ops on the batch."""
    class Double(nn.Graph):
        def build(self, x):
            return x.exp() * 2.0

    x = flow.ones(3, 2)
    with profile() as p:
        graph = Double()
        y = graph(x)
    assert [e.name for e in p.events() if e.name == "exp"] == []
    assert y.numpy().tobytes() == (x.exp() * 2.0).numpy().tobytes()
    with profile() as p:
        flow.vmap(lambda row: row.exp().sum())(x)
    counts = Counter(e.name for e in p.events())
    assert counts["exp"] == counts["sum"] == 1


def test_autocast_is_the_same_with_a_profile():
    model, x = nn.Linear(4, 4), flow.ones(2, 4)

    def run():
        with flow.autocast("cpu", dtype=flow.bfloat16):
            return model(x)

    plain = run()
    with profile() as p:
        seen = run()
    assert seen.dtype is plain.dtype is flow.bfloat16
    assert seen.float().numpy().tobytes() == plain.float().numpy().tobytes()
    assert {e.name for e in p.events()} >= {"cast"}


def test_shapes_group_the_calls():
    with profile(record_shapes=True, with_stack=True) as p:
        for n in (2, 3, 3):
            flow.ones(n, 2) @ flow.ones(2, n)
    groups = {(e.key, str(e.input_shapes)): e.count for e in p.key_averages(group_by_input_shape=True)}
    assert groups["matmul", "[[2, 2], [2, 2]]"] == 1 and groups["matmul", "[[3, 2], [2, 3]]"] == 2
    assert "[[3, 2], [2, 3]]" in p.key_averages(group_by_input_shape=True).table()
    matmul = next(e for e in p.events() if e.name == "matmul")
    assert "test_profiler.py" in matmul.stack[0]
    lines = {e.stack[0] for e in p.key_averages(group_by_stack_n=1) if e.key == "matmul"}
    assert len(lines) == 1


def test_the_table_has_a_row_per_name():
    with profile(profile_memory=True) as p:
        x = flow.ones(4)
        for _ in range(3):
            x = x + x
        x.relu()
    table = p.key_averages().table(sort_by="count", row_limit=1)
    _, head, _, *rows = table.splitlines()
    assert head.split("  ")[0] == "Name" and "Self CPU Mem" in head and head.endswith("# of Calls")
    assert [r.split()[0] for r in rows[:-2]] == ["add"] and rows[0].split()[-1] == "3"
    assert rows[-1].startswith("Self CPU time total: ")
    assert len({len(line) for line in (head, rows[0])}) == 1
    assert len(p.key_averages().table(row_limit=-1).splitlines()) == 5 + 3
    with pytest.raises(ArgumentError, match="profiler.table: an event has no such number"):
        p.key_averages().table(sort_by="self_time")
    assert EventList().table().splitlines()[-1] == "Self CPU time total: 0.000us"


def test_a_trace_has_the_events(tmp_path):
    with profile(record_shapes=True) as p, record_function("step"):
        flow.ones(2).exp()
    p.export_chrome_trace(tmp_path / "deep" / "trace.json")
    events = json.loads((tmp_path / "deep" / "trace.json").read_text("utf-8"))["traceEvents"]
    assert [e["name"] for e in events] == [e.name for e in p.events()]
    step, exp = (next(e for e in events if e["name"] == name) for name in ("step", "exp"))
    # Microseconds are float64 quotients of nanoseconds; a clock of a year has errors below 0.01 us.
    assert step["ts"] <= exp["ts"] and exp["ts"] + exp["dur"] <= step["ts"] + step["dur"] + 0.01
    assert exp["args"] == {"Input Dims": [[2]]} and step["cat"] == "user_annotation"
    assert list(tmp_path.iterdir()) == [tmp_path / "deep"] and len(list((tmp_path / "deep").iterdir())) == 1


def test_a_schedule_selects_the_steps():
    ready = []
    with profile(schedule=flow.profiler.schedule(wait=1, warmup=1, active=2, repeat=1),
                 on_trace_ready=lambda p: ready.append([e.name for e in p.events()])) as p:
        for _ in range(6):
            flow.ones(2).exp()
            p.step()
    assert [[n for n in names if n != "constant"] for names in ready] == [
        ["exp", "ProfilerStep#2", "exp", "ProfilerStep#3"]]
    with profile(enabled=False) as p:
        flow.ones(2).exp()
        p.step()
    assert p.events() == [] and thread_state.observer is None
