"""Parser of lesson pages: fenced blocks, and the text between them."""
from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

HAN, FULL = "\u4e00-\u9fff", "\u3000-\u303f\uff00-\uffef"                # characters, full-width punctuation
# Line end in a paragraph, a list, or a quotation.
END = r"\n(?:> ?| {1,3})?"
UNBROKEN = re.compile(rf"(?<=[{HAN}{FULL}]){END}(?=[{HAN}{FULL}])|(?<=[{FULL}]){END}(?=[`\w(])|"
                      rf"(?<=[{HAN}])(\*\*){END}(?=[{HAN}])|(?<=[{HAN}]){END}(\*\*)(?=[{HAN}])")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the words after it, its text, and the line it starts on."""

    language: str
    words: str
    text: str
    line: int

    def word(self, name: str) -> str:
        """Return the text after `name=` in the opening line, or ""."""
        return next((w.partition("=")[2] for w in self.words.split() if w.startswith(f"{name}=")), "")


def blocks(markdown: str) -> list[Block]:
    """Return the fenced blocks of a lesson."""
    return [block_of(m) for m in BLOCK.finditer(markdown)]


def unbroken(markdown: str) -> str:
    """Join the lines of Chinese text, where a line end would show as a space."""
    return UNBROKEN.sub(lambda m: "".join(filter(None, m.groups())), markdown)


def block_of(match: re.Match) -> Block:
    """Return the Block of a match of BLOCK."""
    return Block(match[1], match[2].strip(), match[3], match.string.count("\n", 0, match.start()) + 2)


def promised(source: str) -> dict[int, Block]:
    """Return {line of a Python block: the block with its expected output}."""
    found, last = {}, None
    for b in blocks(source):
        last = b if b.language == "python" else last
        if last is not None and (b.language, b.words) == ("text", "output"):
            found[last.line] = b
    return found


def slug(title: str) -> str:
    """Return a heading's anchor."""
    return "".join(c for c in title.lower().replace(" ", "-") if c.isalnum() or c == "-")


def headings(markdown: str) -> list[str]:
    """Return the headings of a page, without comments in code blocks."""
    return re.findall(r"^#+ (.*)$", BLOCK.sub("", markdown), flags=re.MULTILINE)


def pages(chapter: Path) -> list[Path]:
    """Return a chapter's English pages in reading order: README.md, pages it links to, then the others."""
    first = chapter / "README.md"
    linked = re.findall(r"\]\(([\w-]+\.md)", first.read_text(encoding="utf-8"))
    rest = sorted(p for p in chapter.glob("*.md") if p != first and not p.name.endswith(".zh.md"))
    return [first, *sorted(rest, key=lambda p: linked.index(p.name) if p.name in linked else len(linked))]
