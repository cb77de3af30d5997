"""Rule: every public name in tests/public_names.txt stays, because programs use it. Add new names by hand."""
from pathlib import Path

import flowedu as flow

NAMES = (Path(__file__).parents[1] / "public_names.txt").read_text(encoding="utf-8").split()


def find_public(path: str):
    value = flow
    for name in path.split("."):
        value = getattr(value, name)
    return value


def test_every_public_name_exists():
    missing = []
    for path in NAMES:
        try:
            find_public(path)
        except AttributeError:
            missing.append(path)
    assert not missing


def test_no_unlisted_name_is_public():
    """Compares `__all__` with the list, so modules that happen to be loaded do not count."""
    assert {*flow.__all__} == {name for name in NAMES if "." not in name}
