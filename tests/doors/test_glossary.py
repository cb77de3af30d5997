"""The glossary has at least 60 terms in alphabetical order, each with a definition and names that exist in an
existing file; the book includes it.
"""
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "chapters" / "glossary.md"
ENTRY = re.compile(r"^- \*\*(.+?)\*\*: (.*(?:\n  .*)*)", re.MULTILINE)
PATH = re.compile(r"(?:src|chapters|tests)/\S+")


def faults(text: str) -> list[str]:
    """Return the faults in the entries of a page."""
    found, entries = [], ENTRY.findall(text)
    terms = [term for term, _ in entries]
    if len(entries) != text.count("\n- "):
        found.append("a line is no entry")
    found += [f"{b}: not in alphabetical order after {a}" for a, b in zip(terms, terms[1:])
              if a.casefold() >= b.casefold()]
    for term, body in entries:
        quoted = re.findall(r"`([^`]+)`", body)
        paths = [q for q in quoted if PATH.fullmatch(q)]
        there = [p for p in paths if (ROOT / p).is_file()]
        found += [f"{term}: no file {p}" for p in paths if p not in there]
        if not there:
            found.append(f"{term}: says no place")
        if len(body.partition("`")[0].split()) < 6:
            found.append(f"{term}: no definition")
        sources = "\n".join((ROOT / p).read_text(encoding="utf-8") for p in there)
        found += [f"{term}: no {q} in {', '.join(there)}" for q in quoted
                  if q not in paths and not re.search(rf"(?<!\w){re.escape(q)}(?!\w)", sources)]
    return found


def test_every_entry_is_in_order_and_every_place_exists():
    text = PAGE.read_text(encoding="utf-8")
    assert faults(text) == []
    assert len(ENTRY.findall(text)) >= 60


def test_faults_are_found():
    definition = "what is meant by this word, at length."
    text = (f"# G\n\n- **view**: {definition} `src/flowedu/core/ops/view.py`: `reshape_strides`, "
            f"`no_such_name`.\n- **arena**: {definition}\n  `src/flowedu/core/graph/nowhere.py`.\n"
            "- **zero**: short. `src/flowedu/__init__.py`.\n- none\n")
    assert faults(text) == [
        "a line is no entry", "arena: not in alphabetical order after view",
        "view: no no_such_name in src/flowedu/core/ops/view.py",
        "arena: no file src/flowedu/core/graph/nowhere.py", "arena: says no place", "zero: no definition"]


def test_the_book_and_the_readme_lead_to_it():
    assert "/chapters/glossary\n" in (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    assert '"chapters/glossary.md"' in (ROOT / "book" / "conf.py").read_text(encoding="utf-8")
    assert "(chapters/glossary.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(../glossary.md)" in (ROOT / "chapters" / "01_blob" / "README.md").read_text(encoding="utf-8")
