"""The reference: every public name is on exactly one page with a description and an example that runs."""
import re
import sys
import textwrap
from pathlib import Path

import pytest

import flowedu as flow
from custom_ops import own_registry  # noqa: F401  (an example may define an op)
from reference_examples import differences, wrong

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))
import defaults  # noqa: E402
import docstrings  # noqa: E402
import entries  # noqa: E402
import names  # noqa: E402
import records  # noqa: E402

NAMES = (ROOT / "tests" / "public_names.txt").read_text(encoding="utf-8").split()
# Names without an example: they cannot be shown in a few lines that run everywhere, or have no effect.
NO_EXAMPLE = set(
    """cuda.profile distributed.debug distributed.set_timeout config.enable_mem_chain_merge experimental.scope
    experimental.scope.config env.Environment env.grpc_use_no_signal return_types.nanmedian""".split())
# pages of functions and layers of tensors, which must describe shapes
OF_TENSORS = """random pointwise reductions indexing linalg fft functional""".split()
# names that do not take tensors
NO_TENSORS = {"Generator", "default_generator", "manual_seed", "initial_seed", "seed", "fork_rng"}
SHAPES = re.compile(r"\([A-Z*.][\w/*. "
                    r"]*,|\(\d*[a-z]*,\)|shape|\bax[ei]s\b|\bdims?\b|-d\b|element|matri|vector|scalar|row|"
                    "column", re.I)


def lacking(paths, lacks) -> list[str]:
    return [n for n in paths if lacks(entries.entry(n))]


def test_every_public_name_is_on_one_page():
    """Every name on a page also exists."""
    places = names.places()
    assert (not [n for n in NAMES if n not in places]
            and not [n for n, pages in places.items() if len(pages) > 1])
    for name in places:
        names.value(name)
    index = (ROOT / "book" / "reference" / "index.md").read_text(encoding="utf-8")
    assert {p.stem for p in names.PAGES} - {"index"} <= set(index.split())


def test_a_star_expands_to_names_of_no_other_block():
    assert "nn.functional.relu" in names.listed(
        ["nn.functional.*"]) and "nn.functional.conv2d" not in names.listed(
            ["nn.functional.*"])
    assert names.listed(["pi", "e"]) == ["pi", "e"]


def test_every_name_has_a_description():
    assert not lacking(names.places(), lambda e: not e.text.strip())


def test_words_toml_describes_only_names_without_docstrings():
    words = entries.TABLES["words"]
    assert not [n for n in words if n not in names.places()]
    functions = [n for n in words if entries.kind(names.value(n)) == "function"
                 and (names.value(n).__doc__ or "").strip()]
    assert not functions


def test_every_name_has_an_example():
    assert {*lacking(names.places(), lambda e: not e.example and e.kind != "module")} == NO_EXAMPLE


def test_every_function_of_tensors_describes_shapes():
    paths = [n for n, (page, *_) in names.places().items() if page in OF_TENSORS and n not in NO_TENSORS]
    lack = lacking(paths, lambda e: e.kind != "module" and not {"Axes", "Shapes"} & {*e.facts}
                   and not SHAPES.search(e.text))
    assert not lack


# The number of parameters whose None default has no explanation; a new parameter explains it in the docstring
# or in words.toml.
UNSAID = 18


def test_none_defaults_are_explained():
    firsts = {n: names.value(n) for n in names.places() if names.originals().get(n, n) == n}
    said = {n: defaults.of(n, x, entries.text(n, x), entries.TABLES["none"]) for n, x in firsts.items()}
    there = sum(len(defaults.unsaid(x, entries.text(n, x))) for n, x in firsts.items())
    assert there - sum(map(len, said.values())) <= UNSAID
    used = {(parameter, words) for row in said.values() for parameter, words in row.items()}
    assert not {(p, w) for p, rows in entries.TABLES["none"].items() for w in rows.values() if w} - used


@pytest.mark.parametrize("name, arguments", [
    ("empty", (2,)), ("rand", (2,)), ("randn", (2,)), ("hann_window", (3,)), ("nn.Linear", (2, 2)),
    ("nn.Conv2d", (1, 1, 1)), ("nn.LSTM", (2, 2)), ("nn.LayerNorm", (2,)), ("nn.LazyLinear", (2,))])
def test_documented_default_dtypes_are_true(name, arguments):
    entry = entries.entry(name)
    assert "`dtype`: the default dtype" in entry.facts.get("Left out", "") or re.search(
        "dtype: .*default: the default dtype", entry.text)
    flow.set_default_dtype(flow.float64)
    try:
        made = names.value(name)(*arguments)
    finally:
        flow.set_default_dtype(flow.float32)
    assert {t.dtype for t in ([made] if isinstance(made, flow.Tensor)
                              else made.parameters())} == {flow.float64}


@pytest.mark.parametrize("name, call", [
    ("full_like", lambda x: flow.full_like(x, 1.0)), ("rand_like", flow.rand_like),
    ("empty_like", flow.empty_like),
    ("Tensor.new_zeros", lambda x: x.new_zeros(2)), ("Tensor.new_tensor", lambda x: x.new_tensor([1.0]))])
def test_documented_default_placements_are_true(name, call):
    entry = entries.entry(name)
    assert "`sbp`: that of the" in entry.facts.get("Left out", "") or re.search(
        "sbp: .*default: that of the", entry.text)
    x = flow.ones(2, placement=flow.placement("cpu", [0]), sbp=flow.sbp.broadcast)
    assert call(x).is_global and call(x).sbp == x.sbp and not call(flow.ones(2)).is_global


@pytest.mark.parametrize("name, fact, words", [
    ("abs", "Axes", "each element by itself"), ("abs", "dtypes", "float32"), ("abs", "Gradient", "of x"),
    ("add", "Axes", "shapes broadcast"), ("softmax", "Axes", "aB->aB"), ("matmul", "Gradient", "of a, b"),
    ("cat", "Op", "concat(*xs"), ("abs", "Record", "src/flowedu/core/ops/elementwise.py"),
    ("cat", "Raises", "ShapeError"),
    ("nn.functional.conv2d", "Source", "src/flowedu/nn/functional/conv.py"),
    ("nn.Graph", "Chapter", "05_nn_graph"),
    ("nn.LayerNorm", "Chapter", "03_layers/norms"), ("tensor", "Used in", "01_blob/README"),
    ("optim.Adam", "Not as in PyTorch", "`do_bias_correction`: True"), ("norm", "Not as in PyTorch",
                                                                        "input, p, dim"),
    ("Tensor.allclose", "Not as in PyTorch", "rtol"), ("float32", "Source", "core/values/dtype.py")])
def test_facts_from_records_files_and_tables(name, fact, words):
    assert words in entries.entry(name).facts[fact]


def test_compound_functions_have_no_record():
    """A function that calls several ops, or does more than call one, is not described by a record."""
    assert records.record(flow.nn.functional.conv2d) is None and records.record(flow.block_diag) is None


def test_an_alias_links_the_original():
    assert entries.entry("absolute").original == "abs" and entries.entry("Tensor.exp").original == "exp"
    assert not entries.entry("abs").original


@pytest.mark.parametrize("name, some", [
    ("nn.Module", "parameters named_parameters state_dict load_state_dict train eval to zero_grad apply"),
    ("nn.Graph", "build add_optimizer state_dict report explain memory draw")])
def test_classes_show_their_methods(name, some):
    """Every method is shown, without `self`. The class's text names other attributes."""
    shown = {m.name: m for m in docstrings.methods(name)}
    cls = names.value(name)
    there = {n for n in dir(cls) if n[0] != "_" and (callable(getattr(cls, n)) or isinstance(
        getattr(cls, n), property)) and not isinstance(getattr(cls, n), type)}
    assert {*some.split()} <= {*shown} <= there
    attributes = entries.entry(name).text.partition("Attributes:")[2]
    assert not [n for n in there - {*shown} if not re.search(rf"\b{n}\b", attributes)]
    assert all(m.text.strip() and "self" not in m.signature for m in shown.values())


def test_methods_of_a_base_class_are_shown_there():
    assert {m.name for m in docstrings.methods("nn.Linear")} & {"parameters", "train", "state_dict"} == set()
    assert docstrings.methods("abs") == [] and not [m for m in docstrings.methods("Tensor") if m.name in dir(
        flow.Tensor) and f"Tensor.{m.name}" in names.places()]


def test_indented_code_with_blank_lines_is_one_block():
    text = "First.\n\n    class A:\n        x = 1\n\n        y = 2\n\n    a = A()\n\nLast."
    code = "    class A:\n        x = 1\n\n        y = 2\n\n    a = A()"
    assert docstrings.blocks(text) == ["First.", code, "Last."]


def test_code_of_a_docstring_is_python():
    """No name has two blocks of code in a row, and the examples of Module and Graph are Python."""
    for name in names.places():
        blocks = docstrings.blocks(entries.entry(name).text)
        indented = [b.startswith(" ") for b in blocks]
        assert not [1 for a, b in zip(indented, indented[1:]) if a and b], name
    for name in ("nn.Module", "nn.Graph"):
        code, = [b for b in docstrings.blocks(entries.entry(name).text) if b.startswith(" ")]
        assert docstrings.is_python(textwrap.dedent(code)) and "class " in code and code.count("def ") == 2
    assert not docstrings.is_python("a  b  c\n1  2  3") and not docstrings.is_python("")


def test_a_signature_reads_as_it_is_written():
    assert entries.entry("sum").signature.startswith("(input: Tensor, dim: Axes | None = None, ")
    assert entries.entry("sum").signature.endswith("dtype: dtype | None = None) -> Tensor")
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
    headings = [n for p in entries.EXAMPLES for h in re.findall(r"^# (.*)$", p.read_text("utf-8"), re.M)
                for n in h.split()]
    assert len(headings) == len({*headings})


@pytest.mark.parametrize("file", [p for p in entries.EXAMPLES if p.stem != "cuda"], ids=lambda p: p.stem)
def test_examples_run(file, tmp_path, monkeypatch):
    """tests/cuda/test_reference_examples.py runs those that need a GPU or the simulator."""
    monkeypatch.chdir(tmp_path)
    assert not differences(file, monkeypatch)


def test_an_example_can_fail():
    assert ("Expected" in wrong(">>> flow.abs(flow.tensor(-1.0)).item()\n2.0\n", "abs")
            and not wrong(">>> 1\n1\n", "one"))
