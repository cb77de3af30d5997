"""The benchmarks are programs: their files import each other from their folder."""
import importlib
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def pytest_ignore_collect(collection_path, config):
    """An installed package has none."""
    return None if FOLDER.exists() else True


@pytest.fixture
def program(monkeypatch):
    """Import one of their files by name. None stays: others have files of these names."""
    monkeypatch.syspath_prepend(FOLDER)
    before = {*sys.modules}
    yield importlib.import_module
    for name in {*sys.modules} - before:
        if getattr(sys.modules[name], "__file__", None) and Path(sys.modules[name].__file__).parent == FOLDER:
            del sys.modules[name]
