"""state_dict, load_state_dict, and the config options of a graph."""
import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.optim import lr_scheduler as S

from .making import assert_same_state, batch, make_graph, make_mlp, train_step, trainer, twins

X, Y = batch()


def noisy():
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.3), nn.Linear(6, 3))


MAKERS = {"sgd": lambda p: flow.optim.SGD(p, lr=0.1, momentum=0.9),
          "adam": lambda p: flow.optim.Adam(p, lr=0.01),
          "rmsprop": lambda p: flow.optim.RMSprop(p, lr=0.01),
          "adagrad": lambda p: flow.optim.Adagrad(p, lr=0.1)}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("on_disk", [False, True])
def test_a_loaded_graph_continues_unchanged(name, on_disk, tmp_path):
    """Includes dropout: step n has the same mask as without saving."""
    def made(model):
        optimizer = MAKERS[name](model.parameters())
        return make_graph(train_step, (optimizer, S.ExponentialLR(optimizer, 0.8)), model=model,
                          loss=nn.CrossEntropyLoss())

    flow.manual_seed(3)
    a = noisy()
    g = made(a)
    for _ in range(3):
        g(X, Y)
    state = g.state_dict()
    if on_disk:
        flow.save(state, str(tmp_path / "state"))
        state = flow.load(str(tmp_path / "state"))
    else:
        state = {k: {n: t.clone() for n, t in v.items()} if isinstance(v, dict) else v.clone()
                 for k, v in state.items()}
    flow.manual_seed(99)
    b = noisy()
    h = made(b)
    h.load_state_dict(state)
    flow.manual_seed(3)
    noisy()  # the seeds that dropout got when g was traced
    for _ in range(3):
        assert g(X, Y).item() == h(X, Y).item()
    assert_same_state(a, b, rtol=0, atol=0)
    assert h.state_dict()["System-Train-TrainStep"].tolist() == [6]


def test_state_before_and_after_the_first_call():
    model = make_mlp()
    g = trainer(model, MAKERS["adam"](model.parameters()))
    assert list(g.state_dict()) == ["model", "loss"] and g.state_dict()["loss"] == {}
    g.load_state_dict({**g.state_dict(), "model.0.weight-m": flow.ones(6, 4), "unknown": flow.ones(1)})
    assert set(g.state_dict()) >= {"model", "loss", "model.0.weight-m", "unknown"}
    nn.CrossEntropyLoss()(model(X), Y).backward()
    slope = model[0].weight.grad.numpy().copy()
    g(X, Y)
    state = g.state_dict()
    # starting from the loaded ones
    np.testing.assert_allclose(state["model.0.weight-m"].numpy(), 0.9 + 0.1 * slope, rtol=1e-5)
    assert state["model.2.bias-v"].shape == (3,)
    assert state["model"]["0.weight"].shape == (6, 4)
    plain = trainer(mlp_ := make_mlp(), flow.optim.SGD(mlp_.parameters(), lr=0.1))
    plain(X, Y)
    assert list(plain.state_dict()) == ["model", "loss", "System-Train-TrainStep"]
    predict = make_graph(lambda self, x: self.model(x), model=model)
    predict(X)
    assert list(predict.state_dict()) == ["model"]


def test_a_state_is_loaded_only_before_the_first_call():
    g = trainer(model := make_mlp(), flow.optim.SGD(model.parameters(), lr=0.1))
    g(X, Y)
    with pytest.raises(AssertionError, match="can only be loaded before the first call of a graph"):
        g.load_state_dict(g.state_dict())


def test_missing_and_unexpected_keys_raise_unless_strict_is_false():
    g = trainer(model := make_mlp(), MAKERS["sgd"](model.parameters()))
    state = g.state_dict()
    missing = {**state, "model": {k: v for k, v in state["model"].items() if k != "0.bias"}}
    with pytest.raises(RuntimeError, match="0.bias"):
        g.load_state_dict(missing)
    g.load_state_dict(missing, strict=False)
    with pytest.raises(AssertionError, match="has no module 'other'"):
        g.load_state_dict({**state, "other": {"w": flow.ones(1)}})
    g.load_state_dict({**state, "other": {"w": flow.ones(1)}}, strict=False)
    with pytest.raises(ValueError, match="model.0.weight-momentum does not fit"):
        g.load_state_dict({"model.0.weight-momentum": flow.ones(2)})


def test_tensors_from_outside_are_loaded():
    def counting(count):
        def build(self, x):
            count.add_(1)
            return x * count
        return make_graph(build)

    a, b = flow.zeros(1), flow.zeros(1)
    g = counting(a)
    g(flow.ones(1)), g(flow.ones(1))
    h = counting(b)
    h.load_state_dict(g.state_dict())
    assert h(flow.ones(1)).item() == 3 == b.item() and a.item() == 2
    wrong = counting(flow.zeros(1))
    wrong.load_state_dict({"FreeEagerTensor-0": flow.zeros(5)})
    with pytest.raises(ValueError, match="FreeEagerTensor-0 does not fit"):
        wrong(flow.ones(1))


# ---- config options
PASSES = ["simplify", "cse", "dead", "fuse", "update", "inplace", "reuse"]


@pytest.mark.parametrize("off", [*[(p,) for p in PASSES], tuple(PASSES)], ids="+".join)
def test_every_pass_may_be_disabled(off):
    def make():
        return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.GELU(), nn.Linear(6, 3))
    a, b = twins(make)
    g = trainer(a, MAKERS["sgd"](a.parameters()))
    h = trainer(b, MAKERS["sgd"](b.parameters()))
    h.config.disable_pass(*off)
    for _ in range(5):
        assert np.isclose(g(X, Y).item(), h(X, Y).item(), rtol=1e-5)
    assert_same_state(a, b)
    said = [line.split()[0] for line in h._compiled.program.report]
    assert not set(said) & set(off)


def test_passes_are_known_by_name():
    g = make_graph(lambda self, x: x)
    with pytest.raises(ValueError, match="there is no such pass") as e:
        g.config.disable_pass("fusion")
    assert "fuse" in str(e.value)
    g.config.disable_pass("fuse")
    g.config.enable_pass("fuse")
    assert not g.config.off


@pytest.mark.filterwarnings("ignore::flowedu.errors.once.OptionWarning")
def test_config_options_of_oneflow():
    a, b = twins(make_mlp)
    g, h = trainer(a, MAKERS["sgd"](a.parameters())), trainer(b, MAKERS["sgd"](b.parameters()))
    c = h.config
    for name in ("allow_fuse_model_update_ops", "allow_fuse_add_to_output", "allow_fuse_cast_scale",
                 "enable_multi_tensor_update", "enable_fused_model_update_cast",
                 "enable_cudnn_conv_heuristic_search_algo",
                 "enable_compress_memory", "enable_auto_parallel", "enable_zero"):
        getattr(c, name)(True)
    c.enable_amp(True, dtype=flow.float16)            # computes in 16 bits: tests/amp
    c.enable_amp(False)
    c.enable_straighten_algorithm("MemoryFirst")
    c.set_outputs_buffer_size(1)
    for call in (lambda: c.enable_amp(dtype=flow.float32), lambda: c.enable_straighten_algorithm("Fast"),
                 lambda: c.set_outputs_buffer_size(0), lambda: c.set_gradient_accumulation_steps(0),
                 lambda: c.enable_zero(stage=4), lambda: c.set_zero_redundancy_optimizer_mode()):
        with pytest.raises(ValueError):
            call()
    assert g(X, Y).item() == h(X, Y).item()
