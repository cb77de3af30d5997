"""The table of docs/missing.md equals the table in the package, and the error for each name quotes its
row.
"""
import importlib
from pathlib import Path

import pytest

import flowedu as flow
from flowedu import mock
from flowedu.errors import ArgumentError
from flowedu.errors.elsewhere import ON_DEVICE
from flowedu.errors.left_out import LEFT_OUT, NAMED, table

# names that exist in torch and oneflow, and are no-ops or refused
ANSWERED = {"torch": {"jit", "compile", "fx", "hub", "mps", "xpu"},
            "oneflow": {"jit", "compile", "fx", "mps", "xpu"}}


def get_path(root, path: str):
    for part in path.split("."):
        root = getattr(root, part)
    return root


def test_the_page_shows_the_table():
    text = (Path(__file__).parents[2] / "docs" / "missing.md").read_text(encoding="utf-8")
    assert text.count(table()) == 1 and text.count(table().splitlines()[0]) == 1
    assert len(NAMED) == sum(len(row.names.split()) for row in LEFT_OUT) > 50, "a name has two rows"
    assert not NAMED.keys() & ON_DEVICE.keys()
    assert all(row.what and row.why and row.instead and "|" not in "".join(row) for row in LEFT_OUT)


@pytest.mark.parametrize("name", NAMED)
def test_the_error_for_a_missing_name_quotes_its_row(name):
    with pytest.raises(AttributeError) as e:
        get_path(flow, name)
    row = NAMED[name]
    assert (e.value.fix == row.format_fix() and all(words in str(e.value)
                                                    for words in (row.what, row.why, row.instead)))


@pytest.mark.parametrize("package", mock.NAMES)
def test_the_error_under_the_mock_quotes_its_row(package):
    with mock.enable(package):
        top = importlib.import_module(package)
        for name, row in NAMED.items():
            if name in ANSWERED[package]:
                get_path(top, name)
                continue
            root = (top if not name.startswith("vision.")
                    else importlib.import_module(mock.names.WITH[package][1]))
            with pytest.raises(AttributeError) as e:
                get_path(root, name.removeprefix("vision."))
            assert e.value.fix == row.format_fix(), name
            # elsewhere only the parent is missing
            if "." not in name or name.rpartition(".")[0] in ("nn", "utils", "distributed"):
                with pytest.raises(ModuleNotFoundError) as e:
                    importlib.import_module(f"{package}.{name}")
                assert row.format_fix() in str(e.value), name


def test_missing_or_refused_names_of_mock_modules_quote_the_row():
    with mock.enable("torch"):
        import torch
        with pytest.raises(AttributeError) as e:
            torch.jit.load  # noqa: B018
        assert e.value.fix == NAMED["jit"].format_fix() and torch.fx.wrap("f") == "f"
        with pytest.raises(AttributeError) as e:
            torch.fx.symbolic_trace  # noqa: B018
        assert e.value.fix == NAMED["fx"].format_fix()
        for refused in (torch.hub.load, torch.hub.load_state_dict_from_url, torch.utils.model_zoo.load_url):
            with pytest.raises(ArgumentError) as e:
                refused("pytorch/vision")
            assert e.value.fix == NAMED["hub"].format_fix()
