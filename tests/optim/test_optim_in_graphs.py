"""An optimizer and schedule train equally in an nn.Graph and step by step."""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn, optim
from flowedu.optim import lr_scheduler as L

OPTIMIZERS = [
    ("SGD", {}), ("SGD", {"weight_decay": 0.1}), ("SGD", {"momentum": 0.9, "dampening": 0.2}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}), ("SGD", {"maximize": True}),
    ("Adam", {}), ("Adam", {"amsgrad": True, "weight_decay": 0.1}), ("AdamW", {"weight_decay": 0.1}),
    ("Adam", {"do_bias_correction": False}), ("LAMB", {"weight_decay": 0.1}),
    ("LAMB", {"adam_w_mode": False}), ("RMSprop", {}), ("RMSprop", {"centered": True, "weight_decay": 0.1}),
    ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.3}), ("Adadelta", {"weight_decay": 0.1}),
]
SCHEDULES = [None, lambda o: L.WarmUpLR(L.CosineDecayLR(o, 5, 0.1), 0.1, 2),
             lambda o: L.LambdaLR(o, [lambda n: 1 / (n + 1),
                               lambda n: n + 1]),
             lambda o: L.ChainedScheduler([L.ConstantLR(o, 0.5, 2), L.StepLR(o, 2)]),
             lambda o: L.SequentialLR(o, [L.ExponentialLR(o, 0.5), L.LinearLR(o)], [2], True)]
RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((5, 8, 3)).astype(np.float32), RNG.standard_normal((5, 8, 1)).astype(np.float32)
W = [RNG.standard_normal(s).astype(np.float32) for s in ((3, 4), (4,), (4, 1))]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Parameter(flow.tensor(w)) for w in W)

    def forward(self, x):
        return flow.tanh(x @ self.a + self.b) @ self.c


def make_training_objects(name, options, schedule):
    model = Model()
    clip = {"clip_grad_max_norm": 0.3, "clip_grad_norm_type": 2.0}
    groups = [{"params": [model.a, model.b], **clip}, {"params": [model.c], "lr": 0.02}]
    optimizer = getattr(optim, name)(groups, **{"lr": 0.01, **options})
    return model, optimizer, schedule and schedule(optimizer)


def train_eagerly(name, options, schedule):
    model, optimizer, rates = make_training_objects(name, options, schedule)
    for x, y in zip(X, Y):
        ((model(flow.tensor(x)) - flow.tensor(y)) ** 2).mean().backward()
        with pytest.warns(UserWarning):              # the second group clips nothing
            optimizer.clip_grad()
        optimizer.step()
        optimizer.zero_grad()
        if rates:
            rates.step()
    return [p.numpy() for p in model.parameters()], optimizer


def train_in_graph(name, options, schedule):
    model, optimizer, rates = make_training_objects(name, options, schedule)

    class Train(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model
            self.add_optimizer(optimizer, lr_sch=rates)

        def build(self, x, y):
            loss = ((self.model(x) - y) ** 2).mean()
            loss.backward()
            return loss

    graph = Train()
    for x, y in zip(X, Y):
        graph(flow.tensor(x), flow.tensor(y))
    return [p.numpy() for p in model.parameters()], graph


@pytest.mark.parametrize("case", [(n, o, None) for n, o in OPTIMIZERS] + [("Adam", {}, s) for s in SCHEDULES],
                         ids=lambda c: f"{c[0]}-{c[1]}-{SCHEDULES.index(c[2])}")
def test_graph_and_eager_agree(case):
    want, optimizer = train_eagerly(*case)
    got, graph = train_in_graph(*case)
    for a, b in zip(got, want):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=4e-7)
    states = graph.state_dict()
    assert states["System-Train-TrainStep"].tolist() == [5]
    for s in optimizer.update_of(optimizer.param_groups[1]).states:
        mine = optimizer.state[optimizer.param_groups[1]["params"][0]][s.key]
        np.testing.assert_allclose(states[f"model.c-{s.suffix}"].numpy(), mine.numpy(), rtol=2e-5, atol=1e-6)


def test_a_metric_schedule_is_refused_in_a_graph():
    model, optimizer, _ = make_training_objects("SGD", {}, None)
    with pytest.raises(AssertionError, match="ReduceLROnPlateau"):
        nn.Graph().add_optimizer(optimizer, lr_sch=L.ReduceLROnPlateau(optimizer))


@pytest.mark.parametrize("call", ["step", "zero_grad"])
def test_calls_inside_build_are_refused(call):
    model, optimizer, _ = make_training_objects("SGD", {}, None)

    class Bad(nn.Graph):
        def __init__(self):
            super().__init__()
            self.model = model

        def build(self, x):
            y = self.model(x)
            getattr(optimizer, call)()
            return y

    with pytest.raises(RuntimeError, match="eager tensors supported only"):
        Bad()(flow.tensor(X[0]))
