"""Automatic marks of tests/markers.py: tests that import PyTorch, and repeated combinations of parameters."""
import itertools
from pathlib import Path
from types import SimpleNamespace

import pytest

from markers import FEW, MANY, repeated_combinations, torch_tests

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


def test_calls_of_helpers_count(tmp_path):
    file = tmp_path / "test_some.py"
    file.write_text(HELPERS, encoding="utf-8")
    assert torch_tests(file) == {"peer", "helper", "test_direct", "test_indirect"}


def test_a_file_that_imports_torch_needs_it_in_every_test(tmp_path):
    file = tmp_path / "test_whole.py"
    file.write_text('import pytest\ntorch = pytest.importorskip("torch")\n\ndef test_a():\n    pass\n')
    assert torch_tests(file) == {"test_a"}


def test_unmarked_comparisons_with_pytorch_are_found(request):
    tests = Path(__file__).parents[1]
    assert {"test_optimizers_match_pytorch"} <= torch_tests(tests / "oneflow04" / "test_optimizers.py")
    assert {"test_ctc_agrees_with_pytorch"} <= torch_tests(tests / "ops" / "test_losses.py")
    assert request.node.get_closest_marker("torch") is None


def make_cases(name, *sizes):
    return [SimpleNamespace(nodeid=f"{name}[{at}]", callspec=SimpleNamespace(_idlist=[str(i) for i in at]))
            for at in itertools.product(*map(range, sizes))]


@pytest.mark.parametrize("turn", range(3))
@pytest.mark.parametrize("sizes", [(9, 4), (5, 3, 4), (30, 1)])
def test_every_value_of_every_parameter_runs_once(sizes, turn):
    cases = make_cases("test_law", *sizes)
    repeated = repeated_combinations(cases, turn)
    kept = [case for case in cases if case not in repeated]
    assert max(sizes) <= len(kept) <= sum(sizes)
    for i, size in enumerate(sizes):
        assert {case.callspec._idlist[i] for case in kept} == {*map(str, range(size))}


def test_all_combinations_run_in_some_turn():
    cases = make_cases("test_law", 5, 5)
    left_out = [{case.nodeid for case in repeated_combinations(cases, turn)} for turn in range(64)]
    assert not set.intersection(*left_out)


def test_few_cases_and_tests_without_parameters_always_run():
    few = make_cases("test_few", FEW // 4, 4)
    assert not repeated_combinations([*few, SimpleNamespace(nodeid="test_alone")], 0)


def test_every_case_of_a_large_law_runs_in_one_of_three_turns():
    cases = make_cases("test_large", 4 * MANY)
    kept = [{case.nodeid for case in cases} - {case.nodeid for case in repeated_combinations(cases, turn)}
            for turn in range(3)]
    assert set.union(*kept) == {case.nodeid for case in cases} and sum(map(len, kept)) == len(cases)
