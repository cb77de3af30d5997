"""Counts that do not fit a C int, are not positive integers, or would create too many threads or layers."""
import os
import subprocess
import sys

import pytest

import flowedu as flow
from common import HANGS
from flowedu import nn
from flowedu.core.eager.dispatch import default_threads, most_threads
from flowedu.errors import FlowError
from flowedu.utils.data import BatchSampler, DataLoader

HUGE = [2**31, 2**40, 2**63, 2**64, 10**30]
WRONG = [0, -1, -2**31 - 1, -2**63 - 1, 1.5, float("nan"), float("inf"), -float("inf"), "2", None]
ENCODER, DECODER = nn.TransformerEncoderLayer(4, 2, 4), nn.TransformerDecoderLayer(4, 2, 4)
COUNTS = {
    "set_num_threads": flow.set_num_threads,
    "set_virtual_devices": flow.distributed.set_virtual_devices,
    "cpu_device_num": flow.config.cpu_device_num,
    "LSTM": lambda n: nn.LSTM(3, 4, n),
    "GRU": lambda n: nn.GRU(3, 4, n),
    "RNN": lambda n: nn.RNN(3, 4, n),
    "TransformerEncoder": lambda n: nn.TransformerEncoder(ENCODER, n),
    "TransformerDecoder": lambda n: nn.TransformerDecoder(DECODER, n),
    "DataLoader num_workers": lambda n: DataLoader([1, 2, 3], num_workers=n),
    "BatchSampler": lambda n: list(BatchSampler([1, 2], n, False)),
}
# A batch size above the size of the dataset gives one batch, as in PyTorch.
FINE = {("BatchSampler", n) for n in HUGE[:2]}


@pytest.fixture(autouse=True)
def settings():
    threads = flow.get_num_threads()
    flow.clear_default_session()               # a running session ignores cpu_device_num
    yield
    flow.set_num_threads(threads)


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("n", HUGE, ids=str)
def test_counts_that_are_too_large_are_refused(name, n):
    if (name, n) in FINE:
        COUNTS[name](n)
        return
    with pytest.raises(FlowError, match="expected"):
        COUNTS[name](n)


@pytest.mark.parametrize("name", ["set_num_threads", "set_virtual_devices", "cpu_device_num", "LSTM",
                                  "BatchSampler"])
@pytest.mark.parametrize("n", WRONG, ids=str)
def test_counts_that_are_not_positive_integers_are_refused(name, n):
    with pytest.raises(FlowError, match="expected"):
        COUNTS[name](n)


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), -float("inf"), 1e300, 10**30], ids=str)
def test_invalid_timeouts_of_a_loader_are_refused(timeout):
    with pytest.raises(FlowError, match="timeout"):
        DataLoader([1], num_workers=1, timeout=timeout)


def test_thread_counts_up_to_the_limit():
    for n in (1, 2, most_threads):
        flow.set_num_threads(n)
        assert flow.get_num_threads() in (n, 1)
    with pytest.raises(FlowError, match=f"1 to {most_threads}"):
        flow.set_num_threads(most_threads + 1)
    assert most_threads >= (os.cpu_count() or 1)


@pytest.mark.parametrize("name", ["FLOWEDU_NUM_THREADS", "OMP_NUM_THREADS"])
@pytest.mark.parametrize("text", ["abc", "0", "-1", "2.5", "1e3", "²", "9" * 20, "9" * 5000, str(10**6),
                                  "0x2", "\u0663"],
                         ids=lambda text: text[:8])
def test_an_invalid_thread_count_in_the_environment_is_ignored_with_a_warning(monkeypatch, name, text):
    for other in ("FLOWEDU_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(other, raising=False)
    expected = default_threads()
    monkeypatch.setenv(name, text)
    with pytest.warns(RuntimeWarning, match=f"{name}=.*is ignored: expected 1 to"):
        assert default_threads() == expected


@pytest.mark.parametrize("text, count", [("3", 3), (" 2 ", 2), ("2,4", 2), ("007", 7)])
def test_a_valid_thread_count_in_the_environment_is_used(monkeypatch, recwarn, text, count):
    monkeypatch.setenv("FLOWEDU_NUM_THREADS", text)
    assert default_threads() == count and not recwarn


def test_an_invalid_thread_count_does_not_stop_the_import():
    code = "import flowedu as flow; print(flow.get_num_threads() >= 1, flow.ones(2).sum().item())"
    env = {**os.environ, "FLOWEDU_NUM_THREADS": "9" * 20, "FLOWEDU_DEVICES": "1"}
    child = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, encoding="utf-8",
                           timeout=HANGS)
    assert (child.returncode == 0 and child.stdout.split() == ["True", "2.0"]
            and "is ignored" in child.stderr), child.stderr


@pytest.mark.parametrize("text", ["0", "x", "²", "9" * 5000, str(2**31), "-1"], ids=lambda text: text[:8])
def test_an_invalid_device_count_in_the_environment_is_refused(monkeypatch, text):
    from flowedu.core.sbp import ranks

    monkeypatch.setenv("FLOWEDU_DEVICES", text)
    with pytest.raises(FlowError, match="1 to 4096"):
        ranks._devices()
