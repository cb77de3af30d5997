"""Pytest plugin of tools/array_api.py for runs of the suite data-apis/array-api-tests.

It marks the cases of xfails.txt, writes the counts of a run to a file, and makes the suite importable without
complex dtypes.
"""
import builtins
import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest
from expected import matches, read_xfails  # expected.py in this folder


class _RealDtypes:
    """Import hook for array_api_tests.dtype_helpers, whose widest complex dtype becomes float64 here."""

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
