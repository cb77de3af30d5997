"""Parser of lesson pages: fenced blocks, and the text between them."""
from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

HAN, FULL = "\u4e00-\u9fff", "\u3000-\u303f\uff00-\uffef"                # characters, and punctuation as wide as they are
END = r"\n(?:> ?| {1,3})?"                                               # of a line in a paragraph, a list, a quotation
UNBROKEN = re.compile(rf"(?<=[{HAN}{FULL}]){END}(?=[{HAN}{FULL}])|(?<=[{FULL}]){END}(?=[`\w(])|"
                      rf"(?<=[{HAN}])(\*\*){END}(?=[{HAN}])|(?<=[{HAN}]){END}(\*\*)(?=[{HAN}])")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the words after it, its text and the line it starts on."""

    language: str
    words: str
    text: str
    line: int

    def word(self, name: str) -> str:
        """What follows `name=` after the language; empty where it is not there."""
        return next((w.partition("=")[2] for w in self.words.split() if w.startswith(f"{name}=")), "")


def blocks(markdown: str) -> list[Block]:
    """The fenced blocks of a lesson."""
    return [block_of(m) for m in BLOCK.finditer(markdown)]


def unbroken(markdown: str) -> str:
    """Chinese without the line ends of the source, which would be read as blanks: it has none between words."""
    return UNBROKEN.sub(lambda m: "".join(filter(None, m.groups())), markdown)


def block_of(match: re.Match) -> Block:
    """Of what BLOCK found."""
    return Block(match[1], match[2].strip(), match[3], match.string.count("\n", 0, match.start()) + 2)


def promised(source: str) -> dict[int, Block]:
    """{line of a Python block: the output that the page promises of it}."""
    found, last = {}, None
    for b in blocks(source):
        last = b if b.language == "python" else last
        if last is not None and (b.language, b.words) == ("text", "output"):
            found[last.line] = b
    return found


def slug(title: str) -> str:
    """A heading's anchor."""
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c == "-")


def headings(markdown: str) -> list[str]:
    """The headings of a page, without what only looks like one in code."""
    return re.findall(r"^#+ (.*)$", BLOCK.sub("", markdown), flags=re.MULTILINE)


def pages(chapter: Path) -> list[Path]:
    """The English pages of a chapter in reading order: README.md, then those it links to, then the others."""
    first = chapter / "README.md"
    linked = re.findall(r"\]\(([\w-]+\.md)", first.read_text(encoding="utf-8"))
    rest = sorted(p for p in chapter.glob("*.md") if p != first and not p.name.endswith(".zh.md"))
    return [first, *sorted(rest, key=lambda p: linked.index(p.name) if p.name in linked else len(linked))]
