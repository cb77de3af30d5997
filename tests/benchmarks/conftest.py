"""Fixtures for benchmarks/, whose files are programs that import each other from their folder."""
import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def pytest_ignore_collect(collection_path, config):
    """Skip these tests with an installed package, which has no folder benchmarks/."""
    return None if FOLDER.exists() else True


@pytest.fixture
def program(monkeypatch):
    """Import files of benchmarks/ by name, and unload them at the end, because other modules share names."""
    monkeypatch.syspath_prepend(FOLDER)
    before = {*sys.modules}
    yield importlib.import_module
    for name in {*sys.modules} - before:
        if getattr(sys.modules[name], "__file__", None) and Path(sys.modules[name].__file__).parent == FOLDER:
            del sys.modules[name]
