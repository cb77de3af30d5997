"""graph.schedule(): the order of the passes of micro-batches on each rank."""
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowedu as flow
from flowedu import nn
from flowedu.distributed import set_virtual_devices
from svg_text import misplaced

from .making import make_graph, make_sgd

B = flow.sbp.broadcast
few = settings(max_examples=max(8, settings().max_examples // 4))


@pytest.fixture(autouse=True)
def restore_devices():
    yield
    set_virtual_devices(1)


def make_pipeline(count, micro):
    """Return a called graph with one linear layer on each of `count` ranks."""
    set_virtual_devices(count)
    places = [flow.placement("cpu", [r]) for r in range(count)]
    parts = nn.ModuleList([nn.Linear(6, 6).to_global(p, B) for p in places])

    def build(self, x):
        for place, part in zip(places, self.parts):
            x = part(x.to_global(placement=place)).relu()
        loss = x.sum()
        loss.backward()
        return loss

    graph = make_graph(build, make_sgd(parts), parts=parts,
                       config={"set_gradient_accumulation_steps": micro})
    graph(flow.ones(micro * 2, 6, placement=places[0], sbp=B))
    return graph


@few
@given(st.integers(2, 4), st.integers(1, 5))
def test_a_pipeline_alternates_passes_and_keeps_dependencies(count, micro):
    graph = make_pipeline(count, micro)
    stages = graph.schedule().stages
    assert [s.rank for s in stages] == list(range(count))
    slot = {(s.rank, p): i for s in stages for p, i in zip(s.passes, s.slots)}
    for s in stages:
        assert sorted(s.passes) == [(i, back) for i in range(micro) for back in (False, True)]
        assert list(s.slots) == sorted(set(s.slots))
        assert {f"parts.{s.rank}.weight", f"parts.{s.rank}.bias"} <= set(s.variables)
        alive = 0
        for _, back in s.passes:
            alive += -1 if back else 1
            assert 0 <= alive <= count - s.rank, "activations of more micro-batches than stages that follow"
    for r in range(count - 1):
        for i in range(micro):
            assert slot[r, (i, False)] < slot[r + 1, (i, False)]
            assert slot[r, (i, True)] > slot[r + 1, (i, True)]


def test_the_table_and_the_drawing_have_a_row_for_each_rank(tmp_path):
    schedule = make_pipeline(3, 2).schedule()
    assert repr(schedule).split("\n") == ["rank 0   F0 F1          B0    B1",
                                          "rank 1      F0 F1    B0    B1",
                                          "rank 2         F0 B0 F1 B1"]
    root = ElementTree.parse(schedule.draw(tmp_path / "a" / "schedule.svg")).getroot()
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert all(texts.count(name) == 3 for name in ("F0", "F1", "B0", "B1")) and not misplaced(root)
    with pytest.raises(flow.errors.ArgumentError, match=r"schedule.draw: path"):
        schedule.draw(tmp_path / "schedule.png")


@pytest.mark.parametrize("micro", [1, 2, 3])
def test_a_graph_on_one_device_has_one_row(micro):
    model = nn.Linear(4, 2)

    def build(self, x):
        loss = self.model(x).sum()
        loss.backward()
        return loss

    graph = make_graph(build, make_sgd(model), model=model,
                       config={"set_gradient_accumulation_steps": micro})
    graph(flow.ones(6, 4))
    row = " ".join(f"F{i} B{i}" for i in range(micro))
    assert repr(graph.schedule()) == f"rank 0   {row}"


def test_a_graph_without_gradients_has_a_forward_pass():
    graph = make_graph(lambda self, x: x.exp() + 1)
    graph(flow.ones(3))
    assert repr(graph.schedule()) == "rank 0   F0"
