"""Law of suggestions: typos are corrected, and a different function of another library is not suggested."""
import random

import numpy as np
import pytest

import flowedu as flow
from flowedu.errors.elsewhere import ON_DEVICE
from flowedu.errors.left_out import find_row
from flowedu.errors.nearest import UnknownNameError, nearest, slips

from .torch_names import LOOKED_AT, NAMES

KNOWN = {"flow": flow, "np": np}


def missing() -> list[tuple[str, str]]:
    """Return (module, name) of missing names."""
    return [(home, name) for home, names in NAMES.items() for name in names.split()
            if not hasattr(eval(home, KNOWN), name)]


def test_at_least_a_hundred_names():
    """The tests below draw from these names, so they check nothing if the list shrinks."""
    assert len(missing()) > 100


@pytest.mark.parametrize("home", NAMES)
def test_no_name_of_another_meaning_is_suggested(home):
    for name in [n for h, n in missing() if h == home]:
        with pytest.raises(UnknownNameError) as e:
            getattr(eval(home, KNOWN), name)
        e = e.value
        row = find_row(f"{home}.{name}".removeprefix("flow."))
        remedy = row.format_fix() if row else ON_DEVICE.get(f"{home}.{name}", ON_DEVICE.get(name))
        if remedy is not None:
            assert e.fix == remedy and "perhaps" not in e.expected
        elif "NumPy" in e.fix:
            assert callable(eval(e.fix.split(": ")[1].split(",")[0], KNOWN)), e
        elif name in LOOKED_AT:
            assert e.fix == f"{home}.{LOOKED_AT[name]}" and hasattr(eval(home, KNOWN), LOOKED_AT[name])
        else:
            assert e.fix == f"dir({home}) lists the names there are", f"{name} is taken for another: {e}"


@pytest.mark.parametrize("home", NAMES)
def test_a_typo_is_corrected(home):
    """A letter omitted, doubled, or swapped with the next, in each public name; equally close names are
    accepted.
    """
    draw, names = random.Random(7), [n for n in dir(eval(home, KNOWN)) if n[0] != "_"]
    for name in [n for n in names if len(n) > 3]:
        i = draw.randrange(1, len(name) - 1)
        if name[i - 1].isdigit() or name[i].isdigit():
            continue
        head, letter, tail = name[:i], name[i], name[i + 1:]
        for wrong in (head + tail, head + 2 * letter + tail, head[:-1] + letter + head[-1] + tail):
            if wrong not in names and wrong[0] != "_":
                found = nearest(wrong, names) or ""
                assert (found and (slips(wrong, found) <= 1 or _plain(found) == _plain(wrong))), (name, wrong,
                                                                                                  found)


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def test_the_module_attribute_of_an_unwrapped_model():
    """The line that saves a model in every program with DistributedDataParallel."""
    with pytest.raises(AttributeError, match=r"fix: .*model.state_dict\(\)"):
        flow.nn.Linear(2, 2).module  # noqa: B018


@pytest.mark.parametrize("home", ["torch", "torch.linalg"])
def test_a_torch_program_gets_the_same_suggestion(home):
    name, word = {"torch": ("fx", "nn.Graph"), "torch.linalg": ("eig", "np.linalg.eig")}[home]
    assert word in str(UnknownNameError(home, name, lambda: ["trunc", "solve"], home + "."))


def test_all_names_of_a_small_module_are_listed():
    with pytest.raises(AttributeError, match="one of .*clip_grad_norm_"):
        flow.nn.utils.weight_norm_of_all  # noqa: B018
