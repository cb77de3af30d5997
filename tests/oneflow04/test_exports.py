"""Every name exported by OneFlow 0.4 (exports.txt) exists or is in the list of unsupported names, whose
reason the error message quotes.
"""
from pathlib import Path

import pytest

import flowedu as flow
from flowedu import mock
from flowedu.errors.oneflow04 import REASONS, reason

NAMES = (Path(__file__).parent / "exports.txt").read_text(encoding="utf-8").split()


def looked_up(path: str, root=flow):
    for name in path.split("."):
        root = getattr(root, name)
    return root


def is_there(path: str) -> bool:
    try:
        looked_up(path)
    except AttributeError:
        return False
    return True


MISSING = [name for name in NAMES if not is_there(name)]


def test_every_missing_name_is_listed():
    assert len(NAMES) == len(set(NAMES)) == 645
    assert [name for name in MISSING if reason(name) is None] == []


def test_every_listed_name_is_missing():
    assert [path for path in REASONS if is_there(path)] == []
    used = {path for name in MISSING for path in REASONS if name == path or name.startswith(path + ".")}
    assert used == set(REASONS)


@pytest.mark.parametrize("name", MISSING)
def test_the_error_quotes_the_reason(name):
    with pytest.raises(AttributeError) as e:
        looked_up(name)
    assert reason(name) in str(e.value)


@pytest.mark.parametrize("name", sorted(REASONS))
def test_the_import_error_quotes_the_reason(name):
    owner, _, last = f"oneflow.{name}".rpartition(".")
    with mock.enable("oneflow"), pytest.raises(ImportError) as e:
        exec(f"import oneflow.{name}" if "." not in name else f"from {owner} import {last}", {})
    assert reason(name) in str(e.value)
