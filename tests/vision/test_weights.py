"""Weights in .safetensors files."""
import sys

import numpy as np
import pytest

import flowedu as flow
from flowedu.errors import CheckpointError
from flowedu.errors.extras import install
from flowedu.vision import models

safetensors = pytest.importorskip("safetensors.numpy")


def net(**kwargs):
    return models.mobilenet_v2(width_mult=0.25, num_classes=4, **kwargs)


def assert_same_state(a, b):
    assert list(a.state_dict()) == list(b.state_dict())
    for name, t in a.state_dict().items():
        np.testing.assert_array_equal(t.detach().numpy(), b.state_dict()[name].detach().numpy(), err_msg=name)


def test_save_and_load(tmp_path):
    flow.manual_seed(0)
    model, other = net(), net()
    model(flow.randn(2, 3, 32, 32))  # so that the running statistics and their count are not 0
    path = models.save_weights(model, tmp_path / "deep" / "net.safetensors")
    assert [p.name for p in path.parent.iterdir()] == ["net.safetensors"]
    parameters = list(other.parameters())
    assert str(models.load_weights(other, path)) == "<All keys matched successfully>"
    assert_same_state(model, other)
    assert all(p is q for p, q in zip(parameters,
                                      other.parameters())), "an optimizer made before keeps its parameters"
    assert int(other.state_dict()["features.0.1.num_batches_tracked"].item()) == 1


def test_pretrained_reads_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("FLOWEDU_CACHE", str(tmp_path))
    model = net()
    models.save_weights(model, tmp_path / "weights" / "mobilenet_v2.safetensors")
    assert_same_state(model, net(pretrained=True))
    with pytest.raises(RuntimeError, match="size mismatch for classifier.1.weight"):
        models.mobilenet_v2(pretrained=True, width_mult=0.25, num_classes=5)


@pytest.mark.torch
def test_files_of_pytorch_fit(tmp_path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    from . import twins
    theirs = twins.ResNet(False, (2, 2, 2, 2), 8, 5)
    save_file(theirs.state_dict(), tmp_path / "r.safetensors")
    ours = models.resnet18(num_classes=5, width_mult=0.125)
    models.load_weights(ours, tmp_path / "r.safetensors")
    x = np.random.default_rng(0).random((2, 3, 33, 33)).astype(np.float32)
    ours.eval()
    theirs.eval()
    np.testing.assert_allclose(ours(flow.tensor(x)).detach().numpy(),
                               theirs(torch.tensor(x)).detach().numpy(), atol=1e-5)
    half = {n: t.bfloat16() if t.is_floating_point() else t for n, t in theirs.state_dict().items()}
    save_file(half, tmp_path / "b.safetensors")
    models.load_weights(ours, tmp_path / "b.safetensors")
    for name, t in ours.state_dict().items():
        np.testing.assert_array_equal(t.float().numpy(), half[name].float().numpy())


def test_names_that_do_not_fit(tmp_path):
    path = tmp_path / "x.safetensors"
    state = {n: t.detach().numpy() for n, t in net().state_dict().items()}
    state["extra"] = state.pop("classifier.1.bias")
    safetensors.save_file(state, path)
    with pytest.raises(RuntimeError, match=r'(?s)Missing key.*"classifier.1.bias".*Unexpected key.*"extra"'):
        models.load_weights(net(), path)
    result = models.load_weights(net(), path, strict=False)
    assert result.missing_keys == ["classifier.1.bias"] and result.unexpected_keys == ["extra"]


@pytest.mark.parametrize("content", [None, b"", b"x" * 100, b"\xff" * 8 + b"{}"])
def test_files_that_are_missing_or_damaged(tmp_path, content):
    path = tmp_path / "x.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CheckpointError, match="there is no file" if content is None else "cannot be read"):
        models.load_weights(net(), path)


def test_a_write_that_fails_keeps_the_old_file(tmp_path, monkeypatch):
    model = net()
    path = models.save_weights(model, tmp_path / "a.safetensors")
    before = path.read_bytes()

    def broken(arrays):
        raise OSError("no space left")

    monkeypatch.setattr(safetensors, "save", broken)
    with pytest.raises(OSError, match="no space"):
        models.save_weights(net(), path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_without_the_package(tmp_path, monkeypatch):
    path = models.save_weights(net(), tmp_path / "x.safetensors")
    for name in ("safetensors", "safetensors.numpy"):
        monkeypatch.setitem(sys.modules, name, None)
    for f in (models.save_weights, models.load_weights):
        with pytest.raises(RuntimeError, match=install("safetensors")):
            f(net(), path)
