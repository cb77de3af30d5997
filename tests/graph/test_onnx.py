"""flow.onnx.export: onnxruntime computes the same from the file."""
import sys

import numpy as np
import pytest

import flowedu as flow
from flowedu import nn
from flowedu.onnx.ops import RULES
from flowedu.vision import models
from laws.calls import attributes, close, examples, input_name, label, types_of, values

from .making import batch, graph, mlp, trainer
from .nets import flat, inputs

ort = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.peer
R = flow.ops.REGISTRY


def exported(g, path, *xs, **names):
    """What onnxruntime makes of the graph."""
    flow.onnx.export(g, path, **names)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session, session.run(None, {i.name: x.numpy() for i, x in zip(session.get_inputs(), xs)})


def agrees(f, path, *xs, tol=1e-5):
    g = graph(lambda self, *a: self.m(*a), m=f) if isinstance(f, nn.Module) else graph(lambda self, *a: f(*a))
    want = g(*xs)
    for a, b in zip(flat(want), exported(g, path, *xs)[1], strict=True):
        assert a.numpy().dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(b, a.numpy(), rtol=tol, atol=tol)


@pytest.mark.parametrize("name", inputs())
def test_models(name, tmp_path):
    make, xs = inputs()[name]
    agrees(make().eval(), tmp_path / "m.onnx", *xs, tol=1e-4)


@pytest.mark.parametrize("make", [models.mobilenet_v2, models.resnet18, models.lenet5], ids=lambda f: f.__name__)
def test_vision_models(make, tmp_path):
    x = flow.randn(*((2, 1, 28, 28) if make is models.lenet5 else (2, 3, 32, 32)))
    agrees(make().eval(), tmp_path / "m.onnx", x, tol=1e-3)


# ---- every record that has a rule, on its own examples
UNMAPPED_TILES = {"atan2", "xdivy", "xlogy", "reciprocal_no_nan", "lgamma", "bit_and", "bit_or", "bit_xor", "shift_left",
                  "shift_right", "erfinv", "copysign", "gelu_grad"}


def known(op):
    if op in RULES:
        return True
    return op.program is not None and not {t for t, _, _ in op.program.instrs} & UNMAPPED_TILES


def outside(op, e):
    """Examples that ONNX, or onnxruntime, has no word for."""
    return (op.name == "slice_grad" and any(n != 1 for n in e["step"])
            or op.name == "avg_pool2d" and max(e.get("pads", (0,))) >= min(e["ksize"]))


CASES = [(op, e) for op in R.values() if known(op) and op.name not in ("recompute", "distribute_hint") for e in examples(op)
         if not outside(op, e)]


@pytest.mark.parametrize("case", CASES, ids=label)
def test_records(case, tmp_path):
    op, example = case
    rng, attrs = np.random.default_rng(0), attributes(op, example)
    arrays = [values(op.domain.get(input_name(op, i), "any"), s, t, rng, i)
              for i, (s, t) in enumerate(zip(example["shapes"], types_of(op, example, np.float32)))]
    keep = [0] if op.name in ("max_pool2d", "layer_norm") else None         # ONNX gives only the first result
    first = lambda out: [out[i] for i in keep] if keep else out
    g = graph(lambda self, *xs: first(op.call(tuple(xs), attrs)))
    xs = [flow.from_numpy(a) for a in arrays]
    want = flat(g(*xs))
    session, got = exported(g, tmp_path / "op.onnx", *xs)
    for a, b in zip(want, got, strict=True):
        assert a.numpy().dtype == b.dtype, (a.dtype, b.dtype)
        close(b, a.numpy(), np.float32, scale=5)


def test_dtypes(tmp_path):
    def f(x, n, mask):
        even = (n % 2 == 0).logical_and(mask)
        return (x > 0).float().sum(1), flow.where(even, n, -n), x.double() * 2, even, n.float().mean(), (n * 3 // 3).sum()

    xs = flow.randn(3, 4), flow.arange(4), flow.tensor([True, False, True, True])
    g = graph(lambda self, *a: [v for i, v in enumerate(f(*a)) if i in (0, 2)])
    want = flat(g(*xs))
    for a, b in zip(want, exported(g, tmp_path / "a.onnx", xs[0], xs[1], xs[2])[1], strict=True):
        assert a.numpy().dtype == b.dtype and np.allclose(a.numpy(), b)
    agrees(lambda x, mask: (x.masked_fill(mask, 0.0), mask.logical_not(), (x > 0).logical_and(mask)), tmp_path / "b.onnx",
           flow.randn(3, 4), xs[2])


# ---- what the file says
def test_names_and_shapes(tmp_path):
    g, x = graph(lambda self, x, y: {"a": self.m(x), "b": y}, m=mlp()), batch()[0]
    g(x, flow.arange(3))
    session, _ = exported(g, tmp_path / "m.onnx", x, flow.arange(3))
    assert [(i.name, i.shape, i.type) for i in session.get_inputs()] == [
        ("INPUT_0", [8, 4], "tensor(float)"), ("INPUT_1", [3], "tensor(int64)")]
    assert [o.name for o in session.get_outputs()] == ["OUTPUT_0", "OUTPUT_1"]
    session, _ = exported(g, tmp_path / "m.onnx", x, flow.arange(3), input_names=["x", "y"], output_names=["p", "q"])
    assert [i.name for i in session.get_inputs() + session.get_outputs()] == ["x", "y", "p", "q"]
    model = onnx.load(tmp_path / "m.onnx")
    assert {"m.0.weight", "m.2.bias"} <= {t.name for t in model.graph.initializer} and model.opset_import[0].version == 18
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
    for names in (["x"], ["x", "x"]):
        with pytest.raises(ValueError, match="input_names"):
            flow.onnx.export(g, tmp_path / "m.onnx", input_names=names)


def test_training_graphs_are_exported_as_what_they_predict(tmp_path):
    model, (x, y) = mlp(), batch()
    g = trainer(model, flow.optim.SGD(model.parameters(), lr=0.1))
    g(x, y)
    got = exported(g, tmp_path / "m.onnx", x, y)[1]
    assert np.isclose(got[0], g(x, y).item(), rtol=1e-5)


def test_ops_without_a_counterpart_are_listed(tmp_path):
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    g = graph(lambda self, x: flow.lgamma(self.model(x).abs()), model=model)
    g(batch()[0])
    with pytest.raises(NotImplementedError, match="ONNX has no op for batch_norm, lgamma, random_mask_like") as e:
        flow.onnx.export(g, tmp_path / "m.onnx")
    assert "model.eval()" in str(e.value) and "test_onnx.py" in str(e.value) and not list(tmp_path.iterdir())


def test_misuse(tmp_path, monkeypatch):
    with pytest.raises(RuntimeError, match="the graph is not compiled"):
        flow.onnx.export(graph(lambda self, x: x), tmp_path / "m.onnx")
    with pytest.raises(TypeError, match="not an nn.Graph"):
        flow.onnx.export(mlp(), tmp_path / "m.onnx")
    g = graph(lambda self, x: x)
    g(flow.ones(1))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(NotImplementedError, match="needs the package onnx") as e:
        flow.onnx.export(g, tmp_path / "m.onnx")
    assert "pip install flowedu[onnx]" in str(e.value)
