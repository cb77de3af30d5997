"""The reference: every public name stands on one page, says what it is, and its example runs."""
import doctest
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import flowedu as flow
from flowedu.learn.lesson import fresh

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))
import entries  # noqa: E402
import names  # noqa: E402
import records  # noqa: E402

NAMES = (ROOT / "tests" / "public_names.txt").read_text().split()
# How many there may be at most: a new name comes with its own, and these go down.
NO_EXAMPLE = 462
NO_SHAPES = 8
# pages of functions and layers of tensors, whose shapes are to be said
OF_TENSORS = """random pointwise reductions indexing linalg fft functional""".split()
SHAPES = re.compile(r"\([A-Z*.][\w/*. ]*,|\(\d*[a-z]*,\)|shape|\bax[ei]s\b|\bdims?\b|-d\b|element|matri|vector|scalar|row|"
                    "column", re.I)


def lacking(paths, lacks) -> list[str]:
    return [n for n in paths if lacks(entries.entry(n))]


def test_every_public_name_stands_on_one_page():
    """And each that stands there exists."""
    places = names.places()
    assert not [n for n in NAMES if n not in places] and not [n for n, pages in places.items() if len(pages) > 1]
    for name in places:
        names.value(name)
    index = (ROOT / "book" / "reference" / "index.md").read_text()
    assert {p.stem for p in names.PAGES} - {"index"} <= set(index.split())


def test_a_star_stands_for_what_no_block_names():
    assert "nn.functional.relu" in names.listed(["nn.functional.*"]) and "nn.functional.conv2d" not in names.listed(
        ["nn.functional.*"])
    assert names.listed(["pi", "e"]) == ["pi", "e"]


def test_every_name_says_what_it_is():
    assert not lacking(names.places(), lambda e: not e.text.strip())


def test_words_are_of_names_that_cannot_say_it_themselves():
    words = entries.TABLES["words"]
    assert not [n for n in words if n not in names.places()]
    functions = [n for n in words if entries.kind(names.value(n)) == "function" and (names.value(n).__doc__ or "").strip()]
    assert not functions


def test_names_without_example_get_fewer():
    lack = lacking(names.places(), lambda e: not e.example and e.kind != "module")
    assert len(lack) <= NO_EXAMPLE, f"{len(lack)} names have no example: add those of the new ones"


def test_names_that_do_not_say_their_shapes_get_fewer():
    paths = [n for n, (page, *_) in names.places().items() if page in OF_TENSORS]
    lack = lacking(paths, lambda e: e.kind != "module" and not {"Axes", "Shapes"} & {*e.facts}
                   and not SHAPES.search(e.text))
    assert len(lack) <= NO_SHAPES, f"{len(lack)}: {lack}"


@pytest.mark.parametrize("name, fact, words", [
    ("abs", "Axes", "each element by itself"), ("abs", "dtypes", "float32"), ("abs", "Gradient", "of x"),
    ("add", "Axes", "shapes broadcast"), ("softmax", "Axes", "aB->aB"), ("matmul", "Gradient", "of a, b"),
    ("cat", "Op", "concat(*xs"), ("abs", "Record", "src/flowedu/core/ops/elementwise.py"), ("cat", "Raises", "ShapeError"),
    ("nn.functional.conv2d", "Source", "src/flowedu/nn/functional/conv.py"), ("nn.Graph", "Chapter", "05_nn_graph"),
    ("nn.LayerNorm", "Chapter", "03_layers/norms"), ("tensor", "Used in", "01_blob/README"),
    ("optim.Adam", "Not as in PyTorch", "`do_bias_correction`: True"), ("norm", "Not as in PyTorch", "input, p, dim"),
    ("Tensor.allclose", "Not as in PyTorch", "rtol"), ("float32", "Source", "core/values/dtype.py")])
def test_what_a_record_a_file_or_a_table_says(name, fact, words):
    assert words in entries.entry(name).facts[fact]


def test_what_is_not_one_op_has_no_record():
    """A function that calls several, or one among other things, is not described by its record."""
    assert records.record(flow.nn.functional.conv2d) is None and records.record(flow.block_diag) is None


def test_a_second_name_leads_to_the_first():
    assert entries.entry("absolute").original == "abs" and entries.entry("Tensor.exp").original == "exp"
    assert not entries.entry("abs").original


def test_a_signature_reads_as_it_is_written():
    assert entries.entry("sum").signature.startswith("(input, dim=None, ")
    assert "dtype: dtype = flowedu.float32" in entries.entry("random_uniform_initializer").signature
    assert not lacking(names.places(), lambda e: re.search(r"<(class|function|object)| at 0x", e.signature))


def test_every_chapter_that_is_named_is_a_page():
    pages = {f"{p.parent.name}/{p.stem}" for p in (ROOT / "chapters").glob("*/*.md")}
    for table in entries.TABLES["chapters"].values():
        assert {*table.values()} <= pages
    assert {entries.entry(n).facts["Chapter"] for n in names.places()} <= pages
    for name in entries.TABLES["chapters"]["names"]:
        assert name in names.places()
    for home in entries.TABLES["chapters"]["files"]:
        assert [*(ROOT / "src" / "flowedu").glob(f"{home}*")], home


def test_examples_are_of_names_that_exist():
    assert not [n for n in entries.examples() if n not in names.places()]
    headings = [n for p in entries.EXAMPLES for h in re.findall(r"^# (.*)$", p.read_text(), re.M) for n in h.split()]
    assert len(headings) == len({*headings})


def wrong(text: str, name: str) -> str:
    """What differs when the lines of an example are typed; "" where nothing does."""
    said: list[str] = []
    space = {"flow": flow, "np": np, "nn": flow.nn, "F": flow.nn.functional}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    flow.clear_default_session()
    flow.manual_seed(0)
    runner.run(doctest.DocTestParser().get_doctest(text, space, name, name, 0), out=said.append)
    return "".join(said)


@pytest.mark.parametrize("file", entries.EXAMPLES, ids=lambda p: p.stem)
def test_examples_run(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with fresh():
        said = [wrong(text, name) for text, name in
                {text: name for name, text in entries.examples_of(file).items()}.items()]
    assert not any(said), "\n".join(filter(None, said))


def test_an_example_can_fail():
    assert "Expected" in wrong(">>> flow.abs(flow.tensor(-1.0)).item()\n2.0\n", "abs") and not wrong(">>> 1\n1\n", "one")
