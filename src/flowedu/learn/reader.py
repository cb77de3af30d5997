"""Runs a lesson in a terminal: headings, a line or two of text, the code, and its output.

If the output is not a terminal, or if NO_COLOR is set, lines are plain: `|` marks code, `>` its output, and `:` a
continuation of the line above. With PACE=1 the lesson stops before each block whose output the page shows, and asks for a
prediction of the output.
"""
from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import textwrap
import tokenize
from collections.abc import Collection
from pathlib import Path

from flowedu.learn.blocks import Block, promised, unbroken

WIDTH = 120                                                     # of what is no terminal
PROSE = 100                                                     # the eye loses longer lines
BRIEF = 180                                                     # letters after which no sentence begins
MARK = 4                                                        # columns before code and output
BOLD, DIM, GREEN = "1", "2", "32"


class Reader:
    """What run_lesson calls: `before` with text and block, `printed` with what the block printed.

    show: prints. paced: stop and ask; by default whether PACE is set and somebody can press Enter.
    """

    def __init__(self, path: Path, show=print, paced: bool | None = None):
        self.path, self.show = path, show
        self.colored = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self.width = max(40, shutil.get_terminal_size((WIDTH, 24)).columns)
        self.paced = paced if paced is not None else os.environ.get("PACE", "") not in ("", "0") and sys.stdin.isatty()
        self.blank = False                                      # whether the last line was
        self.promised = promised(path.read_text(encoding="utf-8"))

    def before(self, text: str, block: Block | None) -> None:
        """The text since the last block, in short, and the block before it runs."""
        for line in brief(text, block is not None and block.words != "output"):
            if line or not self.blank:
                for piece in textwrap.wrap(line, min(self.width, PROSE), break_on_hyphens=False,
                                           break_long_words=False) or [""]:
                    self.show(self._in(BOLD, piece) if line.startswith("#") else piece)
            self.blank = not line
        if block is None or block.words == "output":            # what is really printed is shown instead
            return
        for first, *more in code_lines(block.text, self.width - MARK):
            self.blank = False
            self.show(self._in(DIM, "  | ") + first)
            for piece in more:
                self.show(self._in(DIM, "  : ") + piece)
        if self.paced and block.line in self.promised:
            input(self._in(GREEN, "  ? what will be printed? (Enter) "))

    def printed(self, text: str) -> None:
        """What a block printed."""
        for first, *more in output_lines(text, self.width - MARK):
            self.blank = False
            self.show(self._in(GREEN, "  > " + first))
            for piece in more:
                self.show(self._in(GREEN, "  : " + piece))

    def _in(self, color: str, text: str) -> str:
        return f"\033[{color}m{text}\033[0m" if self.colored else text


def brief(markdown: str, block: bool) -> list[str]:
    """Headings, and the first sentences of each section; of text without a heading, those of the paragraph that leads to
    the block."""
    whole = _plain(markdown)
    markdown = re.sub(r"^```\n.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)         # drawings
    sections = re.split(r"^(?=#+ )", markdown, flags=re.MULTILINE)
    lines = []
    for i, section in enumerate(sections):
        heading, _, rest = section.strip().partition("\n") if section.startswith("#") else ("", "", section)
        if heading:
            lines += ["", heading, ""]
        leads = block and i == len(sections) - 1
        found = _paragraphs(rest)
        if found:
            chosen = found[-1] if leads and not heading else found[0]
            lines += [*([] if heading else [""]), _sentences(chosen, leads and whole.endswith(chosen)), ""]
    return lines


def _plain(markdown: str) -> str:
    """In one line, without bold type and the addresses of links."""
    return re.sub(r"\*\*|\[([^\]]*)\]\([^)]*\)", lambda m: m[1] or "", " ".join(unbroken(markdown).split()))


def _paragraphs(markdown: str) -> list[str]:
    """Those of whole sentences: no tables, boxes, pictures, drawings, lists, asides, and no links that stand alone."""
    found = []
    for p in re.split(r"\n\s*\n", markdown.strip("\n")):
        p = re.split(r"^(?=(?:[-*]|\d+\.) )", p, maxsplit=1, flags=re.MULTILINE)[0]
        if not re.match(r"[(|>]|!\[|    ", p) and re.search(r"[.!?:。！？：]$", _plain(p)):
            found.append(_plain(p))
    return found


def _sentences(text: str, leads: bool) -> str:
    """The first sentences of a paragraph, about two lines of them. A colon leads to something, or is a full stop."""
    first, *others = re.split(r"(?<=[.!?]) (?=[A-Z`\"(])|(?<=[。！？])", text)
    while others and len(first) + len(others[0]) < BRIEF and others[0][0] != "(" and (leads or others[0][-1] != ":"):
        first += " " + others.pop(0)
    return first if leads and not others else re.sub(":$", ".", first)


# ---- lines that fit
def code_lines(text: str, width: int) -> list[list[str]]:
    """Each line of Python in pieces that fit into `width` columns where that can be, broken at blanks between tokens; in a
    string or a comment that is longer, at its blanks. Text that is not Python is broken at blanks."""
    starts, inside = {}, 0
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for t in tokenize.generate_tokens(io.StringIO(text).readline):
            if not inside:
                starts.setdefault(t.start[0], set()).add(t.start[1])
            name = tokenize.tok_name[t.type]                    # an f-string is many tokens, since Python 3.12
            inside += name.endswith("STRING_START") - name.endswith("STRING_END")
    return [_pieces(line, width, starts.get(n, set())) for n, line in enumerate(text.rstrip("\n").split("\n"), 1)]


def output_lines(text: str, width: int) -> list[list[str]]:
    """Each line in pieces that fit; a row of a table is cut at the right instead: its columns stay columns."""
    found = []
    for line in text.rstrip("\n").split("\n") if text.strip() else []:
        if len(line) > width and len(re.findall(r"\S {2,}(?=\S)", line)) >= 2:
            found.append([line[:width - 1] + "…"])
        else:
            found.append([p[i:i + width] for p in _pieces(line, width) for i in range(0, max(len(p), 1), width)])
    return found


def _pieces(line: str, width: int, starts: Collection[int] = ()) -> list[str]:
    """A line broken at blanks before one of the columns `starts`, else there behind a bracket, else at any blank; what goes
    on is indented deeper."""
    own = len(line) - len(line.lstrip())
    indent, begin, room, pieces = min(own + 4, width // 2), 0, width, []
    blanks = [m.end() for m in re.finditer(" ", line) if m.end() > own]
    best = [i for i in blanks if i in starts]
    good = [i for i in sorted(starts) if i > own and line[i - 1] in "([{,="]
    while len(line) - begin > room:
        fitting = ([i for i in where if begin < i <= begin + room] for where in (best, good, blanks))
        choice = next((f for f in fitting if f), [i for i in blanks if i > begin][:1])       # else behind one long word
        if not choice:
            break
        pieces.append(line[begin:choice[-1]].rstrip())
        begin, room = choice[-1], width - indent
    pieces.append(line[begin:])
    return [pieces[0], *(" " * indent + p for p in pieces[1:])]
