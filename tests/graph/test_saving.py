"""flow.save(graph, path) and flow.load_graph(path): the same results without the model's code, and no
execution of other code.
"""
import os
import random
import re
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import flowedu as flow
from common import HANGS, few
from flowedu import nn
from flowedu.errors import CheckpointError, FlowError

from .making import batch, make_graph, make_mlp, trainer
from .nets import collect_tensors, modules_with_inputs

NETS = list(modules_with_inputs())


def called(name):
    make, xs = modules_with_inputs()[name]
    model = make().eval()
    g = make_graph(lambda self, *a: self.model(*a), model=model)
    return g, xs, g(*xs)


@pytest.mark.parametrize("name", NETS)
def test_loaded_in_the_same_process(name, tmp_path):
    g, xs, out = called(name)
    flow.save(g, str(tmp_path / "1" / "model"))                       # creates parent directories
    loaded = flow.load_graph(str(tmp_path / "1" / "model"))
    got = loaded(*xs)
    assert (type(got) is type(out)
            and [t.shape for t in collect_tensors(got)] == [t.shape for t in collect_tensors(out)])
    for a, b in zip(collect_tensors(got), collect_tensors(out), strict=True):
        assert a.dtype is b.dtype and np.array_equal(a.numpy(), b.numpy(), equal_nan=True)
    assert got is not loaded(*xs) and g.name in repr(loaded)


SCRIPT = """
import sys, numpy as np, flowedu as flow
sys.path = [p for p in sys.path if "tests" not in p]
xs = np.load(sys.argv[2])
out = flow.load_graph(sys.argv[1])(*[flow.from_numpy(xs[k]) for k in sorted(xs.files)])
def flat(o):
    if isinstance(o, flow.Tensor): return [o]
    return [] if o is None else [t for v in (o.values() if isinstance(o, dict) else o) for t in flat(v)]
np.savez(sys.argv[3], *[t.numpy() for t in flat(out)])
"""


def test_loaded_in_another_process(tmp_path):
    for name in NETS:
        g, xs, out = called(name)
        flow.save(g, str(tmp_path / name))
        np.savez(tmp_path / f"{name}-in.npz", **{f"x{i}": x.numpy() for i, x in enumerate(xs)})
        subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / name), str(tmp_path / f"{name}-in.npz"),
                        str(tmp_path / f"{name}-out.npz")], check=True, timeout=HANGS,
                       env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "FLOWEDU_NUM_THREADS":
                            str(flow.get_num_threads())})
        found = np.load(tmp_path / f"{name}-out.npz")
        for a, b in zip((found[k] for k in found.files), collect_tensors(out), strict=True):
            assert np.array_equal(a, b.numpy(), equal_nan=True)


def test_files_on_disk(tmp_path):
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.BatchNorm1d(3)).eval()
    g = make_graph(lambda self, x: self.model(x), model=model)
    g(flow.ones(2, 4))
    flow.save(g, str(tmp_path / "model"))
    names = sorted(os.listdir(tmp_path / "model"))
    assert [n for n in names if (tmp_path / "model" / n).is_dir()] == [
        "model.0.bias", "model.0.weight", "model.2.bias", "model.2.running_mean", "model.2.running_var",
        "model.2.weight"]
    assert (sorted(os.listdir(tmp_path / "model" / "model.0.bias")) == ["meta", "out"]
            and "model.mlir" in names)
    text = (tmp_path / "model" / "model.mlir").read_text(encoding="utf-8")
    for part in ('"flowedu.input"()', '"flowedu.variable"() {"op_name": "model.0.weight"}',
                 '"flowedu.matmul"(', '"flowedu.batch_norm_infer"(', "flowedu.return %", "tensor<2x4xf32>"):
        assert part in text, text


def test_training_graphs_are_saved_for_prediction(tmp_path):
    def build(self, x, y):
        out = self.model(x)
        loss = nn.functional.cross_entropy(out, y)
        loss.backward()
        return out, loss

    model, (x, y) = make_mlp(), batch()
    g = make_graph(build, flow.optim.Adam(model.parameters()), model=model)
    g(x, y)
    flow.save(g, str(tmp_path / "m"))
    out, loss = flow.load_graph(str(tmp_path / "m"))(x, y)
    want, want_loss = g(x, y)
    assert np.array_equal(out.numpy(), want.numpy()) and loss.item() == want_loss.item()
    assert not [n for n in os.listdir(tmp_path / "m") if n.startswith(("System", "model.0.weight-"))]


def test_batch_norm_in_training_mode_uses_the_batch(tmp_path):
    model = nn.BatchNorm1d(4)
    g, x = make_graph(lambda self, x: self.model(x), model=model), batch()[0]
    want = g(x).numpy()
    mean = model.running_mean.numpy().copy()
    flow.save(g, str(tmp_path / "m"))
    assert np.array_equal(flow.load_graph(str(tmp_path / "m"))(x).numpy(), want)
    assert np.array_equal(model.running_mean.numpy(), mean)


def test_saving_again_replaces(tmp_path):
    path = str(tmp_path / "m")
    a, b = (make_graph(lambda self, x: self.m(x), m=make_mlp()),
            make_graph(lambda self, x: x * self.m.weight, m=nn.PReLU()))
    x = batch()[0]
    a(x), b(x)
    flow.save(a, path)
    flow.save(b, path)
    assert (sorted(os.listdir(path))[:1] == ["m.weight"] and np.allclose(flow.load_graph(path)(x).numpy(),
                                                                         x.numpy() * 0.25))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(AssertionError, match="holds files that are no checkpoint's"):
        flow.save(a, str(tmp_path / "mine"))
    assert (tmp_path / "mine" / "notes.txt").read_text(encoding="utf-8") == "keep"


def test_variables_can_be_changed_between_calls(tmp_path):
    g, x = make_graph(lambda self, x: self.m(x), m=nn.Linear(4, 3)), batch()[0]
    g(x)
    flow.save(g, str(tmp_path / "m"))
    loaded = flow.load_graph(str(tmp_path / "m"))
    loaded.variables["m.weight"].zero_()
    assert np.allclose(loaded(x).numpy(), g.m.to(nn.Module).bias.numpy(), atol=1e-6)
    loaded.variables["m.weight"].data = flow.ones(3, 4)
    assert np.allclose(loaded(x).numpy(), x.numpy().sum(1, keepdims=True) + g.m.to(nn.Module).bias.numpy(),
                       atol=1e-5)


# ---- misuse and damage
def test_invalid_paths_and_objects_are_refused(tmp_path):
    g = make_graph(lambda self, x: self.m(x), m=make_mlp())
    with pytest.raises(RuntimeError, match="graph must be compiled first"):
        flow.save(g, str(tmp_path / "m"))
    g(batch()[0])
    flow.save(g, str(tmp_path / "m"))
    with pytest.raises(AssertionError, match="is a graph, not a state") as e:
        flow.load(str(tmp_path / "m"))
    assert "flow.load_graph" in str(e.value)
    for path in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(CheckpointError, match="holds no graph"):
            flow.load_graph(str(path))
    loaded = flow.load_graph(str(tmp_path / "m"))
    with pytest.raises(RuntimeError, match="wrong number of inputs"):
        loaded()
    for x in (flow.ones(3, 4), flow.ones(8, 4).double(), 3):
        with pytest.raises(RuntimeError, match="does not fit"):
            loaded(x)
    parts = trainer(m := make_mlp(), flow.optim.SGD(m.parameters(), lr=0.1),
                    config={"set_gradient_accumulation_steps": 2})
    parts(*batch())
    with pytest.raises(NotImplementedError, match="gradient accumulation cannot be saved"):
        flow.save(parts, str(tmp_path / "p"))


EVIL = ['"flowedu.__import__"(%0) {"op_name": "x"} : (tensor<8x4xf32>) -> tensor<8x4xf32>',
        '"flowedu.relu"(%0) {"op_name": __import__("os").system("touch evil")} : (tensor<8x4xf32>) -> '
        'tensor<8x4xf32>', '"flowedu.relu"(%99) {"op_name": "x"} : (tensor<8x4xf32>) -> tensor<8x4xf32>',
        '"flowedu.relu"(%0) {"op_name": 3} : (tensor<8x4xf32>) -> tensor<8x4xf32>',
        '"flowedu.relu"(%0) {} : (tensor<8x4xf32>) -> tensor<8x4xf32>',
        '"flowedu.relu"(%0) {"op_name": "x", "nonsense": 1} : (tensor<8x4xf32>) -> tensor<8x4xf32>',
        '"flowedu.reshape"(%0) {"op_name": "x", "shape": [1e400]} : (tensor<8x4xf32>) -> tensor<8x4xf32>',
        '"flowedu.reshape"(%0) {"op_name": "x", "shape": "all"} : (tensor<8x4xf32>) -> tensor<8x4xf32>',
        '"flowedu.expand"(%0) {"op_name": "x", "shape": [99999999999, 99999999999, 8, 4]} : '
        '(tensor<8x4xf32>) -> tensor<1xf32>',
        '"flowedu.variable"() {"op_name": "../../secret"} : () -> tensor<3xf32>',
        '"flowedu.variable"() {"op_name": "m.0.bias"} : () -> tensor<5xf32>',
        '"flowedu.variable"() {"op_name": "m.0.bias"} : () -> tensor<-6xf32>',
        '"flowedu.constant"() {"op_name": "y", "shape": [99999999, 99999999], "value": 1, "dtype": {"dtype": '
        '"float32"}} : () -> tensor<1xf32>',
        '"flowedu.cast"(%0) {"op_name": "y", "dtype": "float32"} : (tensor<8x4xf32>) -> tensor<1xf32>',
        '"flowedu.as_strided"(%0) {"op_name": "y", "size": [9999], "stride": [1], "offset": 4} : '
        '(tensor<8x4xf32>) -> tensor<9999xf32>',
        '"flowedu.softmax"(%0) {"op_name": "y", "axis": 77} : (tensor<8x4xf32>) -> tensor<8x4xf32>',
        '"flowedu.softmax"(%0) {"op_name": "y", "axis": "b"} : (tensor<8x4xf32>) -> tensor<8x4xf32>',
        '"flowedu.sgd_update"(%0, %0, %0, %0) {"op_name": "x"} : () -> tensor<1xf32>',
        '"flowedu.relu"(%0) {"op_name": ' + "[" * 5000 + "} : (tensor<8x4xf32>) -> tensor<8x4xf32>",
        "import os", "", "module {"]


def test_damaged_texts_raise_and_are_never_executed(tmp_path):
    g = make_graph(lambda self, x: self.m(x), m=make_mlp())
    g(batch()[0])
    path = tmp_path / "m"
    flow.save(g, str(path))
    file = path / "model.mlir"
    text = file.read_text(encoding="utf-8")
    lines = text.splitlines()
    here = next(i for i, line in enumerate(lines) if "matmul" in line)
    for evil in EVIL:
        for rest in (lines[here + 1:], lines[here:]):  # instead of a line, or in addition to all lines
            file.write_text("\n".join([*lines[:here], f"    %55 = {evil}",
                                       *rest]).replace("return %", "return %55, %"),
                            encoding="utf-8")
            with pytest.raises(CheckpointError, match="flow.load_graph"):
                flow.load_graph(str(path))
    for cut in range(0, len(text) - 8, 97):                           # truncated anywhere
        file.write_text(text[:cut], encoding="utf-8")
        with pytest.raises(CheckpointError, match="flow.load_graph"):
            flow.load_graph(str(path))
    file.write_bytes(b"\xff\xfe\x00" * 100)
    with pytest.raises(CheckpointError, match="flow.load_graph"):
        flow.load_graph(str(path))
    file.write_text(text, encoding="utf-8")
    (path / "m.0.bias" / "out").write_bytes(b"123")
    with pytest.raises(CheckpointError, match="too short"):
        flow.load_graph(str(path))
    assert not os.path.exists("evil")


NUMBERS = ["-1", "0", "1", "3", "17", str(2**31), str(2**62), str(10**29), "1.5", "1e400", "true", "null",
           "[]", "{}", '"a"', "[[1]]", '{"dtype": "int64"}', '{"tuple": 3}', '{"dict": [[[], 0]]}', "NaN"]


def damaged(text, draw):
    """Return the text with one change: a number, a name, a letter, or a line."""
    how = draw.randrange(5)
    if how < 2:
        at = draw.choice(list(re.finditer(r"-?\d+(\.\d+)?|true|false|null" if how else r'"[^"]*"', text)))
        return text[:at.start()] + draw.choice(NUMBERS) + text[at.end():]
    if how == 2:
        at = draw.randrange(len(text))
        return text[:at] + draw.choice("%,x()[]{}: \"\n\0019eé") + text[at + draw.randrange(3):]
    lines = text.splitlines()
    i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
    lines[i] = lines[j] if how == 3 else lines[i].replace("outputs", "inputs") if draw.randrange(2) else ""
    return "\n".join(lines)


def attack(folder, name, count):
    """Load a randomly changed file: it loads, perhaps as another graph that runs, or raises FlowError."""
    resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))        # larger requests raise MemoryError
    g, xs, _ = called(name)
    flow.save(g, folder)
    file = Path(folder, "model.mlir")
    text, draw, loads = file.read_text(encoding="utf-8"), random.Random(name), 0
    for i in range(count):
        file.write_text(damaged(text, draw) if i else text, encoding="utf-8")
        try:
            flow.load_graph(folder)(*xs)
            loads += 1
        except (FlowError, MemoryError):
            continue
        except Exception as error:
            raise AssertionError(
                f"{type(error).__name__} from\n{file.read_text(encoding='utf-8')}") from error
    assert loads > 0 and loads < count


@pytest.mark.parametrize("name", few(NETS, lambda name: name == NETS[0]))
def test_corrupted_texts_only_raise_flow_errors(tmp_path, name):
    script = f"from graph.test_saving import attack; attack({str(tmp_path / 'm')!r}, {name!r}, 60)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, encoding="utf-8",
                          env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]),
                                                                            *sys.path])})
    assert done.returncode == 0, done.stderr[-3000:]
