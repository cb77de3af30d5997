"""The block ```{names}: an entry (entries.py) for each of its names.

The entries belong to Sphinx's domain of Python, so that search and other books (objects.inv) find them.
Docstrings are shown as plain text, without markup.
"""
from __future__ import annotations

import os
import re
import textwrap
from pathlib import Path

from docstrings import blocks, is_python, methods
from docutils import nodes
from docutils.statemachine import StringList
from entries import Entry, entry
from names import ROOT, listed
from sphinx import addnodes
from sphinx.domains.python import PyClasslike, PyFunction, PyMethod, PyModule, PyProperty, PyVariable
from sphinx.util.docutils import SphinxDirective

KINDS = {"function": (PyFunction, "py:function"), "class": (PyClasslike, "py:class"),
         "data": (PyVariable, "py:data")}
CODE = re.compile(r"`([^`]+)`")


class Names(SphinxDirective):
    """The names, in their order; `linalg.*`: all that no block names."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The entries' nodes."""
        found = []
        for name in listed(" ".join(self.content).split()):
            found += self.module(entry(name)) if entry(name).kind == "module" else self.described(entry(name))
        return found

    def module(self, e: Entry) -> list[nodes.Node]:
        """A module: its target, what it is about."""
        made = self.made(PyModule, "py:module", f"flowedu.{e.path}", {})
        return [*made, nodes.paragraph("", "", nodes.literal("", f"flowedu.{e.path}")), *self.body(e)]

    def described(self, e: Entry) -> list[nodes.Node]:
        """A function, class or value, with its signature."""
        cls, name = KINDS[e.kind]
        made = self.made(cls, name, e.path + e.signature, {"module": "flowedu"})
        [place] = [c for n in made for c in n.findall(addnodes.desc_content)]
        place += self.body(e)
        for m in methods(e.path) if e.kind == "class" else ():
            cls, name = (PyMethod, "py:method") if m.signature else (PyProperty, "py:property")
            one = self.made(cls, name, f"{e.path}.{m.name}{m.signature}", {"module": "flowedu"})
            [inner] = [c for n in one for c in n.findall(addnodes.desc_content)]
            inner += paragraphs(m.text)
            place += one
        return made

    def made(self, cls: type, name: str, signature: str, options: dict) -> list[nodes.Node]:
        """What a directive of Sphinx's own makes."""
        # Where the words of annotations are looked for.
        self.env.ref_context["py:module"] = "flowedu"
        try:
            found = cls(name, [signature], options, StringList(), self.lineno, self.content_offset,
                        self.block_text, self.state, self.state_machine).run()
        finally:
            self.env.ref_context.pop("py:module", None)
        for ref in [r for n in found for r in n.findall(addnodes.pending_xref)]:
            ref.attributes.pop("refspecific", None)              # an Optimizer is not whichever one there is
        return found

    def body(self, e: Entry) -> list[nodes.Node]:
        """Text, facts, example."""
        if e.original:
            same = self.link(e.original, nodes.literal("", f"flowedu.{e.original}"))
            return [nodes.paragraph("", "", nodes.Text("The same as "), same, nodes.Text("."))]
        parts = paragraphs(e.text)
        if e.facts:
            fields = nodes.field_list(classes=["facts"])
            for what, words in e.facts.items():
                fields += nodes.field("", nodes.field_name("", what), nodes.field_body(
                    "", nodes.paragraph("", "", *self.words(what, words))))
            parts.append(fields)
        if e.example:
            parts.append(nodes.literal_block(e.example, e.example, language="pycon"))
        return parts

    def words(self, what: str, said: str) -> list[nodes.Node]:
        """A fact's words, with what they lead to."""
        if what in ("Record", "Source"):
            return [self.file(said)]
        if what in ("Chapter", "Used in"):
            parts: list[nodes.Node] = []
            for page in said.split():
                ref = addnodes.pending_xref("", nodes.inline("", page), refdomain="std", reftype="doc",
                                            refexplicit=True,
                                            reftarget=f"/chapters/{page}", refdoc=self.env.docname,
                                            refwarn=True)
                parts += [ref, nodes.Text(" ")]
            return parts
        return inline(said)

    def file(self, said: str) -> nodes.Node:
        """A file of the library, to be opened where the book lies beside it."""
        path, _, line = said.partition(":")
        shown = nodes.literal("", f"{path}:{line}")
        out = Path(self.env.app.outdir)
        if not out.is_relative_to(ROOT):
            return shown
        up = os.path.relpath(ROOT / path, (out / self.env.docname).parent)
        return nodes.reference("", "", shown, refuri=up, internal=False)

    def link(self, name: str, shown: nodes.Node) -> nodes.Node:
        """To another entry."""
        return addnodes.pending_xref("", shown, refdomain="py", reftype="obj", refexplicit=True, refwarn=True,
                                     reftarget=f"flowedu.{name}", refdoc=self.env.docname)


def inline(text: str) -> list[nodes.Node]:
    """Words, with what stands between backticks as code."""
    return [nodes.literal("", part) if i % 2 else nodes.Text(part) for i, part in enumerate(CODE.split(
        text)) if part]


def paragraphs(text: str) -> list[nodes.Node]:
    """A docstring: paragraphs; lists of arguments; what is set in, as it is."""
    found: list[nodes.Node] = []
    for block in blocks(text):
        lines = block.split("\n")
        head = lines[0] if not lines[0].startswith(" ") else ""
        rest = lines[1:] if head else lines
        if head.endswith(":") and rest and all(x.startswith(" ") for x in rest):
            found += [nodes.paragraph("", "", nodes.strong("", head)), items(rest)]
        elif any(x.startswith((" ", "|", "- ")) for x in lines):
            code = textwrap.dedent(block)
            found.append(nodes.literal_block(code, code, language="python" if is_python(code) else "text"))
        else:
            found.append(nodes.paragraph("", "", *inline(" ".join(lines))))
    return found


def items(lines: list[str]) -> nodes.Node:
    """The lines below "Args:": one item for each line that is not set in further."""
    depth = min(len(x) - len(x.lstrip()) for x in lines)
    said: list[str] = []
    for line in lines:
        if line[depth:].startswith(" ") and said:
            said[-1] += " " + line.strip()
        else:
            said.append(line.strip())
    return nodes.bullet_list("", *(nodes.list_item("", nodes.paragraph("", "", *inline(s))) for s in said))
