"""CIFAR's pickles are read as data: the values equal those of unpickling, and no code in a file is ever
run.
"""
import builtins
import hashlib
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowedu.errors import DataError
from flowedu.vision.datasets import pickled as module
from flowedu.vision.datasets.pickled import read_pickled

from .files import CIFAR10, pickled

# MD5 of the originals, as published with the datasets.
META10, META100 = "5ff9c542aee3614f3951f8cda6e48888", "7973b15100ade9c7d40fb424638fde48"
FINE = """apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly
camel can castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur
dolphin elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard
lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear
pickup_truck pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark
shrew skunk skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone
television tiger tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm""".split()
COARSE = """aquatic_mammals fish flowers food_containers fruit_and_vegetables household_electrical_devices
household_furniture insects large_carnivores large_man-made_outdoor_things large_natural_outdoor_scenes
large_omnivores_and_herbivores medium_mammals non-insect_invertebrates people reptiles small_mammals trees
vehicles_1 vehicles_2""".split()


def write_and_read(tmp_path: Path, data: bytes):
    path = tmp_path / "file"
    path.write_bytes(data)
    return read_pickled(path)


def test_our_writer_makes_the_original_files_byte_for_byte(tmp_path):
    ten = pickled({"num_cases_per_batch": 10000, "label_names": CIFAR10, "num_vis": 3072})
    hundred = pickled({"fine_label_names": FINE, "coarse_label_names": COARSE})
    assert hashlib.md5(ten).hexdigest() == META10 and hashlib.md5(hundred).hexdigest() == META100
    assert write_and_read(tmp_path, ten) == {"num_cases_per_batch": 10000,
                                             "label_names": [n.encode() for n in CIFAR10], "num_vis": 3072}
    assert write_and_read(tmp_path, hundred)["coarse_label_names"][-1] == b"vehicles_2"


@given(st.data())
def test_values_equal_those_of_unpickling(tmp_path_factory, data):
    value = st.one_of(st.integers(-2**31, 2**31 - 1), st.binary(max_size=300),
                      st.lists(st.one_of(st.integers(0, 99), st.binary(max_size=5)), min_size=1,
                               max_size=300))
    d = data.draw(st.dictionaries(st.text("abc_", min_size=1, max_size=9), value, min_size=1, max_size=5))
    shape = data.draw(st.tuples(st.integers(0, 5), st.integers(0, 300)))
    d["data"] = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    raw = pickled(d)
    want = pickle.loads(raw, encoding="bytes")          # unpickles our own bytes
    got = write_and_read(tmp_path_factory.mktemp("p"), raw)
    assert list(got) == [k.decode() for k in want]
    np.testing.assert_array_equal(got.pop("data"), want.pop(b"data"), strict=True)
    assert got == {k.decode(): v for k, v in want.items()}


class Evil:
    def __reduce__(self):
        return os.system, ("true",)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_a_file_with_a_call_is_refused_without_calling(tmp_path, protocol, monkeypatch):
    raw = pickle.dumps({"data": Evil()}, protocol)
    monkeypatch.setattr(os, "system", lambda *a: pytest.fail("it was called"))
    with pytest.raises(DataError, match="nothing is unpickled"):
        write_and_read(tmp_path, raw)


@pytest.mark.parametrize("code, why", [
    (b"\x80\x02cos\nsystem\nU\x02ls\x85R.", "it names os.system"),
    (b"\x80\x02cnumpy\ndtype\nU\x02O8K\x00K\x01\x87R.", "an array of b'O8'"),
    (b"\x80\x02cnumpy\nndarray\nK\x01\x85R.", "it calls something"),
    (b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x09\x85U\x01b\x87R.",
     "it calls something"),
    (b"\x80\x02}U\x01ai__builtin__\neval\n", "not one that CIFAR's files have"),
    (b"\x80\x04}.", "the protocol is not 2"), (b"\x80\x02]e.", "mark"), (b"\x80\x02K\x01u.",
                                                                         "a mark is missing"),
    (b"\x80\x02u.", "IndexError"),
    (b"\x80\x02K\x01.", "not a dictionary"), (b"", "too early"), (b"\x80\x02}", "too early"),
    (b"\x80\x02}(K\x01K\x02u.", "a key that is not a string"), (b"\x80\x02}(U\x01au.",
                                                                "a key without a value"),
    (b"\x80\x02}U\x01a}s.", "a value of type dict"), (b"\x80\x02}U\x01ah\x09s.", "KeyError: 9"),
    (b"\x80\x02}U\x01aT\xff\xff\xff\xffs.", "too early"), (b"\x80\x02}U\x01aT\xff\xff\xff\x7fs.",
                                                           "too early"),
])
def test_refusals_name_the_reason(tmp_path, code, why):
    with pytest.raises(DataError, match=re.escape(why)) as e:
        write_and_read(tmp_path, code)
    assert "download=True" in str(e.value)


@given(st.data())
def test_a_damaged_file_is_a_dataerror_or_still_plain_data(tmp_path_factory, data):
    rng = np.random.default_rng(0)
    raw = bytearray(pickled({"labels": [1, 2, 300], "data": rng.integers(0, 256, (3, 8), np.uint8),
                             "names": ["a", "b"]}))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    try:
        found = write_and_read(tmp_path_factory.mktemp("p"),
                               bytes(raw[:cut] if data.draw(st.booleans()) else raw))
    except DataError:
        return
    assert all(isinstance(v, (int, bytes, list, np.ndarray)) for v in found.values())


def test_the_reader_uses_no_module_that_can_run_code():
    """The reader does not use pickle, importlib, eval, exec, or getattr: names in a file stay bytes."""
    source = Path(module.__file__).read_text(encoding="utf-8")
    for word in ("import pickle", "importlib", "__import__", "eval(", "exec(", "getattr("):
        assert word not in source


@given(st.sampled_from([("os", "system"), ("builtins", "eval"), ("__builtin__", "eval"),
                        ("copyreg", "_reconstructor"),
                        ("numpy", "load"), ("numpy.core.multiarray", "scalar"),
                        ("numpy", "dtype.newbyteorder")]),
       st.sampled_from([b"", b"(tR", b"U\x01a\x85R", b"}b"]))
def test_no_name_in_a_file_is_looked_up(tmp_path_factory, name, then):
    """A lookup would import its module."""
    raw = b"\x80\x02}U\x01ac" + "\n".join((*name, "")).encode() + then + b"s."
    folder, asked = tmp_path_factory.mktemp("p"), []
    with pytest.MonkeyPatch.context() as m:
        old = builtins.__import__
        m.setattr(builtins, "__import__", lambda *a, **k: asked.append(a[0]) or old(*a, **k))
        with pytest.raises(DataError, match=re.escape(f"it names {'.'.join(name)}, ")):
            write_and_read(folder, raw)
    assert name[0] not in asked
