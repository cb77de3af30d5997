"""Errors that name the cause and a workaround: copies, watching, profiles, files, and tracebacks."""
import copy
import os
import pickle
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest

import flowedu as flow
import flowedu.typing as tp
from common import HANGS, fresh_session  # noqa: F401
from flowedu import nn
from flowedu.vision import datasets

COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x))}


class Small(nn.Graph):
    def __init__(self):
        super().__init__()
        self.m = nn.Linear(2, 2)

    def build(self, x):
        return self.m(x)


@flow.global_function("predict")
def doubled(x: tp.Numpy.Placeholder((2,))) -> tp.Numpy:
    return x * 2.0


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("called", [False, True])
def test_a_graph_is_not_copied(how, called):
    g = Small()
    if called:
        g(flow.ones(1, 2))
    for what in (g, [g], {"graph": g}):
        if how == "copy" and what is not g:
            continue
        with pytest.raises(flow.errors.GraphError, match="cannot be copied or pickled") as e:
            COPIES[how](what)
        assert "Small(...)" in e.value.fix and "flow.save" in e.value.fix


@pytest.mark.parametrize("how", COPIES)
def test_compiled_objects_are_copied_or_refused(how):
    g = Small()
    x = flow.ones(2, requires_grad=True)
    module = COPIES[how](g.m)
    assert isinstance(module, nn.Linear) and np.array_equal(module.weight.numpy(), g.m.weight.numpy())
    tensor = COPIES[how](g.m.weight)
    assert isinstance(tensor, flow.Tensor) and np.array_equal(tensor.numpy(), g.m.weight.numpy())
    assert COPIES[how](doubled) is doubled
    for node in ((x * 2).grad_fn, (x * 2).sum().grad_fn):
        with pytest.raises(flow.errors.GradientError, match="cannot be copied or pickled"):
            COPIES[how](node)
    for value in (flow.float32, flow.device("cpu"), x.shape, flow.placement("cpu", [0]), flow.sbp.split(0),
                  g.config):
        assert type(COPIES[how](value)) is type(value)


def test_recommended_ways_to_read_values():
    x = flow.ones(2, requires_grad=True)
    with pytest.raises(flow.errors.UnsupportedError) as e:
        flow.watch(x, print)
    assert "print(x)" in e.value.fix
    with pytest.raises(flow.errors.UnsupportedError) as e:
        flow.watch_diff(x, print)
    assert "x.register_hook(print)" in e.value.fix

    class Hooked(Small):
        def build(self, x):
            y = self.m(x)
            getattr(y, self.method)(*self.arguments)
            return y

    for method, arguments in (("register_hook", (print,)), ("retain_grad", ())):
        g = Hooked()
        g.method, g.arguments = method, arguments
        with pytest.raises(flow.errors.LazyTensorError) as e:
            g(flow.ones(1, 2))
        assert "flow.watch_diff" in e.value.fix and "flow.watch(" in e.value.fix
    g = Small()
    g.m.register_forward_hook(print)
    with pytest.warns(UserWarning, match=r"flow\.watch and flow\.watch_diff"):
        g(flow.ones(1, 2))


def test_the_error_explains_why_a_job_has_no_profile(fresh_session):  # noqa: F811
    config = flow.FunctionConfig()
    config.default_logical_view(flow.scope.mirrored_view())

    @flow.global_function("predict", config)
    def many(x: tp.ListNumpy.Placeholder((2,))) -> tp.ListNumpy:
        return x * 2.0

    @flow.global_function("predict")
    def one(x: tp.Numpy.Placeholder((2,))) -> tp.Numpy:
        return x * 2.0

    for job, argument, cause in ((many, [np.ones(2, np.float32)], "varies"), (one, np.ones(2), "dtype"),
                                 (one, np.ones(4, np.float32)[::2], "C-contiguous")):
        for method in (job.profile, job.timeline):
            with pytest.raises(flow.errors.CheckError, match="cannot be profiled") as e:
                method(argument)
            assert cause in e.value.got


def test_an_array_of_another_dtype_is_cast(fresh_session):  # noqa: F811
    """As in OneFlow 0.3 and 0.4."""
    @flow.global_function("predict")
    def same(x: tp.Numpy.Placeholder((3,))) -> tp.Numpy:
        return x * 1.0

    for array in (np.array([1.5, 1 / 3, -2]), np.arange(3), np.array([True, False, True])):
        result = same(array)
        assert result.dtype == np.float32 and np.array_equal(result, array.astype(np.float32))
    assert "cast" in tp.Numpy.Placeholder.__doc__


def test_a_part_that_is_a_folder(tmp_path):
    (tmp_path / "part-0").mkdir()
    with pytest.raises(flow.errors.DataError, match="part-0 is a folder") as e:
        list(flow.data.ofrecord_records(tmp_path / "part-0"))
    assert "ofrecord_dir=" in e.value.fix


@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST", "KMNIST", "CIFAR10", "CIFAR100"])
def test_a_download_without_a_network_names_data_that_need_none(name, tmp_path, monkeypatch):
    def refuse(*args, **kwargs):
        raise OSError("Network is unreachable")

    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.setattr(urllib.request.OpenerDirector, "open", refuse)
    with pytest.raises(flow.errors.DataError) as e:
        getattr(datasets, name)(tmp_path, download=True)
    assert ("without a network" in e.value.fix and ("MNISTSubset()" in e.value.fix
                                                    or "SyntheticCIFAR10()" in e.value.fix))


@pytest.mark.parametrize("as_module", [False, True])
def test_a_traceback_under_the_mock_begins_in_the_program(tmp_path, as_module):
    (tmp_path / "program.py").write_text("import torch\n\n\ndef wrong():\n    raise "
                                         "KeyError('mine')\n\n\nwrong()\n")
    program = ["-m", "program"] if as_module else ["program.py"]
    done = subprocess.run([sys.executable, "-m", "flowedu.mock", "--as", "torch", *program], cwd=tmp_path,
                          encoding="utf-8", capture_output=True, timeout=HANGS,
                          env={**os.environ, "PYTHONPATH": str(Path(flow.__file__).parents[1])})
    frames = [line for line in done.stderr.splitlines() if line.startswith("  File ")]
    assert done.returncode == 1 and len(frames) == 2 and all("program.py" in f for f in frames), done.stderr
