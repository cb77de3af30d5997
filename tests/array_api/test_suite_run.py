"""Tests of tools/array_api.py and of the list of expected failures, without the suite itself."""
from pathlib import Path

import pytest

from common import load_tool

from .expected import matches, read_xfails


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """Return the module tools/array_api.py with an empty folder as the repository and no suite installed."""
    module = load_tool("array_api")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    monkeypatch.delenv("FLOWEDU_ARRAY_API_TESTS", raising=False)
    return module


def test_without_the_suite_the_tool_prints_how_to_get_it(tool, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["array_api.py"])
    assert tool.main() == 0
    printed = capsys.readouterr().out
    assert "nothing was tested" in printed and "git clone" in printed and tool.PINNED in printed


def test_find_suite_prefers_the_requested_folder(tool, tmp_path, monkeypatch):
    for name in ("asked für", "build/array-api-tests"):
        for part in ("array_api_tests", "array-api/src"):
            (tmp_path / name / part).mkdir(parents=True)
    assert tool.find_suite(None) == tmp_path / "build" / "array-api-tests"
    monkeypatch.setenv("FLOWEDU_ARRAY_API_TESTS", str(tmp_path / "asked für"))
    assert tool.find_suite(None) == tool.find_suite(str(tmp_path / "asked für")) == tmp_path / "asked für"
    assert tool.find_suite(str(tmp_path)) == tmp_path / "asked für"


def test_every_expected_failure_has_a_reason():
    rows = read_xfails(Path(__file__).with_name("xfails.txt"))
    assert len(rows) > 10 and all(reason for reason, _ in rows.values())
    assert all(pattern.startswith("test_") and ".py::test_" in pattern for pattern in rows)


@pytest.mark.parametrize("test_id, pattern, same", [
    ("a.py::test_x[f(x1, x2)]", "a.py::test_x[f(x1, x2)]", True), ("a.py::test_x[f(x1, x2)]",
                                                                   "a.py::test_x[*x2)]", True),
    ("a.py::test_x[x]", "a.py::test_x", False), ("a.py::test_xx", "a.py::test_x*", True),
    ("a.py::test_x[z]", "a.py::test_x[?]", False)])
def test_patterns_match_test_ids(test_id, pattern, same):
    assert matches(test_id, pattern) is same


def test_lines_with_a_tilde_may_pass(tmp_path):
    file = tmp_path / "xfails.txt"
    file.write_text("# comment\n\na.py::test_x  # one\n~a.py::test_y[*]  # two\n", encoding="utf-8")
    assert read_xfails(file) == {"a.py::test_x": ("one", True), "a.py::test_y[*]": ("two", False)}
