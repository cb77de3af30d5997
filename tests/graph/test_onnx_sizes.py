"""Law: a file with free sizes computes the model's result at every size, or the export is refused."""
import itertools
import math

import numpy as np
import pytest

import flowedu as flow
import flowedu.nn.functional as F
from flowedu import nn
from flowedu.errors import UnsupportedError

pytestmark = pytest.mark.peer
onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

SIZES = (1, 2, 3, 4, 5, 6, 7, 10, 13)


class Of(nn.Module):
    def __init__(self, f, *layers):
        super().__init__()
        self.f, self.layers = f, nn.ModuleList(layers)

    def forward(self, *xs):
        return self.f(*xs, *self.layers)


def if_longer(x, m=2):
    return x * 2 if x.shape[0] > m else x * 3


# In these models the number, or the branch, is the same at 5 and 4 rows, or follows from neither.
CONSTANTS = {
    "half": lambda x: x[:x.shape[0] // 2].sum(0),
    "upper half": lambda x: x[:(x.shape[0] + 1) // 2].sum(0),
    "second half": lambda x: x[x.shape[0] // 2:].sum(0),
    "chunk 2": lambda x: x.chunk(2)[0].sum(0),
    "chunk 3": lambda x: x.chunk(3)[0].sum(0),
    "last chunk": lambda x: x.chunk(3)[-1].sum(0),
    "tensor_split": lambda x: x.tensor_split(2)[0].sum(0),
    "tensor_split 3": lambda x: x.tensor_split(3)[2].sum(0),
    "roll": lambda x: x.roll(x.shape[0] // 2, 0),
    "split": lambda x: x.split((x.shape[0] + 1) // 2)[0].sum(0),
    "third": lambda x: x[:x.shape[0] // 3 + 1].sum(0),
    "log": lambda x: x * int(math.log2(x.shape[0])),
    "root": lambda x: x * math.isqrt(x.shape[0]),
    "if longer": if_longer,
    "if very long": lambda x: if_longer(x, 7),
    "if longest": lambda x: if_longer(x, 16),
    "at least": lambda x: x * min(x.shape[0], 3),
    "at most": lambda x: x[:max(2, x.shape[0] - 7)].sum(0),
    "exponent": lambda x: x.abs().pow(x.shape[0] // 4),
    "softplus": lambda x: F.softplus(x, beta=1 + x.shape[0] // 4),
    "epsilon": lambda x: F.layer_norm(x, (3,), eps=1.0 + x.shape[0] // 4),
    "features": lambda x: x[:, :x.shape[0] // 4],
    "axis": lambda x: x.flip(x.shape[0] // 4 % 2),
    "loop": lambda x: sum((x * i for i in range(x.shape[0] // 2)), x),
    "repeat": lambda x: x.repeat(1, 1 + x.shape[0] // 4),
    "pad": lambda x: F.pad(x, (0, x.shape[0] // 4)),
    "reshape": lambda x: x.repeat(1, 4).reshape(-1, 3 if len(x) < 8 else 4).exp(),
    "window": lambda x: F.avg_pool1d(x.t().unsqueeze(0), 1 + x.shape[0] // 4),
    "mean": lambda x: x.mean(0),
    "arange": lambda x: x + flow.arange(x.shape[0])[:, None],
    "zeros": lambda x: x.sum(0) + flow.zeros(x.shape[0] // 4, 3).sum(0) + x.shape[0] // 4,
    "parity": lambda x: x * ((x.shape[0] + 1) // 2 % 2 + 1),
    "NumPy": lambda x: x * flow.tensor(np.full(3, x.shape[0] // 4, np.float32)),
    "is one": lambda x: x * 2 if x.shape[0] == 1 else x,
}
RIGHT = {
    "linear": Of(lambda x, m: m(x).relu(), nn.Linear(3, 4)),
    "flat": Of(lambda x: x.reshape(x.shape[0], -1).exp()),
    "sum": Of(lambda x: x.sum(0)), "first": Of(lambda x: x[:1] * 2), "rest": Of(lambda x: x[1:].sum(1)),
    "three": Of(lambda x: x[:3].sum(0)), "fourth": Of(lambda x: x[3:].sum(0)),
    "softmax": Of(lambda x: x.softmax(0)), "norm": Of(lambda x, m: m(x), nn.LayerNorm(3)),
    "max": Of(lambda x: x.max(0)[0]), "cat": Of(lambda x: flow.cat([x, x * 2], 1)),
    "bias": Of(lambda x: x + flow.ones(3) - flow.zeros(x.shape[0], 1)),
    "stacked": Of(lambda x: flow.cat([x, x])),
    "pairs": Of(lambda x: x @ x.t()), "scaled": Of(lambda x: x.t() @ x),
    "expanded": Of(lambda x: flow.ones(1, 3).expand(x.shape[0], 3) * x),
    "batch norm": nn.BatchNorm1d(3), "embedded": Of(lambda x, m: m((x > 0).long()), nn.Embedding(2, 4)),
    "heads": Of(lambda x, m: m(*[x.unsqueeze(1)] * 3)[0], nn.MultiheadAttention(3, 3, batch_first=True)),
}


def export(model, path, x, axes):
    flow.onnx.export(model.eval(), path, args=x, input_names=["x"], output_names=["y"], dynamic_axes=axes)
    return ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def assert_agrees(session, model, x):
    try:
        want = model(x).detach().numpy()
    except Exception:                                    # the model does not accept this size
        return
    got, = session.run(None, {"x": x.numpy()})
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows", [5, 2])
@pytest.mark.parametrize("name", CONSTANTS)
def test_numbers_that_depend_on_the_size(name, rows, tmp_path):
    model, path = Of(CONSTANTS[name]), tmp_path / "m.onnx"
    with pytest.raises(UnsupportedError, match="dynamic_axes cannot be followed") as e:
        export(model, path, flow.ones(rows, 3), {"x": {0: "n"}})
    assert not path.exists() and "test_onnx_sizes.py" in e.value.at


@pytest.mark.parametrize("rows", [5, 2])
@pytest.mark.parametrize("name", RIGHT)
def test_size_independent_models_are_exported(name, rows, tmp_path):
    model = RIGHT[name]
    session = export(model, tmp_path / "m.onnx", flow.randn(rows, 3), {"x": {0: "n"}})
    for n in SIZES:
        assert_agrees(session, model, flow.randn(n, 3))


# ---- several axes
def ratio(x):
    return x * (x.shape[0] // x.shape[1] + 1)


SEVERAL = {
    "ratio": ratio, "larger": lambda x: x if x.shape[0] > x.shape[1] - 8 else -x,
    "one of two": lambda x: x * 2 if x.shape[1] == 1 else x,
    "both one": lambda x: -x if x.shape[0] * x.shape[1] == 1 else x,
    "half of the second": lambda x: x[:, :x.shape[1] // 2].sum(1), "product": lambda x: x * (x.numel() // 64),
    "second when first is one": lambda x: x * (2 if x.shape[0] == 1 and x.shape[1] > 1 else 1),
}
RIGHT_SEVERAL = {
    "sum": lambda x: x.sum((0, 1)), "turned": lambda x: x.transpose(0, 1) * 2,
    "tail": lambda x: x[1:, 1:].exp(), "weights": lambda x: x.softmax(1) @ x.transpose(1, 2),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_numbers_that_depend_on_several_sizes(name, tmp_path):
    with pytest.raises(UnsupportedError, match="dynamic_axes cannot be followed"):
        export(Of(SEVERAL[name]), tmp_path / "m.onnx", flow.ones(5, 7, 3), {"x": {0: "n", 1: "m"}})
    assert not (tmp_path / "m.onnx").exists()


@pytest.mark.parametrize("name", RIGHT_SEVERAL)
def test_size_independent_models_with_several_sizes_are_exported(name, tmp_path):
    model = Of(RIGHT_SEVERAL[name])
    session = export(model, tmp_path / "m.onnx", flow.randn(5, 7, 3), {"x": {0: "n", 1: "m"}})
    for n, m in itertools.product((1, 2, 5, 9), repeat=2):
        assert_agrees(session, model, flow.randn(n, m, 3))


def test_models_with_a_maximum_and_a_minimum_size(tmp_path):
    """Sizes that the model refuses eagerly are not compared: here more than 6 rows, and fewer than 3."""
    class Bounded(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(flow.randn(6, 3))

        def forward(self, x):
            if not 3 <= x.shape[0] <= 6:
                raise ValueError("3 to 6 rows")
            return (x * self.weight[0]).exp()

    model = Bounded()
    session = export(model, tmp_path / "m.onnx", flow.randn(5, 3), {"x": {0: "n"}})
    for n in SIZES:
        assert_agrees(session, model, flow.randn(n, 3))

    class Two(Bounded):
        def forward(self, x):
            if x.shape[0] not in (4, 5):
                raise ValueError("4 or 5 rows")
            return x * 2

    with pytest.raises(UnsupportedError, match="takes no sizes to compare at"):
        export(Two(), tmp_path / "n.onnx", flow.randn(5, 3), {"x": {0: "n"}})
