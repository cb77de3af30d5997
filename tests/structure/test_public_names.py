"""Every public name stays: programs use them. public_names.txt is the list; a new name is added there by hand."""
from pathlib import Path

import flowedu as flow

NAMES = (Path(__file__).parents[1] / "public_names.txt").read_text(encoding="utf-8").split()


def found(path: str):
    value = flow
    for name in path.split("."):
        value = getattr(value, name)
    return value


def test_every_public_name_is_there():
    missing = []
    for path in NAMES:
        try:
            found(path)
        except AttributeError:
            missing.append(path)
    assert not missing


def test_nothing_else_has_become_public():
    """What a star import brings is on the list; modules that only happen to be loaded are not."""
    assert {*flow.__all__} == {name for name in NAMES if "." not in name}
