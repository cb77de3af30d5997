"""A pytest plugin for runs of the suite data-apis/array-api-tests, used by tools/array_api.py; not for the other tests.

It marks the cases of xfails.txt, writes the counts of a run to a file, and makes the suite importable without complex
dtypes.
"""
import builtins
import fnmatch
import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

XFAILS = Path(__file__).with_name("xfails.txt")


def read_xfails(path: Path = XFAILS) -> dict[str, tuple[str, bool]]:
    """Return {pattern of test ids: (reason, True if every case must fail)} of a file of expected failures.

    A line is `pattern  # reason`; in a pattern only `*` is special. A line that begins with `~` names cases that fail for
    some of the inputs that may be drawn, so they may pass, too.
    """
    rows = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, _, reason = line.partition("  # ")
            rows[pattern.removeprefix("~").strip()] = (reason.strip(), not line.startswith("~"))
    return rows


def matches(test_id: str, pattern: str) -> bool:
    """Return True if `pattern` describes the test; `*` stands for any characters."""
    return fnmatch.fnmatchcase(test_id, pattern.replace("[", "[[]"))


class _RealDtypes:
    """Import hook for array_api_tests.dtype_helpers, which computes the widest complex dtype; float64 where none exists."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "array_api_tests.dtype_helpers":
            return None
        sys.meta_path.remove(_RealDtypes)
        spec = importlib.util.find_spec(name)
        load = spec.loader.exec_module

        def exec_module(module):
            from array_api_tests import xp
            module.max = lambda *args, **options: builtins.max(
                *args, **options, **({"default": (xp.float64, 64)} if len(args) == 1 else {}))
            load(module)

        spec.loader.exec_module = exec_module
        return spec


sys.meta_path.insert(0, _RealDtypes)


def pytest_collection_modifyitems(items):
    if not os.environ.get("FLOWEDU_ARRAY_API_XFAILS"):
        return
    rows = read_xfails(Path(os.environ["FLOWEDU_ARRAY_API_XFAILS"]))
    for item in items:
        name = item.nodeid.rpartition("array_api_tests/")[2]
        for pattern, (reason, always) in rows.items():
            if matches(name, pattern):
                item.add_marker(pytest.mark.xfail(reason=reason, strict=always))
                break


def pytest_terminal_summary(terminalreporter):
    report = os.environ.get("FLOWEDU_ARRAY_API_REPORT")
    if report:
        kinds = ("passed", "failed", "error", "xfailed", "xpassed", "skipped")
        stats = terminalreporter.stats
        counts = {kind: len(stats.get(kind, [])) for kind in kinds}
        wrong = [r.nodeid for kind in ("failed", "error") for r in stats.get(kind, [])]
        Path(report).write_text(json.dumps({"counts": counts, "wrong": wrong}), encoding="utf-8")
