"""How Sphinx makes the book: `make book`.

Its source folder is the repository; it reads the lessons where they are.
"""
import sys
from pathlib import Path

BOOK = Path(__file__).resolve().parent
ROOT = BOOK.parent
sys.path.insert(0, str(BOOK))

import compare  # noqa: E402
import outputs  # noqa: E402
import pages  # noqa: E402
import tables  # noqa: E402

project, author, copyright = "flowedu", "the authors of flowedu", "the authors of flowedu, Apache-2.0"
root_doc = "book/index"
extensions = ["myst_parser"]
include_patterns = ["book/*.md", "book/reference/*.md", "docs/*.md", "chapters/*/*.md",
                    "chapters/glossary.md",
                    "chapters/syllabus.md", "chapters/exam.md", "chapters/projects.md"]
exclude_patterns = [".*", "build", "src", "course", "tests", "tools", "benchmarks", "work"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings: list[str] = []

highlight_language = "text"
html_theme = "furo"
html_title = "flowedu"
html_static_path = ["widgets", "../build/book/tables"]
html_extra_path = ["front"]
html_css_files = ["book.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
(ROOT / "build/book/tables").mkdir(parents=True, exist_ok=True)

REFERENCE = sorted((BOOK / "reference").glob("*.md"))
_printed: dict[Path, list] = {}


def run(app) -> None:
    """Before pages are read: what their code prints, and the widgets' tables."""
    _printed.update(outputs.all_outputs([*pages.ENGLISH, *pages.OWN], outputs.KEPT))
    tables.write_all(ROOT / "build/book/tables")


def show(app, docname: str, source: list[str]) -> None:
    path = ROOT / f"{docname}.md"
    if path in pages.LESSONS:
        source[0] = pages.page(path, _printed[pages.original(path)])
    elif docname == root_doc:
        source[0] = pages.index(source[0], _printed)
    elif path in pages.OWN:
        text = compare.filled(pages.page(path, _printed[path]))
        source[0] = pages.with_pictures(text, outputs.pictures(path, outputs.KEPT))


def again(app, *_) -> list[str]:
    """Read lessons again in every run, because outputs, exercises, or linked names may have changed."""
    return [str(p.relative_to(ROOT).with_suffix("")) for p in (*pages.LESSONS, *pages.OWN, *REFERENCE)]


def setup(app) -> dict:
    from names_directive import Names  # knows the whole library: not before it is asked for

    app.add_directive("names", Names)
    app.connect("builder-inited", run)
    app.connect("env-get-outdated", again)
    app.connect("source-read", show)
    return {"parallel_read_safe": False}
