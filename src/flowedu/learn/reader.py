"""A lesson in a terminal, while it runs: headings, a line or two of text, the code, what it prints.

Where the output is no terminal, or NO_COLOR is set, lines are plain: `|` stands before code and `>` before its output. With
PACE=1 it stops at every block whose output the page shows, and asks what will be printed.
"""
from __future__ import annotations

import os
import re
import sys
import textwrap
from pathlib import Path

from flowedu.learn.lesson import Block, promised

WIDTH = 100
BOLD, DIM, GREEN = "1", "2", "32"


class Reader:
    """What run_lesson calls: `before` with text and block, `printed` with what the block printed.

    show: prints. paced: stop and ask; by default whether PACE is set and somebody can press Enter.
    """

    def __init__(self, path: Path, show=print, paced: bool | None = None):
        self.path, self.show = path, show
        self.colored = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self.paced = paced if paced is not None else os.environ.get("PACE", "") not in ("", "0") and sys.stdin.isatty()
        self.blank = False                                      # whether the last line was
        self.promised = promised(path.read_text(encoding="utf-8"))

    def before(self, text: str, block: Block | None) -> None:
        """The text since the last block, in short, and the block before it runs."""
        for line in brief(text, block is not None and block.words != "output"):
            if line or not self.blank:
                self.show(self._in(BOLD, line) if line.startswith("#") else line)
            self.blank = not line
        if block is None or block.words == "output":            # what is really printed is shown instead
            return
        for line in _cut(block.text):
            self.blank = False
            self.show(self._in(DIM, "  | ") + line)
        if self.paced and block.line in self.promised:
            input(self._in(GREEN, "  ? what will be printed? (Enter) "))

    def printed(self, text: str) -> None:
        """What a block printed."""
        for line in _cut(text):
            self.blank = False
            self.show(self._in(GREEN, "  > " + line))

    def _in(self, color: str, text: str) -> str:
        return f"\033[{color}m{text}\033[0m" if self.colored else text


def brief(markdown: str, block: bool) -> list[str]:
    """Headings with a line or two of each section: where a block follows, the end of the last paragraph, which leads to it;
    else the beginning of the first."""
    markdown = re.sub(r"^```\n.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)         # drawings
    sections = re.split(r"^(?=#+ )", markdown, flags=re.MULTILINE)
    lines = []
    for i, section in enumerate(sections):
        heading, paragraphs = "", [p for p in re.split(r"\n\s*\n", section.strip()) if p]
        if paragraphs and paragraphs[0].startswith("#"):
            heading, _, rest = paragraphs.pop(0).partition("\n")
            lines += ["", heading, ""]
            paragraphs = [p for p in (rest.strip(), *paragraphs) if p]
        leads = block and i == len(sections) - 1
        paragraphs = [p for p in paragraphs if not re.match(r"[|>]|!\[|    ", p)]      # tables, boxes, pictures, drawings
        if paragraphs:
            lines += [*([] if heading else [""]), *_sentences(paragraphs[-1] if leads else paragraphs[0], leads), ""]
    return lines


def _sentences(paragraph: str, last: bool) -> list[str]:
    """The first sentences of a paragraph, or the last ones, that fit into two lines; one that does not is cut."""
    text = re.sub(r"\*\*|\[([^\]]*)\]\([^)]*\)", lambda m: m[1] or "", " ".join(paragraph.split()))
    sentences, taken = re.split(r"(?<=[.!?:]) (?=[A-Z`])", text), []
    while sentences:
        more = [sentences.pop(), *taken] if last else [*taken, sentences.pop(0)]
        if len(_wrapped(" ".join(more))) > 2:
            break
        taken = more
    if taken:
        return _wrapped(" ".join(taken))
    if last:                                                    # a long sentence: its end
        words = more[0].split()
        while len(_wrapped("... " + " ".join(words))) > 2:
            words.pop(0)
        return _wrapped("... " + " ".join(words))
    return textwrap.wrap(more[0], WIDTH, max_lines=2, placeholder=" ...")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_on_hyphens=False)


def _cut(text: str) -> list[str]:
    """Lines that fit behind a mark of four columns; what is too long goes on in the next line."""
    width = WIDTH - 4
    return [line[i:i + width] for line in text.rstrip("\n").split("\n") for i in range(0, max(len(line), 1), width)] \
        if text.strip() else []
