"""Notebooks: cells are the blocks of the lessons with their output, linked files exist, and Jupyter accepts
and runs them with the output that the pages promise.
"""
import ast
import json
import re
import sys
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import few
from flowedu_course.blocks import BLOCK, blocks, promised
from flowedu_course.lesson import _promised

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "book"))
import notebooks  # noqa: E402
import pages  # noqa: E402

TEXT = st.text("ab\n#.", max_size=12).map(lambda s: f"\n{s}\n\n")
CODE = st.sampled_from(["x = 1\n", "print(1)\n\n\nprint(2)\n", "\n"])
WORDS = st.sampled_from(["python", "python error=ShapeError", "python needs=cuda", "text output", "text",
                         "bash"])


def python(path):
    return [b for b in blocks(path.read_text(encoding="utf-8")) if b.language == "python"]


def code(book):
    return [c for c in book["cells"] if c["cell_type"] == "code"]


def assert_notebook_matches_page(book, path, printed):
    """Check a page's notebook against the page."""
    cells, all_blocks = code(book), python(path)
    assert [c["source"] for c in cells] == [b.text.rstrip("\n") for b in all_blocks]
    for cell, block, out in zip_longest(cells, all_blocks, printed):
        assert "".join(o["text"] for o in cell["outputs"]) == (out or "")
        tags = cell["metadata"].get("tags", [])
        assert ("raises-exception" in tags) == bool(block.word("error"))
        assert ("skip-execution" in tags) == bool(block.word("needs"))
    assert len({c["id"] for c in book["cells"]}) == len(book["cells"])


def valid(book):
    nbformat = pytest.importorskip("nbformat")
    nbformat.validate(nbformat.from_dict(json.loads(json.dumps(book))))


@pytest.mark.parametrize("path", pages.LESSONS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_cells_are_the_blocks_of_a_lesson_in_order(path):
    printed = [f"output {i}\n" if i % 3 else None for i, _ in enumerate(python(path))]
    book = notebooks.of_page(path, printed)
    assert_notebook_matches_page(book, path, printed)
    valid(book)
    shown = "".join(c["source"] for c in book["cells"])
    lost = [w for w in re.findall(r"\w+", BLOCK.sub("", path.read_text(encoding="utf-8"))) if w not in shown
            and w != "md"]
    assert not lost, "the text is all there"


@pytest.mark.parametrize("path", pages.LESSONS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_a_title_is_a_heading_of_its_own(path):
    """The link to the other language is a paragraph above the title, so that Markdown reads the title as one."""
    first = notebooks.of_page(path, [None] * len(python(path)))["cells"][0]
    title, = re.findall(r"^# .*", path.read_text(encoding="utf-8"), re.M)[:1]
    above, found, _ = f"\n{first['source']}".partition(f"\n{title}\n")
    links = re.fullmatch(r"\n\[(中文|English)\]\([\w.]+\)\n", above)
    assert found and first["cell_type"] == "markdown"
    assert bool(links) == bool(pages.other_tongues(path)) and (links or not above.strip())


@given(st.lists(st.tuples(TEXT, WORDS, CODE), max_size=6), st.booleans())
def test_any_page_is_a_notebook(tmp_path_factory, pieces, ran):
    path = tmp_path_factory.mktemp("lessons") / "01_one" / "README.md"
    path.parent.mkdir()
    path.write_text("".join(f"{text}```{words}\n{body}```\n" for text, words, body in pieces),
                    encoding="utf-8")
    printed = ["1\n" if ran else None] * len(python(path))
    book = notebooks.of_page(path, printed)
    assert_notebook_matches_page(book, path, printed)
    valid(book)
    assert all(c["source"].strip() for c in book["cells"] if c["cell_type"] == "markdown")


@pytest.mark.parametrize("path", pages.LESSONS, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_links_of_a_notebook_exist(path, tmp_path):
    book, here = notebooks.of_page(path, [None] * len(python(path))), notebooks.place(path).parent
    text = "".join(c["source"] for c in book["cells"] if c["cell_type"] == "markdown")
    made = {notebooks.place(p) for p in pages.LESSONS}
    links = [m[1] for m in notebooks.LINK.finditer(text)]
    assert links or path.name != "README.md"
    for link in links:
        target = (here / link).resolve()
        assert target in made or target.exists() and target not in pages.LESSONS, link
    assert any(link.endswith(".ipynb") for link in links) == any(
        (path.parent / m[1]).resolve() in pages.LESSONS
        for m in notebooks.LINK.finditer(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("path", notebooks.PROGRAMS, ids=lambda p: p.stem)
def test_cells_of_a_program_are_its_lines(path):
    book = notebooks.of_program(path)
    valid(book)
    first, *rest = ast.parse(path.read_text(encoding="utf-8")).body
    joined = "\n".join(c["source"] for c in code(book))
    assert ast.dump(ast.parse(joined.replace('parse_args(["--quick"])',
                                             "parse_args()"))) == ast.dump(ast.Module(rest, []))
    assert book["cells"][0]["source"].startswith(f"# {path.stem}\n\n{first.value.value}") and 3 < len(
        code(book)) < 20
    assert joined.count('parse_args(["--quick"])') == 1


def test_all_notebooks_are_written(tmp_path):
    printed = {p: ["1\n"] * len(python(p)) for p in pages.ENGLISH}
    written = notebooks.write_all(tmp_path, printed)
    assert ({*written} == {*tmp_path.rglob("*.ipynb")}
            and len(written) == len(pages.LESSONS) + len(notebooks.PROGRAMS))
    for path in pages.LESSONS:
        assert_notebook_matches_page(json.loads(notebooks.place(path, tmp_path).read_text(encoding="utf-8")),
                                     path, printed[pages.original(path)])
    imported = {n.module for p in notebooks.PROGRAMS
                for n in ast.walk(ast.parse(p.read_text(encoding="utf-8")))
                if isinstance(n, ast.ImportFrom) and (notebooks.GALLERY / f"{n.module}.py").exists()}
    assert (imported == {*notebooks.BESIDE} and all((tmp_path / "gallery" / f"{n}.py").exists()
                                                    for n in imported))


# ---- in Jupyter
@pytest.fixture
def ran(tmp_path, monkeypatch):
    """Return a function that runs a notebook in a kernel and returns it with its outputs."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))

    def run(book):
        node = nbformat.from_dict(book)
        nbclient.NotebookClient(node, timeout=300, kernel_name="python3",
                                resources={"metadata": {"path": str(tmp_path)}}).execute()
        return node
    return run


def join_outputs(cell):
    return "".join(o.get("text") or f"\n{o.get('evalue', '')}" for o in cell["outputs"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["01_blob/README.md", "02_ops/README.md", "05_nn_graph/README.zh.md",
                                  "06_sbp/README.md"])
def test_a_kernel_prints_the_promised_output(name, ran):
    path = ROOT / "chapters" / name
    wanted = promised(path.read_text(encoding="utf-8"))
    cells = code(ran(notebooks.of_page(path, [None] * len(python(path)))))
    assert len(wanted) > 3
    for cell, block in zip(cells, python(path)):
        failed = [o["ename"] for o in cell["outputs"] if o["output_type"] == "error"]
        assert failed == [block.word("error")] * bool(block.word("error"))
        lines = wanted[block.line].text.splitlines() if block.line in wanted else ()
        own = [line for line in lines if not re.match(r" *at: ", line)]  # line numbers differ in a cell
        assert not [line for line in own
                    if not _promised(line, join_outputs(cell))], (block.text, join_outputs(cell))


@pytest.mark.slow
@pytest.mark.parametrize("path", few(notebooks.PROGRAMS, lambda p: p.stem == "reinforce"),
                         ids=lambda p: p.stem)
def test_a_program_of_the_gallery_runs_in_a_kernel(path, ran, tmp_path):
    for name in notebooks.BESIDE:
        (tmp_path / f"{name}.py").write_text((notebooks.GALLERY / f"{name}.py").read_text("utf-8"),
                                             encoding="utf-8")
    ran(notebooks.of_program(path))
    assert len([*(tmp_path / "build" / "gallery").iterdir()]) == 1


@pytest.mark.slow
def test_a_kernel_displays_images_tables_and_bars(ran):
    """The last line of a cell and flow.show within one are displayed, and a progress bar is a widget."""
    pytest.importorskip("ipywidgets")
    book = ran(notebooks.notebook([notebooks.code_cell(text) for text in (
        "import flowedu as flow\nclass Double(flow.nn.Graph):\n    def build(self, x):\n        return "
        "x + x\ngraph = Double()\ny = graph(flow.ones(2, 2))",
        "graph", "y", "flow.show(graph)\nflow.show(y)\n1", "flow.ones(3, 3, 3)",
        "from tqdm.auto import tqdm\nfor _ in tqdm(range(3), disable=None): pass")]))
    kinds = [[{*o.get("data", {})} - {"text/plain"} for o in c["outputs"]] for c in code(book)]
    assert kinds[1:5] == [[{"image/svg+xml"}], [{"text/html"}], [{"image/svg+xml"}, {"text/html"}, set()],
                          [set()]]
    assert kinds[5] == [{"application/vnd.jupyter.widget-view+json"}]
