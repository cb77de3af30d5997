"""Errors of add_optimizer and of training builds, with their messages; parameters stay unchanged."""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.errors import ShapeError, UnsupportedError
from flowedu.optim import lr_scheduler as S

from .making import batch, copy_state, make_graph, make_mlp, make_sgd, train_step, trainer

X, Y = batch()
LOSS = nn.CrossEntropyLoss()


def test_arguments_of_add_optimizer():
    g, model = make_graph(lambda self, x: x, model=(m := make_mlp())), m
    with pytest.raises(AssertionError, match="optimizer cannot be None"):
        g.add_optimizer(None)
    with pytest.raises(AssertionError, match="optimizer must be an instance of Optimizer"):
        g.add_optimizer(model)
    with pytest.raises(AssertionError, match="lr_sch cannot work in a graph"):
        g.add_optimizer(make_sgd(model), lr_sch=0.1)
    with pytest.raises(AssertionError, match="lr_sch belongs to another optimizer"):
        g.add_optimizer(make_sgd(model), lr_sch=S.StepLR(make_sgd(model), 2))
    optimizer = make_sgd(model)
    with pytest.raises(AssertionError, match="lr_sch cannot work in a graph") as e:
        g.add_optimizer(optimizer, lr_sch=S.ReduceLROnPlateau(optimizer))
    assert "ReduceLROnPlateau only works eagerly" in str(e.value) and not g.training
    g.add_optimizer(optimizer)
    assert g.training and repr(g.config) == "(CONFIG:config:GraphConfig(training=True, ))"
    with pytest.raises(ValueError, match=r"<model.2.weight> is already bound to another optimizer"):
        g.add_optimizer(flow.optim.Adam(model[2].parameters()))


def test_parameters_must_belong_to_the_graph():
    g = trainer(make_mlp(), make_sgd(make_mlp()))
    with pytest.raises(ValueError, match="is not in the corresponding nn.Graph/nn.Module"):
        g(X, Y)


def test_optimizer_before_module():
    class Early(nn.Graph):
        def __init__(self):
            super().__init__()
            self.add_optimizer(make_sgd(model))
            self.model, self.loss = model, LOSS

        build = train_step

    model = make_mlp()
    g = Early()
    assert g(X, Y).item() > g(X, Y).item()
    with pytest.raises(RuntimeError, match="already been compiled"):
        g.add_optimizer(make_sgd(model))


def assert_step_refused(build, match, error=RuntimeError, model=None, capsys=None):
    model = model or make_mlp()
    before = copy_state(model)
    g = make_graph(build, make_sgd(model), model=model, loss=LOSS)
    with pytest.raises(error, match=match):
        g(X, Y)
    assert all(np.array_equal(v, before[k]) for k, v in copy_state(model).items())


def test_backward_twice():
    def build(self, x, y):
        loss = self.loss(self.model(x), y)
        loss.backward()
        loss.backward()
        return loss
    assert_step_refused(build, "backward is called twice in one build")


def test_backward_without_optimizer():
    with pytest.raises(RuntimeError, match="there is no optimizer"):
        make_graph(train_step, model=make_mlp(), loss=LOSS)(X, Y)


def test_optimizer_without_backward():
    assert_step_refused(lambda self, x, y: self.model(x), "build calls no backward")


def test_loss_must_be_a_number():
    assert_step_refused(lambda self, x, y: self.model(x).backward(),
                        "grad can be implicitly created only for scalar outputs")
    assert_step_refused(lambda self, x, y: self.model(x).backward(flow.ones(3)),
                        r"out_grad's shape must be same as output's \(\(3,\)")


def test_loss_must_depend_on_something():
    def build(self, x, y):
        with flow.no_grad():
            loss = self.loss(self.model(x), y)
        loss.backward()
        return loss
    assert_step_refused(build, "element 0 of tensors does not require grad")


@pytest.mark.parametrize("what", ["step", "zero_grad"])
def test_optimizers_are_not_called_in_build(what):
    model = make_mlp()
    optimizer = make_sgd(model)

    def build(self, x, y):
        loss = self.loss(self.model(x), y)
        loss.backward()
        getattr(optimizer, what)()
        return loss

    with pytest.raises(RuntimeError, match=f"optim.SGD.{what}: eager tensors supported only"):
        make_graph(build, optimizer, model=model, loss=LOSS)(X, Y)


def test_gradients_are_not_clipped_by_hand_in_build():
    def build(self, x, y):
        loss = self.loss(self.model(x), y)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        return loss
    assert_step_refused(build, "clip_grad_norm_: parameters have no gradients in nn.Graph.build")


def test_a_label_out_of_range_updates_nothing(capsys):
    model = make_mlp()
    g = trainer(model, make_sgd(model, momentum=0.9))
    g(X, Y)
    before = copy_state(model)
    with pytest.raises(RuntimeError, match="met the index 7, out of range"):
        g(X, flow.full((8,), 7, dtype=flow.int64))
    assert f"[ERROR](GRAPH:{g.name}:G) run got error" in capsys.readouterr().out
    assert all(np.array_equal(v, before[k]) for k, v in copy_state(model).items())
    assert g.state_dict()["System-Train-TrainStep"].tolist() == [1]


def _assign(p, value):
    p.grad = value


def _delete(p):
    del p.grad


USES = {
    "read": lambda p: p.grad, "norm": lambda p: p.grad.norm(), "write in place": lambda p: p.grad.mul_(0.5),
    "data": lambda p: p.grad.data, "compare": lambda p: p.grad is None, "remove": lambda p: _assign(p, None),
    "delete": _delete,
}


@pytest.mark.parametrize("stale", [False, True])         # True if an eager step left a gradient
@pytest.mark.parametrize("name", USES)
def test_gradients_are_not_accessible_in_build(name, stale):
    """After backward() in build, a parameter's gradient can be neither read nor removed, because the effect
    on the eager step would be lost. Before backward(), and for frozen parameters, access works as outside
    of build.
    """
    model = flow.nn.Linear(2, 1, bias=False)
    frozen = flow.nn.Parameter(flow.ones(1), requires_grad=False)
    if stale:
        model(flow.ones(1, 2)).sum().backward()
    use = USES[name]

    class Step(flow.nn.Graph):
        def __init__(self, late):
            super().__init__()
            self.model, self.late = model, late
            self.add_optimizer(flow.optim.SGD(model.parameters(), lr=0.1))

        def build(self, x):
            if not self.late:
                assert (model.weight.grad is None) is not stale
                _assign(model.weight, None)
            loss = self.model(x).sum()
            loss.backward()
            assert frozen.grad is None
            if self.late:
                use(model.weight)
            return loss

    before = model.weight.detach().clone()
    with pytest.raises(UnsupportedError, match="gradient of a parameter after backward"):
        Step(True)(flow.ones(3, 2))
    assert flow.equal(model.weight, before) and (model.weight.grad is not None) is stale
    Step(False)(flow.ones(3, 2))
    assert flow.allclose(model.weight, before - 0.3)


@pytest.mark.parametrize("build_raises", [False, True])
def test_a_build_leaves_the_classes_of_eager_tensors_unchanged(build_raises):
    model = make_mlp()
    classes = [c for c in type(model[0].weight).__mro__ if c is not object]
    before = [dict(vars(c)) for c in classes]
    step = trainer(model, flow.optim.SGD(model.parameters(), lr=0.1))
    x, y = batch()
    if build_raises:
        with pytest.raises(ShapeError):
            step(x[:, :3], y)
    else:
        step(x, y)
    assert [dict(vars(c)) for c in classes] == before
    assert type(model[0].weight).grad is flow.Tensor.grad
