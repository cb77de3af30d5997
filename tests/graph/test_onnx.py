"""flow.onnx.export: onnxruntime computes the same result from the file."""
import re
import sys

import numpy as np
import pytest

import flowedu as flow
from bounds import SIGMAS
from flowedu import nn
from flowedu.errors.extras import install
from flowedu.onnx.ops import RULES
from flowedu.vision import models
from laws.calls import (
    assert_equal_up_to_rounding,
    attributes,
    cases,
    draw_arrays,
    draw_values,
    examples,
    input_name,
    label,
    types_of,
)

from .making import batch, make_graph, make_mlp, trainer
from .nets import collect_tensors, modules_with_inputs

ort = pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.peer
R = flow.ops.REGISTRY


def exported(g, path, *xs, **names):
    """Run the graph with onnxruntime."""
    flow.onnx.export(g, path, **names)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session, session.run(None, {i.name: x.numpy() for i, x in zip(session.get_inputs(), xs)})


def agrees(f, path, *xs, tol=1e-5):
    g = (make_graph(lambda self, *a: self.m(*a), m=f) if isinstance(f, nn.Module)
         else make_graph(lambda self, *a: f(*a)))
    want = g(*xs)
    for a, b in zip(collect_tensors(want), exported(g, path, *xs)[1], strict=True):
        assert a.numpy().dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(b, a.numpy(), rtol=tol, atol=tol)


@pytest.mark.parametrize("name", modules_with_inputs())
def test_exported_models_compute_the_same(name, tmp_path):
    make, xs = modules_with_inputs()[name]
    agrees(make().eval(), tmp_path / "m.onnx", *xs, tol=1e-4)


@pytest.mark.parametrize("make", [models.mobilenet_v2, models.resnet18, models.lenet5],
                         ids=lambda f: f.__name__)
def test_exported_vision_models_compute_the_same(make, tmp_path):
    x = flow.randn(*((2, 1, 28, 28) if make is models.lenet5 else (2, 3, 32, 32)))
    agrees(make().eval(), tmp_path / "m.onnx", x, tol=1e-3)


# ---- every op with an export rule, on its own examples
UNMAPPED_TILES = {"atan2", "xdivy", "xlogy", "reciprocal_no_nan", "lgamma", "bit_and", "bit_or", "bit_xor",
                  "shift_left", "shift_right", "erfinv", "copysign", "gelu_grad"}


def is_exportable(op):
    if op in RULES:
        return True
    return op.program is not None and not {t for t, _, _ in op.program.instrs} & UNMAPPED_TILES


def outside(op, e):
    """Return True for examples that are not exported, and for random ops, which are tested below."""
    return (op.random or op.name == "slice_grad" and any(n != 1 for n in e["step"])
            or op.name == "avg_pool2d" and max(e.get("pads", (0,))) >= min(e["ksize"]))


CASES = [(op, e) for op in R.values() if is_exportable(op) and op.name not in ("recompute", "distribute_hint")
         for e in examples(op)
         if not outside(op, e)]


@pytest.mark.parametrize("case", CASES, ids=label)
def test_every_exportable_op_computes_the_same(case, tmp_path):
    op, example = case
    rng, attrs = np.random.default_rng(0), attributes(op, example)
    arrays = draw_arrays(op, example, np.float32, rng)
    wanted = {"max_pool2d": [0], "layer_norm": [0], "lstm": [0, 1, 2], "gru": [0, 1], "attention": [0]}
    keep = wanted.get(op.name)  # without outputs for backward

    def first(out):
        return [out[i] for i in keep] if keep else out

    g = make_graph(lambda self, *xs: first(op.call(tuple(xs), attrs)))
    xs = [flow.from_numpy(a) for a in arrays]
    want = collect_tensors(g(*xs))
    session, got = exported(g, tmp_path / "op.onnx", *xs)
    for a, b in zip(want, got, strict=True):
        assert a.numpy().dtype == b.dtype, (a.dtype, b.dtype)
        assert_equal_up_to_rounding(b, a.numpy(), np.float32, scale=5)


def test_dtypes(tmp_path):
    def f(x, n, mask):
        even = (n % 2 == 0).logical_and(mask)
        return ((x > 0).float().sum(1), flow.where(even, n, -n), x.double() * 2, even, n.float().mean(),
                (n * 3 // 3).sum())

    xs = flow.randn(3, 4), flow.arange(4), flow.tensor([True, False, True, True])
    g = make_graph(lambda self, *a: [v for i, v in enumerate(f(*a)) if i in (0, 2)])
    want = collect_tensors(g(*xs))
    for a, b in zip(want, exported(g, tmp_path / "a.onnx", xs[0], xs[1], xs[2])[1], strict=True):
        assert a.numpy().dtype == b.dtype and np.allclose(a.numpy(), b)
    agrees(lambda x, mask: (x.masked_fill(mask, 0.0), mask.logical_not(), (x > 0).logical_and(mask)),
           tmp_path / "b.onnx", flow.randn(3, 4), xs[2])


# ---- contents of the file
def test_names_and_shapes(tmp_path):
    g, x = make_graph(lambda self, x, y: {"a": self.m(x), "b": y}, m=make_mlp()), batch()[0]
    g(x, flow.arange(3))
    session, _ = exported(g, tmp_path / "m.onnx", x, flow.arange(3))
    assert [(i.name, i.shape, i.type) for i in session.get_inputs()] == [
        ("INPUT_0", [8, 4], "tensor(float)"), ("INPUT_1", [3], "tensor(int64)")]
    assert [o.name for o in session.get_outputs()] == ["OUTPUT_0", "OUTPUT_1"]
    session, _ = exported(g, tmp_path / "m.onnx", x, flow.arange(3), input_names=["x", "y"],
                          output_names=["p", "q"])
    assert [i.name for i in session.get_inputs() + session.get_outputs()] == ["x", "y", "p", "q"]
    model = onnx.load(tmp_path / "m.onnx")
    assert ({"m.0.weight", "m.2.bias"} <= {t.name for t in model.graph.initializer}
            and model.opset_import[0].version == 18)
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
    for names in (["x"], ["x", "x"]):
        with pytest.raises(ValueError, match="input_names"):
            flow.onnx.export(g, tmp_path / "m.onnx", input_names=names)


class Scaled(nn.Module):
    """Combines two inputs, one of them passed by name, with a mode."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Softmax(1))

    def forward(self, x, scale=None):
        y = self.net(x).mean(1, keepdim=True)
        return y if scale is None else y * scale


@pytest.mark.parametrize("opset", [None, 17, 18, 19, 21])
@pytest.mark.parametrize("axes", [None, {"x": {0: "n"}, "by": {0: "n"}, "y": {0: "n"}}],
                         ids=["fixed", "free"])
@pytest.mark.parametrize("training", [True, False])
def test_modules_with_sizes_that_are_free(tmp_path, axes, opset, training):
    model, path = Scaled().train(training), tmp_path / "m.onnx"
    model.net[2].eval()
    modes = [m.training for m in model.modules()]
    call = dict(input_names=["x", "by"], output_names=["y"], dynamic_axes=axes, opset=opset)
    flow.onnx.export(model, path, args=[flow.randn(5, 4)], kwargs={"scale": flow.randn(5, 1)}, **call)
    assert ([m.training for m in model.modules()] == modes and onnx.load(path).opset_import[0].version
            == (opset or 18))
    session = ort.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert [isinstance(x.shape[0], str) for x in session.get_inputs()] == [axes is not None] * 2
    for n in (5, 1, 9) if axes else (5,):
        x, by = flow.randn(n, 4), flow.randn(n, 1)
        got, = session.run(None, {"x": x.numpy(), "by": by.numpy()})
        np.testing.assert_allclose(got, model.eval()(x, by).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_an_unsupported_opset_is_refused_and_no_file_is_left(tmp_path):
    for opset in (3, 999, -1):
        with pytest.raises(NotImplementedError, match=f"(?s)opset {opset}.*leave opset out") as e:
            flow.onnx.export(Scaled(), tmp_path / "m.onnx", args=flow.randn(2, 4), opset=opset)
        assert not list(tmp_path.iterdir()), e


def test_training_graphs_are_exported_for_prediction(tmp_path):
    model, (x, y) = make_mlp(), batch()
    g = trainer(model, flow.optim.SGD(model.parameters(), lr=0.1))
    g(x, y)
    got = exported(g, tmp_path / "m.onnx", x, y)[1]
    assert np.isclose(got[0], g(x, y).item(), rtol=1e-5)


def test_ops_without_a_counterpart_are_listed(tmp_path):
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    g = make_graph(lambda self, x: flow.lgamma(self.model(x).abs()), model=model)
    g(batch()[0])
    with pytest.raises(NotImplementedError,
                       match="does not write yet: batch_norm, lgamma, random_mask_like") as e:
        flow.onnx.export(g, tmp_path / "m.onnx")
    assert "model.eval()" in str(e.value) and "test_onnx.py" in str(e.value) and not list(tmp_path.iterdir())


@pytest.mark.parametrize("case", [c for c in cases() if not is_exportable(c[0]) and not c[0].mutates
                                  and c[0].program is None],
                         ids=label)
def test_errors_of_unsupported_ops_do_not_blame_onnx(case, tmp_path):
    """The error names the op, and recommends eval() if it removes the op; the module is then exported with
    eval().
    """
    op, example = case
    arrays = [draw_values(op.domain.get(input_name(op, i), "any"), s, t, np.random.default_rng(0), i)
              for i, (s, t) in enumerate(zip(example["shapes"], types_of(op, example, np.float32)))]
    g = make_graph(lambda self, *xs: op.call(tuple(xs), attributes(op, example)))
    g(*map(flow.from_numpy, arrays))
    with pytest.raises(NotImplementedError, match=rf"does not write yet: .*\b{op.name}\b") as e:
        flow.onnx.export(g, tmp_path / "m.onnx")
    e = e.value
    assert not re.search(r"ONNX (has no|does not|cannot)|no counterpart", str(e))
    trains = {"random_mask_like": nn.Dropout, "batch_norm": lambda: nn.BatchNorm1d(4)}.get(op.name)
    assert ("eval()" in e.fix) == (trains is not None or op.name == "batch_norm_clip"), e
    if trains is not None:
        agrees(trains().eval(), tmp_path / "m.onnx", flow.randn(8, 4))


def test_random_numbers_are_drawn_by_the_runtime(tmp_path):
    """A sampling model (a VAE's latent) can be exported."""
    def f(x):
        return (flow.randn_like(x), flow.rand(400, 5) * 2 - 3, flow.randint(-2, 3, (2000,)),
                flow.normal(3.0, 0.5, (2000,)), flow.bernoulli(flow.full_like(x, 0.25)))

    x = flow.zeros(50, 40)
    g = make_graph(lambda self, x: f(x))
    want = g(x)
    session, got = exported(g, tmp_path / "m.onnx", x)
    for a, b in zip(want, got, strict=True):
        a = a.numpy()
        assert a.dtype == b.dtype and a.shape == b.shape
        # Two samples of one distribution: the error of a difference is sqrt(2) times that of one. No kurtosis
        # is above 3.
        error = SIGMAS * b.std() * np.sqrt(2 / b.size)
        assert abs(a.mean() - b.mean()) < error and abs(a.std() - b.std()) < error
    assert set(got[2].tolist()) == {-2, -1, 0, 1, 2} and got[1].min() >= -3 and got[1].max() < -1
    assert not np.array_equal(session.run(None, {"INPUT_0": x.numpy()})[0], got[0])


@pytest.mark.parametrize("dtype", [flow.int32, flow.int64], ids=repr)
def test_integer_ops_compute_the_same(dtype, tmp_path):
    x, y = flow.arange(-9, 9, dtype=dtype), flow.tensor([-3, -2, -1, 1, 2, 5] * 3, dtype=dtype)
    agrees(lambda x, y: (x % y, x // y, x & y, x | y, x ^ y), tmp_path / "m.onnx", x, y)


@pytest.mark.parametrize("mode", [True, False])
def test_batch_norm_without_running_statistics(mode, tmp_path):
    for layer, x in ((nn.BatchNorm2d(3, track_running_stats=False), flow.randn(4, 3, 5, 5) * 3 + 1),
                     (nn.BatchNorm1d(3, affine=False, track_running_stats=False), flow.randn(8, 3))):
        agrees(layer.train(mode), tmp_path / "m.onnx", x)


def test_circular_padding(tmp_path):
    agrees(nn.Conv2d(3, 4, 3, padding=1, padding_mode="circular"), tmp_path / "m.onnx",
           flow.randn(2, 3, 5, 5))


def test_comparisons_with_any_number(tmp_path):
    for kind in (flow.uint8, flow.int8, flow.int64):
        x = flow.tensor([0, 1, 100, 127], dtype=kind)
        agrees(lambda x: (x < 256, x > -1, x <= 0.5, x == 300, (x > 1) < 1, (x > 1) == 1),
               tmp_path / "m.onnx", x)


def test_invalid_exports_are_refused(tmp_path, monkeypatch):
    with pytest.raises(RuntimeError, match="the graph is not compiled"):
        flow.onnx.export(make_graph(lambda self, x: x), tmp_path / "m.onnx")
    with pytest.raises(TypeError, match="not an nn.Graph and no module"):
        flow.onnx.export(3, tmp_path / "m.onnx")
    with pytest.raises(TypeError, match="(?s)at the sizes of a call.*args="):
        flow.onnx.export(make_mlp(), tmp_path / "m.onnx")
    g = make_graph(lambda self, x: x)
    g(flow.ones(1))
    for more in ({"args": flow.ones(1)}, {"args": [3]}, {"kwargs": {"x": 1}},
                 {"dynamic_axes": {"INPUT_0": [0]}}):
        with pytest.raises(TypeError, match="(?s)of one size.*give the module"):
            flow.onnx.export(g, tmp_path / "m.onnx", **more)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(NotImplementedError, match="needs the package onnx") as e:
        flow.onnx.export(g, tmp_path / "m.onnx")
    assert install("onnx") in str(e.value)


@pytest.mark.parametrize("net", [nn.LSTM(3, 4, 2, bidirectional=True), nn.GRU(3, 4),
                                 nn.RNN(3, 4, nonlinearity="relu"), nn.LSTM(3, 4, proj_size=2)], ids=str)
def test_recurrent_networks(net, tmp_path):
    """Any number of rows, as step by step; unused sequence lengths are not exported."""
    agrees(net.eval(), tmp_path / "m.onnx", flow.randn(5, 2, 3))
    flow.onnx.export(net, tmp_path / "n.onnx", args=flow.randn(5, 4, 3), input_names=["x"],
                     output_names=["y", "h", "c"][
                         :3 if isinstance(net, nn.LSTM) else 2], dynamic_axes={"x": {1: "n"}})
    assert "Greater" not in {n.op_type for n in onnx.load(tmp_path / "n.onnx").graph.node}
    session = ort.InferenceSession(str(tmp_path / "n.onnx"), providers=["CPUExecutionProvider"])
    x = flow.randn(5, 7, 3)
    np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], net(x)[0].detach().numpy(), rtol=1e-5,
                               atol=1e-5)
