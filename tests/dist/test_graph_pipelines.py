"""Law: LeNet, MobileNetV2, and a GPT in two stages (first half on ranks 0 and 1, second on ranks 2 and 3),
with micro-batches, have the losses of one device over 20 steps.
"""
import numpy as np
import pytest

import flowedu as flow
from common import few
from flowedu import nn

from .plans import MODELS, spread
from .test_graph_models import losses


def layers(name, model):
    """Return the model as a list of modules, to be called in sequence."""
    pool = [nn.AdaptiveAvgPool2d(1)] if name == "mobilenet" else []
    return [*model.features, *pool, nn.Flatten(1), *model.classifier]


class Piped(nn.Graph):
    def __init__(self, first, second, p1, loss_of, members, micro):
        super().__init__()
        self.first = first
        self.second = second
        self.loss_of = loss_of
        self.p1 = p1
        if p1 is not None:
            self.second.to(nn.graph.GraphModule).set_stage(1, p1)
        self.add_optimizer(flow.optim.SGD(members, lr=0.0005, momentum=0.9))
        self.config.set_gradient_accumulation_steps(micro)

    def build(self, x, y):
        loss = self.loss_of(lambda x: self.second(self.first(x)), x, y)
        loss.backward()
        return loss


@pytest.mark.parametrize("name", few(["lenet", "mobilenet"], lambda name: name == "lenet"))
def test_pipeline(world, name):
    """A micro-batch has rows of each device (batch norm normalizes it as a whole), so the one device gets
    them in that order.
    """
    make, loss_of, x, y = MODELS[name]
    found = []
    for ranks in (None, ([0, 1], [2, 3])):
        world(4 if ranks else 1)
        flow.manual_seed(0)
        parts = layers(name, make())
        half = len(parts) // 2
        first, second = nn.Sequential(*parts[:half]), nn.Sequential(*parts[half:])
        members, places = [*first.parameters(), *second.parameters()], [{}, {}]
        if ranks:
            places = [dict(placement=spread(m, r, lambda name, p: flow.sbp.broadcast), sbp=flow.sbp.split(0))
                      for m, r in zip((first, second), ranks)]
        graph = Piped(first, second, places[1].get("placement"), loss_of, members, 2)
        order = np.arange(len(x)) if ranks else np.arange(len(x)).reshape(2, 2, -1).swapaxes(0, 1).ravel()
        found.append(losses(graph, flow.tensor(x[order], **places[0]), flow.tensor(y[order], **places[1])))
        if ranks:
            mine = {0: first, 1: first, 2: second, 3: second}
            for rank, memory in graph.memory().items():
                assert memory.parameters == sum(p.nbytes for p in mine[rank].parameters())
    assert found[0][-1] < found[0][0]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)


class PipedGPT(nn.Graph):
    """One block per stage. The embedding is in the first, and is sent to the second for the logits."""

    def __init__(self, model, p1, micro):
        super().__init__()
        self.model, self.p1 = model, p1
        self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.0005, momentum=0.9))
        self.config.set_gradient_accumulation_steps(micro)

    def build(self, idx, targets):
        m, there = (self.model, lambda x, sbp: x if self.p1 is None else x.to_global(placement=self.p1,
                                                                                     sbp=sbp))
        x = m.blocks[0](m.wte(idx) + m.wpe.weight[:idx.shape[1]])
        x = m.ln_f(m.blocks[1](there(x, flow.sbp.split(0))))
        logits = flow.nn.functional.linear(x, there(m.wte.weight, flow.sbp.broadcast))
        loss = flow.nn.functional.cross_entropy(logits.reshape(-1, m.vocab), targets.reshape(-1))
        loss.backward()
        return loss


def test_pipeline_of_a_gpt_with_tied_embeddings(world):
    make, _, x, y = MODELS["gpt"]
    found = []
    for ranks in (None, ([0, 1], [2, 3])):
        world(4 if ranks else 1)
        flow.manual_seed(0)
        model, places = make(), [{}, {}]
        if ranks:
            def whole(name, p):
                return flow.sbp.broadcast

            places = [dict(placement=flow.placement("cpu", r), sbp=flow.sbp.split(0)) for r in ranks]
            for part, r in ((model.wte, 0), (model.wpe, 0), (model.blocks[0], 0), (model.blocks[1], 1),
                            (model.ln_f, 1)):
                spread(part, ranks[r], whole)
        graph = PipedGPT(model, places[1].get("placement"), 2)
        found.append(losses(graph, flow.tensor(x, **places[0]), flow.tensor(y, **places[1])))
    assert found[0][-1] < found[0][0]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-6)
