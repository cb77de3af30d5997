"""Rules for the map of `make test-near`: it names existing files, covers core, and chooses few tests."""
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import HANGS, load_tool

ROOT = Path(__file__).parents[2]
near = load_tool("near")
NEAREST = json.loads(near.MAP.read_text(encoding="utf-8"))
NAMES = ["tests/a.py", "tests/b.py", "tests/c.py", "tests/d.py"]


def test_the_map_names_files_that_exist():
    stale = sorted({file for source, tests in NEAREST.items() for file in (source, *tests)
                    if not (ROOT / file).is_file()})
    fix = "edit it, or python tools/near.py --record"
    assert not stale, f"tests/near.json names missing files: {stale}; fix: {fix}"


def test_each_file_of_core_with_functions_has_tests():
    core = ROOT / "src" / "flowedu" / "core"
    sources = [f.relative_to(ROOT).as_posix() for f in core.rglob("*.py")
               if "    return " in f.read_text(encoding="utf-8")]
    assert [s for s in sources if s not in NEAREST] == []


@given(st.dictionaries(st.sampled_from(NAMES), st.sets(st.integers(1, 9), min_size=1), min_size=1),
       st.fixed_dictionaries({name: st.floats(0.0, 40.0) for name in NAMES}))
def test_chosen_tests_fit_the_time_and_each_adds_lines_while_lines_are_missing(lines, seconds):
    chosen = near.choose_tests(lines, dict.fromkeys(NAMES, 9), seconds)
    assert sum(seconds[test] for test in chosen) <= near.SECONDS + 1e-9          # rounding of a sum of four
    assert len(set(chosen)) == len(chosen)
    reached = set().union(*(lines[test] for test in chosen))
    left = near.SECONDS - sum(seconds[test] for test in chosen)
    for test in set(lines) - set(chosen):
        assert lines[test] <= reached or seconds[test] > left - 1e-9             # it would have added a line


def run_near(*arguments):
    command = [sys.executable, ROOT / "tools" / "near.py", *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=HANGS)


@pytest.mark.parametrize("arguments", [(), ("src/flowedu/no_such_file.py",), ("/nowhere/at_all.py",)])
def test_a_missing_file_is_an_error_with_a_command_to_type(arguments):
    run = run_near(*arguments)
    assert run.returncode == 1 and f"fix: {near.EXAMPLE}" in run.stderr


def test_compiled_files_have_the_tests_that_contain_their_name():
    tests = near.find_tests(ROOT / "src" / "flowedu" / "_kernels" / "fast" / "winograd.h")
    assert any("winograd" in test for test in tests)
