"""Ranks that pass different global tensors to the same collective calls are stopped; valid programs run.

A program is generated as the text of a file, so that the error can be checked for the line of each rank.
"""
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flowedu as flow
from flowedu.errors import CommError

from .ranks import launch, mpi

# two values of one shape, dtype, and layout: expressions that create {name}
MAKERS = [
    "{name} = flow.full((6, 6), {i}.0, placement=P, sbp=S)",
    "{name} = flow.randn(6, 6, placement=P, sbp=S)",
    "{name} = flow.tensor(np.full((6, 6), {i}.0, np.float32), placement=P, sbp=S)",
    "{name} = flow.full((6 // size, 6), {i}.0).to_global(P, S)",
    "{name} = flow.zeros(6, 6, placement=P, sbp=S).add_({i}.0)",
    "{name} = flow.ones(6, 6, placement=P, sbp=S); {name}.fill_({i}.0)",
    "{name} = base['{name}'] + 1",
    "{name} = (base['{name}'] * 2).relu()",
    "{name} = base['{name}'].detach().clone()",
    "{name} = whole['{name}'][{i}:{i} + 6].to_global(sbp=S)",
    "{name} = wide[:, {i}:{i} + 6]",
    "{name} = base['{name}'].to_global(sbp=flow.sbp.split(1)).to_global(sbp=S)",
    "{name} = flow.full((6, 6), {i}.0, placement=first, sbp=flow.sbp.broadcast).to_global(P, S)",
    "leaf = base['{name}'].detach().requires_grad_(); (leaf * leaf).sum().backward(); {name} = leaf.grad",
    "{name} = nn.Linear(6, 6, bias=False).to_global(P, flow.sbp.broadcast).weight.to_global(sbp=S)",
]
USES = [
    "{name}.numpy()", "{name}.to_global(sbp=flow.sbp.broadcast)", "{name}.to_global(sbp=flow.sbp.split(1))",
    "{name}.sum().item()", "str({name})", "{name}.tolist()",
    "({name}.t() @ {name}).to_global(sbp=flow.sbp.broadcast)",
    "{name}.to_global(first, flow.sbp.broadcast)", "{name}.mean().to_global(sbp=flow.sbp.broadcast)",
]

HEAD = """
import numpy as np
import flowedu as flow
from flowedu import nn

rank, size = flow.env.get_rank(), flow.env.get_world_size()
P, S, first = flow.placement.all("cpu"), flow.sbp.split(0), flow.placement("cpu", [0])
base = {n: flow.full((6, 6), float(i), placement=P, sbp=S) for i, n in enumerate("abc")}
whole = {n: flow.full((12, 6), float(i), placement=P, sbp=flow.sbp.split(1)) for i, n in enumerate("abc")}
wide = flow.ones(6, 12, placement=P, sbp=S)
"""


def source(makers, use, orders) -> tuple[str, dict]:
    """Return the text of a program that creates a, b, c and uses them in the order of its rank; {(rank,
    name): line}.
    """
    names = "abc"[:len(makers)]
    lines = HEAD.strip().splitlines()
    lines += [m.format(name=n, i=i + 1) for i, (n, m) in enumerate(zip(names, makers))]
    lines.append("found = {}")
    at = {}
    for rank, order in enumerate(orders):
        lines.append(f"if rank == {rank}:")
        for name in order:
            lines.append(f"    found['{name}'] = " + use.format(name=name))
            at[rank, name] = len(lines)
    return "\n".join(lines) + "\n", at


def run_on_threads(folder, text: str, k: int) -> list[dict]:
    file = folder / "program.py"
    file.write_text(text, encoding="utf-8")
    code = compile(text, str(file), "exec")

    def program():
        names = {"__name__": "program"}
        exec(code, names)
        return names.get("found")
    return flow.distributed.spawn(program, k)


@given(st.data())
def test_ranks_that_use_values_in_another_order_are_stopped(tmp_path_factory, data):
    k = data.draw(st.sampled_from([2, 3]))
    makers = data.draw(st.lists(st.sampled_from(MAKERS), min_size=2, max_size=3))
    names = "abc"[:len(makers)]
    use = data.draw(st.sampled_from(USES))
    odd = data.draw(st.integers(0, k - 1))
    order = data.draw(st.permutations(names).filter(lambda p: "".join(p) != names))
    orders = [order if r == odd else names for r in range(k)]
    text, at = source(makers, use, orders)
    with pytest.raises(CommError) as caught:
        run_on_threads(tmp_path_factory.mktemp("p"), text, k)
    message = str(caught.value)
    wrong = next(i for i, n in enumerate(names) if order[i] != n)
    assert "different global tensors" in message or "collectives of one group differ" in message, message
    assert f"program.py:{at[odd, order[wrong]]}" in message, message
    assert any(f"program.py:{at[r, names[wrong]]}" in message for r in range(k) if r != odd), message


@given(st.data())
def test_ranks_that_use_values_in_one_order_get_results(tmp_path_factory, data):
    k = data.draw(st.sampled_from([2, 3]))
    makers = data.draw(st.lists(st.sampled_from(MAKERS), min_size=2, max_size=3))
    names = "abc"[:len(makers)]
    order = data.draw(st.permutations(names))
    text, _ = source(makers, "{name}.numpy()", [order] * k)
    found = run_on_threads(tmp_path_factory.mktemp("p"), text, k)
    for name in names:
        for other in found[1:]:
            np.testing.assert_array_equal(found[0][name], other[name])


LEGAL = [
    "x = flow.ones(3, 3)                                       # local tensors",
    "x = flow.randn(6, 6)",
    "x = a.to_local() * 2",
    "x = (tuple(a.shape), a.sbp, a.placement, a.dtype, a.parts)",
    "x = (a + 1).to_local()                                    # global ops that send nothing",
    "x = (a * b).relu().to_local().numpy()",
    "x = a.detach().clone()",
    "x = flow.no_grad()",
    "leaf = a.detach().requires_grad_(); (leaf * 2).to_local()",
    "x = flow.save({'w': a.to_local()}, path) if False else None",
    "x = repr(a.to_local())",
    "alone = nn.Linear(2, 2)(flow.ones(1, 2)).sum().backward()",
]


@given(st.lists(st.sampled_from(LEGAL), min_size=1, max_size=4), st.integers(0, 1), st.sampled_from(MAKERS))
def test_local_operations_of_one_rank_are_allowed(tmp_path_factory, extra, rank, maker):
    lines = HEAD + "".join(maker.format(name=n, i=i + 1) + "\n" for i, n in enumerate("ab"))
    lines += f"if rank == {rank}:\n" + "".join(f"    {line}\n" for line in extra)
    lines += textwrap.dedent("""
        c = flow.full((6, 6), 3.0, placement=P, sbp=S)
        d = (a + 1) * b + flow.randn(6 // size, 6).to_global(P, S)
        found = {"a": a.numpy(), "c": c.numpy(), "d": d.numpy(), "sum": (a * b).sum().item()}
    """)
    found = run_on_threads(tmp_path_factory.mktemp("p"), lines, 2)
    for name in found[0]:
        np.testing.assert_array_equal(found[0][name], found[1][name])


def test_python_numbers_may_differ_between_ranks():
    """Python numbers are not compared: a rank may weight its part of a partial sum."""
    def program():
        rank = flow.env.get_rank()
        x = flow.ones(2).to_global(flow.placement.all("cpu"), flow.sbp.partial_sum)
        return (x * float(rank + 1)).numpy().tolist()
    assert flow.distributed.spawn(program, 2) == [[3.0, 3.0]] * 2


def test_ranks_of_different_placements_work_independently():
    def program():
        rank = flow.env.get_rank()
        mine = flow.placement("cpu", [0, 1] if rank < 2 else [2, 3])
        for _ in range(1 + 2 * (rank >= 2)):
            x = flow.full((4, 2), float(rank // 2), placement=mine, sbp=flow.sbp.split(0))
            y = (x + 1).to_global(sbp=flow.sbp.broadcast)
        everywhere = flow.ones(4, 2, placement=flow.placement.all("cpu"), sbp=flow.sbp.split(0))
        return y.to_local().sum().item(), everywhere.sum().item()
    assert flow.distributed.spawn(program, 4) == [(8.0, 8.0)] * 2 + [(16.0, 8.0)] * 2


GRAPHS = """
import flowedu as flow
from flowedu import nn

rank, P = flow.env.get_rank(), flow.placement.all("cpu")


class Net(nn.Graph):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4, bias=False).to_global(P, flow.sbp.broadcast)
        flow.nn.init.constant_(self.layer.weight, {weight})

    def build(self, x):
        return self.layer(x).sum()


f, g = Net(), Net()
x, y = (flow.full((4, 4), float(i), placement=P, sbp=flow.sbp.split(0)) for i in (1, 2))
f(x), g(x)                                                                  # compiled in one order
calls = {calls}
found = [h(z).item() for h, z in (calls if rank == {odd} else calls[::-1])]
"""


@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize("calls", ["[(f, x), (g, x)]", "[(f, x), (f, y)]", "[(f, y), (g, x)]"])
def test_ranks_that_call_graphs_in_another_order_are_stopped(tmp_path, calls, odd):
    with pytest.raises(CommError, match="different global tensors"):
        run_on_threads(tmp_path, GRAPHS.format(weight=0.5, calls=calls, odd=odd), 2)
    found = run_on_threads(tmp_path, GRAPHS.format(weight=0.5, calls=calls, odd=7), 2)
    assert found[0] == found[1]


def test_gradients_in_another_order_are_detected(tmp_path):
    text = HEAD + textwrap.dedent("""
        ps = [nn.Parameter(flow.ones(6, 6, placement=P, sbp=flow.sbp.broadcast)) for _ in range(2)]
        x = flow.full((6, 6), 2.0, placement=P, sbp=S)
        losses = [(p * p * x).sum() for p in ps]
        for loss in (losses if rank else losses[::-1]):
            loss.backward()
        found = [p.grad.numpy() for p in ps]
    """)
    with pytest.raises(CommError, match="different global tensors"):
        run_on_threads(tmp_path, text, 2)


SETS = """
import flowedu as flow

P, S = flow.placement.all("cpu"), flow.sbp.split(0)
w = {n: flow.full((6, 2), float(i), placement=P, sbp=S) for i, n in enumerate("qkvo")}
whole = {n: w[n].numpy() for n in {"q", "k", "v", "o"}}
print("wrong:", [n for i, n in enumerate("qkvo") if not (whole[n] == i).all()])
"""


@mpi
def test_sets_have_the_same_order_on_all_ranks(tmp_path):
    """The launcher sets one PYTHONHASHSEED for all ranks, keeps the user's, and detects random hashing."""
    done = launch(tmp_path, SETS, 3)
    assert done.code == 0 and done.out.split("\n")[:3] == ["wrong: []"] * 3, done.err
    seeds = launch(tmp_path, "import os; print(os.environ['PYTHONHASHSEED'])", 2, env={"PYTHONHASHSEED": "5"})
    assert seeds.out.split() == ["5", "5"]


SWAPPED = """
import flowedu as flow

rank, size = flow.env.get_rank(), flow.env.get_world_size()
P, S = flow.placement.all("cpu"), flow.sbp.split(0)
a, b = (flow.full((12, {n}), float(i), placement=P, sbp=S) for i in (1, 100))
if rank == 0:
    print(a.{use})
    print(b.{use})
else:
    print(b.{use})
    print(a.{use})
"""


# bytes of a rank's part: through shared memory; one MPI message; calls compared first. A route of several
# messages
@mpi
@pytest.mark.parametrize("k, n, use, options", [
    (2, 2, "numpy()", ()), (3, 2, "numpy()", ("--debug",)), (3, 2, "numpy()", ("--engine", "threads")),
    (2, 1 << 12, "numpy()", ()), (2, 1 << 16, "numpy()", ()), (3, 6, "to_global(sbp=flow.sbp.split(1))", ()),
    (4, 2, "sum().item()", ())])
def test_processes_that_use_values_in_another_order_are_stopped(tmp_path, k, n, use, options):
    done = launch(tmp_path, SWAPPED.format(n=n, use=use), k, *options)
    assert done.code, done.out
    assert "different global tensors" in done.err, done.err
    assert "script.py:8" in done.err and "script.py:11" in done.err, done.err
