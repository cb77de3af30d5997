"""Texts about a graph on a GPU name the GPU: print(graph), timeline, profile, and errors."""
import re

import pytest

import flowedu as flow
from flowedu import nn


class Train(nn.Graph):
    def __init__(self, model, optimizer):
        super().__init__()
        self.model = model
        self.add_optimizer(optimizer)

    def build(self, x):
        loss = self.model(x).sum()
        loss.backward()
        return loss


def make_graph_and_input(device):
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).to(device)
    return Train(model, flow.optim.SGD(model.parameters(), lr=0.1)), flow.ones(2, 4, device=device)


def test_a_graph_on_a_gpu_is_printed_with_its_device():
    graph, x = make_graph_and_input("cuda:0")
    for _ in range(2):
        text = re.sub(r",\n +", ", ", repr(graph))
        leaves = re.findall(r"\((?:INPUT|PARAMETER|BUFFER|OUTPUT):.*", text)
        assert leaves and all("tensor(..., device='cuda:0', " in line for line in leaves), text
        assert 'type="cpu"' not in text
        graph(x)
    operators = re.findall(r"\(OPERATOR: .*", text)
    assert (operators and all('placement=(flowedu.placement(type="cuda", ranks=[0]))' in line
                              for line in operators))
    for measured in (graph.timeline(x), graph.profile(x)):
        assert " ms" in repr(measured) and "thread" not in repr(measured)
    assert " ms on cuda:0" in repr(graph.timeline(x))
    names = [e["args"]["name"] for e in graph.timeline(x).chrome()["traceEvents"]
             if e["name"] == "thread_name"]
    assert names == ["cuda:0"]
    with pytest.raises(flow.errors.GraphError) as e:
        graph(flow.ones(3, 4, device="cuda:0"))
    assert "device=cuda:0" in e.value.expected and "device=cuda:0" in e.value.got


def test_a_graph_on_the_cpu_is_printed_without_a_device():
    graph, x = make_graph_and_input("cpu")
    graph(x)
    assert "device=" not in repr(graph) and 'type="cuda"' not in repr(graph)
    assert " thread" in repr(graph.timeline(x))
