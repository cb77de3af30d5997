"""Laws of the registers for one's own passes, planners, and boxing primitives, and of flow.ops.signatures.

The primitive `half` sends floats as float16. It moves half of the bytes, and it is exact for the small
integers of these tests.
"""
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from common import refused
from dist.boxing_common import draw_integers, gather, layout_pairs, layouts, scatter
from flowedu.core import extensions
from flowedu.core.graph import memory, passes
from flowedu.core.sbp import choose
from flowedu.core.sbp.boxing import MOVE, Primitive, geometry, inops, primitives, route
from flowedu.core.sbp.candidates import ways
from flowedu.core.sbp.ranks import VirtualEngine as SharedMemory
from flowedu.core.sbp.sbp import layout
from flowedu.core.values.spec import Spec
from flowedu.distributed import perform, spawn
from flowedu.distributed.ranks.workers import VirtualEngine
from flowedu.errors import ArgumentError, GraphError
from flowedu.swap.registers import register_boxing, register_pass, register_planner, restored


def converts(src, dst, shape):
    return src.slots == dst.slots == 1 and src.devices != dst.devices


def halves(src, dst, shape):
    """Return the elements of float32 that carry each message: half of them, rounded up."""
    return {pair: -(-n // 2) for pair, n in geometry.messages(src, dst, shape).items()}


def run_half(src, dst, spec):
    run = inops.make_transfer(src, dst, spec)
    return lambda parts: [p.half().to(q.dtype) for p, q in zip(run(parts), itertools.cycle(parts))]


HALF = Primitive("half", lambda src, dst, shape: "half", converts, halves,
                 lambda src, dst, shape: sum(halves(src, dst, shape).values()), run_half)


def perform_route(r, parts, engine):
    """Return the parts after a route, computed by one thread per rank."""
    have = dict(zip(r.src.devices, parts))
    ranks = sorted({*r.src.devices, *r.dst.devices})
    results = engine(8).run({d: (lambda comm, d=d: r.perform(comm, have.get(d))) for d in ranks})
    return [results[d] for d in r.dst.devices]


# ---- boxing primitives
@given(layout_pairs(), st.integers(0, 9))
def test_a_primitive_is_used_where_it_is_cheapest_and_keeps_the_value(pair, seed):
    shape, src, dst = pair
    spec, x = Spec(shape, flow.float32), draw_integers(shape, np.float32, seed)
    parts = scatter(x, src, np.random.default_rng(seed))
    reference = route(src, dst, spec)
    with restored():
        register_boxing(HALF)
        r = route(src, dst, spec)
        assert r.bytes == sum(n for *_, n in r.messages()) <= reference.bytes
        plain = src.plain, dst.plain
        if converts(*plain, shape):
            alone = sum(halves(*plain, shape).values()) * 4
            assert r.bytes <= alone
            assert alone >= reference.bytes or any(h.primitive is HALF for h in r.hops)
        results = [[p.numpy() for p in r.run([flow.tensor(p) for p in parts])],
                   perform_route(r, parts, VirtualEngine), perform_route(r, parts, SharedMemory)]
    for result in results:
        np.testing.assert_array_equal(gather(result, dst), x)
    assert route(src, dst, spec).hops == reference.hops


def test_a_dearer_primitive_is_not_used():
    dear = HALF.__class__("dear", HALF.label, HALF.when, geometry.messages, geometry.moved, run_half)
    places = [((0, 1), (2,)), ((2, 3), (2,)), ((0, 1, 2, 3), (2, 2))]
    spec = Spec((5, 4), flow.float32)
    at = [x for place in places for x in layouts(spec.shape, *place)]
    with restored():
        register_boxing(dear)
        assert not [h for src, dst in itertools.product(at, at) for h in route(src, dst, spec).hops
                    if h.primitive is dear]


def test_ranks_run_the_program_of_a_primitive():
    """Ranks that are threads run the primitive's own program."""
    first, last = flow.placement("cpu", [0, 1]), flow.placement("cpu", [2, 3])
    calls = []

    def on_rank(hop, rank):
        program = perform.transferred(hop.src, hop.dst, hop.spec, rank)
        return lambda comm, part, what: (calls.append(rank), program(comm, part, what))[1]

    def move():
        x = flow.arange(8.0).reshape(4, 2).to_global(first, flow.sbp.broadcast)
        return x.to_global(sbp=flow.sbp.split(0)).to_global(last, flow.sbp.split(1)).numpy().tolist()

    want = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]]
    with restored():
        register_boxing(HALF, on_rank)
        assert spawn(move, 4) == [want] * 4 and sorted(set(calls)) == [0, 1, 2, 3]


def test_tensors_and_graphs_use_a_primitive(world):
    first, last = flow.placement("cpu", [0, 1]), flow.placement("cpu", [2, 3])
    world(4)
    fraction = 1 + 2.0 ** -20                                # float16 rounds it to 1
    x = flow.full((4, 2), fraction, placement=first, sbp=flow.sbp.split(0))

    def move(x):
        return x.to_global(last, flow.sbp.split(1)) * 1

    def both():
        return move(x).numpy(), flow.nn.Graph.trace(move)(x).numpy()

    before = both()
    with restored():
        register_boxing(HALF)
        inside = both()
    for result, one in (*((r, fraction) for r in (*before, *both())), *((r, 1) for r in inside)):
        np.testing.assert_array_equal(result, np.full((4, 2), one, np.float32))


def sends_the_first_addend(src, dst, spec):
    run = inops.make_transfer(src._replace(sbp=("B",) * len(src.sbp)), dst, spec)
    return lambda parts: run(parts)


def swaps_the_first_parts(src, dst, spec):
    run = inops.make_transfer(src, dst, spec)
    return lambda parts: [y + 1 if i else y for i, y in enumerate(run(parts))]


def returns_one_part(src, dst, spec):
    run = inops.make_transfer(src, dst, spec)
    return lambda parts: run(parts)[:1]


def raises(src, dst, spec):
    raise ZeroDivisionError("planted")


PLANTED = {
    "loses_addends": (lambda s, d, shape: s.slots > 1 and d.slots == 1 and len(s.sbp) == 1, geometry.messages,
                      geometry.moved, sends_the_first_addend, "the value changes"),
    "adds_one": (lambda s, d, shape: s.slots == d.slots == 1 and d.k > 1, geometry.messages, geometry.moved,
                 swaps_the_first_parts, "copies of an element differ|the value changes"),
    "one_part": (converts, geometry.messages, geometry.moved, returns_one_part, "another shape or dtype"),
    "raises": (converts, geometry.messages, geometry.moved, raises, "raised ZeroDivisionError"),
    "too_cheap": (converts, geometry.messages, lambda *call: 0, run_half, "not those of its messages"),
    "to_itself": (converts, lambda s, d, shape: {(s.devices[0],) * 2: 1}, lambda *call: 1, run_half,
                  "not possible"),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_wrong_primitive_is_reported_with_its_name(kind, monkeypatch):
    *functions, problem = PLANTED[kind]
    wrong = Primitive(kind, lambda *call: kind, *functions)
    monkeypatch.setenv("FLOWEDU_CHECK_GRAPH", "1")
    before = read_registers()
    with restored(), pytest.raises(GraphError, match=problem) as e:
        register_boxing(wrong)
    assert e.value.problem.startswith(f'boxing "{kind}": ') and read_registers() == before
    monkeypatch.setenv("FLOWEDU_CHECK_GRAPH", "0")
    with restored():
        register_boxing(wrong)


def test_the_checks_accept_the_librarys_primitives(monkeypatch):
    monkeypatch.setenv("FLOWEDU_CHECK_GRAPH", "1")
    for p in (*primitives.PRIMITIVES, HALF):
        with restored():
            register_boxing(Primitive(f"own {p.kind}", p.label, p.when, p.messages, p.elements, p.in_ops))


# ---- planners
def keep_apart(buffers):
    size = 0
    for b in buffers:
        if b.in_arena:
            b.offset = size
            size += memory.rounded(b.nbytes)
    return size


def all_at_zero(buffers):
    for b in buffers:
        b.offset = 0
    return sum(memory.rounded(b.nbytes) for b in buffers)


def compile_graph():
    graph = flow.nn.Graph.trace(lambda x: ((x.exp() + 1).sum(1, keepdim=True) * x).tanh())
    return graph, graph(flow.ones(3, 4)).numpy()


def test_a_planner_places_the_buffers_of_graphs():
    _, want = compile_graph()
    with restored():
        register_planner(keep_apart)
        graph, result = compile_graph()
        plan = graph._compiled.program.plan
        assert plan.arena == sum(memory.rounded(b.nbytes) for b in plan.buffers if b.in_arena)
    np.testing.assert_array_equal(result, want)


def test_a_wrong_planner_is_reported_with_its_name(monkeypatch):
    monkeypatch.setenv("FLOWEDU_CHECK_GRAPH", "1")
    with restored(), pytest.raises(GraphError) as e:
        register_planner(all_at_zero)
        flow.nn.Graph.trace(lambda x: x.exp().sum(1) @ x.tanh().cumsum(0))(flow.ones(3, 3))
    assert e.value.problem.startswith('planner "all_at_zero": ')
    compile_graph()


# ---- restored and report
def read_registers():
    return ([*passes.PASSES], [*passes.NAMES], {**passes.PARTS}, {**perform.PROGRAMS}, primitives.BOXING.best,
            vars(extensions).get("place_buffers"), flow.report())


def no_change(graph):
    return ""


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_after_the_block_the_registers_are_as_before(error):
    before = read_registers()
    try:
        with restored():
            register_pass(no_change, before=passes.dead, a_part=())
            register_planner(keep_apart)
            register_boxing(HALF, lambda hop, rank: None)
            inner = read_registers()
            with restored():
                register_planner(all_at_zero)
                register_boxing(Primitive("second", *[getattr(HALF, n) for n in (
                    "label", "when", "messages", "elements", "in_ops")]))
                assert "second" in flow.report() and "all_at_zero" in flow.report()
            assert read_registers() == inner != before
            if error:
                raise error
    except (ValueError, KeyboardInterrupt):
        pass
    assert read_registers() == before


def test_report_lists_what_is_registered_with_its_line():
    own = "no_change", "keep_apart", "half"
    assert not any(name in flow.report() for name in own)
    with restored():
        register_pass(no_change)
        register_planner(keep_apart)
        register_boxing(HALF)
        rows = [line.split(None, 1) for line in flow.report().splitlines()]
    assert [kind for kind, _ in rows] == ["passes", "planner", "boxing"]
    for (_, text), name in zip(rows, own):
        assert text.rpartition(name)[2].startswith(" (test_registers.py:"), text


def test_other_values_and_equal_kinds_are_refused():
    for f in (lambda: register_planner(3), lambda: register_boxing(HALF.label),
              lambda: register_boxing(MOVE)):
        with refused(ArgumentError):
            f()
    with restored():
        register_boxing(HALF)
        with refused(ArgumentError):
            register_boxing(HALF)


# ---- signatures
CALLS = {"matmul": [((4, 6), (6, 8)), {}], "add": [((4, 8), (4, 8)), {}], "relu": [((4, 8),), {}],
         "softmax": [((4, 8),), {"axis": 1}], "sum": [((4, 8),), {"axis": (1,), "keepdims": False}],
         "transpose": [((4, 8),), {"perm": (1, 0)}], "concat": [((4, 8), (4, 8)), {"axis": 0}],
         "max": [((4, 8),), {"axis": (0,), "keepdims": False}], "exp": [((8,),), {}]}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("k", [2, 4])
def test_signatures_are_those_among_which_the_interpreter_chooses(name, k):
    """For each signature, inputs with its layouts need no boxing, and its own signature is chosen."""
    shapes, attrs = CALLS[name]
    op, specs = flow.ops.REGISTRY[name], [Spec(s, flow.float32) for s in shapes]
    legal = flow.ops.signatures(name, *shapes, **attrs)
    assert legal == flow.ops.signatures(op, *specs, **attrs) == flow.ops.signatures(
        op, *map(flow.ones, shapes), **attrs)
    complete, devices = op.complete(attrs), tuple(range(k))
    candidates = [way.signature for way in ways(op, tuple(specs), complete, (k,))]
    assert [tuple((s,) for s in signature) for signature in legal] == candidates
    for signature in legal:
        present = [[layout(s, devices)] for s in signature[:len(specs)]]
        choice = choose.choose(op, specs, complete, present, devices)
        assert tuple(s for (s,) in choice.signature) in legal and choice.bytes == 0


def test_signatures_refuse_what_is_no_call():
    for f in (lambda: flow.ops.signatures("matmull", (2, 2), (2, 2)),
              lambda: flow.ops.signatures("add", 3, "x")):
        with refused(ArgumentError):
            f()
