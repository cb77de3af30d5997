"""The losses of nn.functional under torch's name: positions of size_average and reduce, and weights."""
import importlib
import inspect

import numpy as np
import pytest

import flowedu as flow
from flowedu import mock
from flowedu.errors import FlowError

WORDS = [{}, {"size_average": True}, {"size_average": False}, {"reduce": False},
         {"reduce": True, "size_average": False}, {"reduction": "sum"}, {"reduction": "none"}]
LOSSES = {"mse_loss": "xx", "l1_loss": "xx", "smooth_l1_loss": "xx", "soft_margin_loss": "xs", "kl_div": "xx",
          "hinge_embedding_loss": "xs", "margin_ranking_loss": "xxs", "cosine_embedding_loss": "xxr",
          "binary_cross_entropy": "pp", "binary_cross_entropy_with_logits": "xp",
          "multilabel_soft_margin_loss": "xp",
          "nll_loss": "xc", "cross_entropy": "xc", "multi_margin_loss": "xc", "multilabel_margin_loss": "xm",
          "poisson_nll_loss": "xp"}


def _inputs(kinds: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    make = {"x": lambda: rng.normal(size=(3, 4)).astype("f4"),
            "p": lambda: rng.uniform(0.1, 0.9, (3, 4)).astype("f4"),
            "s": lambda: rng.choice([-1.0, 1.0], (3, 4)).astype("f4"), "r": lambda: np.array([1, -1, 1]),
            "c": lambda: np.array([0, 3, 1]), "m": lambda: np.array([[2, 0, -1, 1], [-1, 0, 1, 2],
                                                                     [3, 1, 0, 2]])}
    return [make[k]() for k in kinds]


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LOSSES)
def test_losses_accept_all_arguments_by_position(name):
    real = pytest.importorskip("torch")
    f, arrays = getattr(real.nn.functional, name), _inputs(LOSSES[name])
    parameters = list(inspect.signature(f).parameters.values())[len(arrays):]
    places = [[words.get(p.name, p.default) for p in parameters] for words in WORDS]
    wanted = [f(*map(real.tensor, arrays), *given).numpy() for given in places]
    with mock.enable("torch"):
        own = importlib.import_module("torch.nn.functional")
        for words, given, want in zip(WORDS, places, wanted):
            for got in (getattr(own, name)(*map(flow.tensor, arrays), *given),
                        getattr(own, name)(*map(flow.tensor, arrays), **words)):
                np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)
        with pytest.raises(FlowError, match="(?s)size_average.*reduction='sum'"):
            getattr(own, name)(*map(flow.tensor, arrays), size_average="sum")


@pytest.mark.torch
@pytest.mark.parametrize("name", ["mse_loss", "l1_loss"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_weighted_losses(name, reduction):
    real = pytest.importorskip("torch")
    x, y, w = _inputs("xxp")
    want = getattr(real.nn.functional, name)(*map(real.tensor, (x, y)), weight=real.tensor(w),
                                             reduction=reduction)
    with mock.enable("torch"):
        own = getattr(importlib.import_module("torch.nn.functional"), name)
        got = own(flow.tensor(x), flow.tensor(y), weight=flow.tensor(w), reduction=reduction)
        np.testing.assert_allclose(got, want, 1e-5)
        with pytest.raises(FlowError, match="a weight for each element"):
            own(flow.tensor(x), flow.tensor(y), weight=flow.tensor(w[0]))
