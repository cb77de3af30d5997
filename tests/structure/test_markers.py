"""The tests that need PyTorch are found by what they do, so that none runs nowhere."""
from pathlib import Path

from markers import torch_tests

HELPERS = '''
import pytest

def peer():
    return pytest.importorskip("torch.nn")

def helper():
    return peer()

def test_direct():
    import torch

def test_indirect():
    assert helper()

def test_free():
    assert pytest.importorskip("numpy") and "torch"
'''


def test_helpers_count(tmp_path):
    file = tmp_path / "test_some.py"
    file.write_text(HELPERS, encoding="utf-8")
    assert torch_tests(file) == {"peer", "helper", "test_direct", "test_indirect"}


def test_a_file_that_imports_it_needs_it_everywhere(tmp_path):
    file = tmp_path / "test_whole.py"
    file.write_text('import pytest\ntorch = pytest.importorskip("torch")\n\ndef test_a():\n    pass\n')
    assert torch_tests(file) == {"test_a"}


def test_comparisons_without_a_mark_of_their_own_have_it(request):
    tests = Path(__file__).parents[1]
    assert {"test_as_pytorch_does"} <= torch_tests(tests / "oneflow04" / "test_optimizers.py")
    assert {"test_ctc_agrees_with_pytorch"} <= torch_tests(tests / "ops" / "test_losses.py")
    assert request.node.get_closest_marker("torch") is None
