"""Terminal output of a lesson: headings, a line or two of text, the code, and its output.

If the output is not a terminal, or if NO_COLOR is set, lines are plain: `|` marks code, `>` its output, and
`:` a continuation of the line above. With PACE=1 the lesson stops before each block whose output the page
shows, and asks for a prediction of the output.
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

from flowedu_course.blocks import Block, promised, unbroken

WIDTH = 120                                                     # columns without a terminal
PROSE = 100                                                     # longer lines are hard to read
BRIEF = 180                                                     # characters after which no sentence begins
MARK = 4                                                        # columns before code and output
BOLD, DIM, GREEN = "1", "2", "32"


class Reader:
    """Callbacks for run_lesson: `before` gets the text and a block, `printed` the block's output.

    show: function that prints a line. paced: stop and ask; by default if PACE is set and stdin is a terminal.
    """

    def __init__(self, path: Path, show=print, paced: bool | None = None):
        self.path, self.show = path, show
        self.colored = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
        self.width = max(40, shutil.get_terminal_size((WIDTH, 24)).columns)
        self.paced = (paced if paced is not None else os.environ.get("PACE", "") not in ("", "0")
                      and sys.stdin.isatty())
        self.blank = False                                      # True if the last line was blank
        self.promised = promised(path.read_text(encoding="utf-8"))

    def before(self, text: str, block: Block | None) -> None:
        """Show a summary of the text since the last block, and the block before it runs."""
        for line in brief(text, block is not None and block.words != "output"):
            if line or not self.blank:
                for piece in textwrap.wrap(line, min(self.width, PROSE), break_on_hyphens=False,
                                           break_long_words=False) or [""]:
                    self.show(self._in(BOLD, piece) if line.startswith("#") else piece)
            self.blank = not line
        if block is None or block.words == "output":            # the actual output is shown instead
            return
        for first, *more in code_lines(block.text, self.width - MARK):
            self.blank = False
            self.show(self._in(DIM, "  | ") + first)
            for piece in more:
                self.show(self._in(DIM, "  : ") + piece)
        if self.paced and block.line in self.promised:
            input(self._in(GREEN, "  ? what will be printed? (Enter) "))

    def printed(self, text: str) -> None:
        """Show the output of a block."""
        for first, *more in output_lines(text, self.width - MARK):
            self.blank = False
            self.show(self._in(GREEN, "  > " + first))
            for piece in more:
                self.show(self._in(GREEN, "  : " + piece))

    def _in(self, color: str, text: str) -> str:
        return f"\033[{color}m{text}\033[0m" if self.colored else text


def brief(markdown: str, block: bool) -> list[str]:
    """Return the headings and the first sentences of each section.

    Of text without a heading before a block, return the first sentences of its last paragraph.
    """
    whole = _plain(markdown)
    # Remove drawings.
    markdown = re.sub(r"^```\n.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)
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
    """Return the text on one line, without bold type and link addresses."""
    return re.sub(r"\*\*|\[([^\]]*)\]\([^)]*\)", lambda m: m[1] or "", " ".join(unbroken(markdown).split()))


def _paragraphs(markdown: str) -> list[str]:
    """Return the paragraphs of whole sentences, without tables, boxes, images, lists, and bare links."""
    paragraphs = []
    for p in re.split(r"\n\s*\n", markdown.strip("\n")):
        p = re.split(r"^(?=(?:[-*]|\d+\.) )", p, maxsplit=1, flags=re.MULTILINE)[0]
        if not re.match(r"[(|>]|!\[|    ", p) and re.search(r"[.!?:。！？：]$", _plain(p)):
            paragraphs.append(_plain(p))
    return paragraphs


def _sentences(text: str, leads: bool) -> str:
    """Return about two lines of a paragraph's first sentences. A final colon is kept only before a block."""
    first, *others = re.split(r"(?<=[.!?]) (?=[A-Z`\"(])|(?<=[。！？])", text)
    while (others and len(first) + len(others[0]) < BRIEF and others[0][0] != "("
           and (leads or others[0][-1] != ":")):
        first += " " + others.pop(0)
    return first if leads and not others else re.sub(":$", ".", first)


# ---- lines that fit
def code_lines(text: str, width: int) -> list[list[str]]:
    """Break each line of Python into pieces of at most `width` columns, if possible.

    Lines are broken at spaces between tokens if possible, otherwise at spaces in a string or comment. Text
    that is not Python is broken at spaces.
    """
    starts, inside = {}, 0
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        for t in tokenize.generate_tokens(io.StringIO(text).readline):
            if not inside:
                starts.setdefault(t.start[0], set()).add(t.start[1])
            # An f-string has several tokens since Python 3.12.
            name = tokenize.tok_name[t.type]
            inside += name.endswith("STRING_START") - name.endswith("STRING_END")
    return [_pieces(line, width, starts.get(n, set())) for n, line in enumerate(text.rstrip("\n").split("\n"),
                                                                                1)]


def output_lines(text: str, width: int) -> list[list[str]]:
    """Break each line into pieces that fit. Rows of a table are truncated to keep the columns aligned."""
    rows = []
    for line in text.rstrip("\n").split("\n") if text.strip() else []:
        if len(line) > width and len(re.findall(r"\S {2,}(?=\S)", line)) >= 2:
            rows.append([line[:width - 1] + "…"])
        else:
            rows.append([p[i:i + width] for p in _pieces(line, width)
                         for i in range(0, max(len(p), 1), width)])
    return rows


def _pieces(line: str, width: int, starts: Collection[int] = ()) -> list[str]:
    """Break a line at spaces before columns in `starts`, else at such columns after brackets, else at spaces.

    Continuation lines are indented further.
    """
    own = len(line) - len(line.lstrip())
    indent, begin, room, pieces = min(own + 4, width // 2), 0, width, []
    blanks = [m.end() for m in re.finditer(" ", line) if m.end() > own]
    best = [i for i in blanks if i in starts]
    good = [i for i in sorted(starts) if i > own and line[i - 1] in "([{,="]
    while len(line) - begin > room:
        fitting = ([i for i in where if begin < i <= begin + room] for where in (best, good, blanks))
        # Else after one long word.
        choice = next((f for f in fitting if f), [i for i in blanks if i > begin][:1])
        if not choice:
            break
        pieces.append(line[begin:choice[-1]].rstrip())
        begin, room = choice[-1], width - indent
    pieces.append(line[begin:])
    return [pieces[0], *(" " * indent + p for p in pieces[1:])]
