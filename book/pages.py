"""Lessons as pages of the book: the output of each block behind it, exercises, links between languages.

The pages are those of chapters/; what is added here is added while Sphinx reads them, and no second copy is
written.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from flowedu_course import course
from flowedu_course.blocks import BLOCK, block_of, pages, unbroken
from flowedu_course.handout import describe_effort
from flowedu_course.language import tr

ROOT = Path(__file__).resolve().parents[1]
LESSONS = sorted((ROOT / "chapters").glob("*/*.md"))
ENGLISH = [p for p in LESSONS if not p.name.endswith(".zh.md")]          # a translation has the same blocks
# pages outside chapters/ whose code runs
OWN = [ROOT / f"{name}.md" for name in ("book/from_pytorch", "book/pictures", "docs/tour", "docs/new_op")]
PICTURE = re.compile(r"^% picture (\S+)$", re.MULTILINE)
FENCE = "`" * 8                                # more than any output has
LONG = 30                                      # lines after which an output scrolls
WIDE = 90                                      # columns that fit into the text's width
TRY = {"01_blob": ("strides", "Shape and strides"), "04_job_functions": ("arena", "Place an arena yourself"),
       "06_sbp": ("boxing", "From one layout to another")}          # {chapter: (widget, title)}
LANGUAGES = {"": "English", ".zh": "中文"}
# For readers of the file.
TONGUES = re.compile(rf"^\[(?:{'|'.join(LANGUAGES.values())})\]\([\w.]+\)\n+", re.MULTILINE)
SAID = {"": ("Exercises in the library itself", "Try it", "not run here: it needs", "Stars: ", " for ", "; ",
             "Where it is explained"),
        ".zh": ("练习：库里的函数", "动手试试", "这里没有运行：需要", "星：", " 颗：", "；", "在哪里讲到")}


@dataclass(frozen=True)
class Part:
    """Piece of a page.

    kind: "text", "code" (a Python block that ran or was left out), or "output" (the output that the page
    shows for a block that was left out). printed: the output of the code; None if it was left out.
    """

    kind: str
    text: str
    words: str = ""
    printed: str | None = None
    line: int = 0


def parts(path: Path, printed: Iterable[str | None]) -> Iterator[Part]:
    """Yield the pieces of a page, in order, without the shown outputs of blocks that ran.

    printed: the outputs of these blocks, in order.
    """
    text = TONGUES.sub("", path.read_text(encoding="utf-8"), count=1)
    read, outputs, out = 0, iter(printed), None
    for match in BLOCK.finditer(text):
        yield Part("text", unbroken(text[read:match.start()]))
        read = match.end()
        block = block_of(match)
        if block.language == "python":
            out = next(outputs)
            yield Part("code", block.text, block.words, out, block.line)
        elif (block.language, block.words) != ("text", "output"):
            yield Part("text", match[0])
        elif out is None:
            yield Part("output", block.text)
    yield Part("text", unbroken(text[read:]))


def page(path: Path, printed: list[str | None]) -> str:
    """The Markdown of a page as the book shows it. printed: what its Python blocks print, in order."""
    tongue, shown = language(path), []
    for part in parts(path, printed):
        if part.kind == "text":
            shown.append(part.text)
        elif part.kind == "output":
            shown.append(_output(part.text))
        else:
            shown.append(f"```python\n{part.text}```")
            if part.printed is None:
                need = re.search(r"needs=(\w+)", part.words)
                shown.append(f"\n\n*{SAID[tongue][2]} {need[1] if need else '...'}*")
            elif part.printed.strip():
                shown.append("\n" + _output(part.printed))
    return _links(path) + "".join(shown) + _after(path, tongue)


def with_pictures(text: str, made: Mapping[str, str]) -> str:
    """Replace each line `% picture name` by a picture or a table. made: {file name: content}."""
    def raw(match: re.Match) -> str:
        whole = made[match[1]]
        body = re.search(r"<body>\n(.*)</body>", whole, re.DOTALL)
        return (f"```{{raw}} html\n<div "
                f"class=\"picture\">\n{(body[1] if body else whole).strip()}\n</div>\n```")

    return PICTURE.sub(raw, text)


ALL_RAN = "Every code block was run when the book was built, and its output is\nshown below it."


def index(text: str, printed: Mapping[Path, list[str | None]]) -> str:
    """Return the text of the first page, which names the pages with blocks that were not run."""
    left = {f"{p.parent.name}/{p.stem}": outputs.count(None) for p, outputs in printed.items()
            if None in outputs}
    if not left:
        return text
    where = ", ".join(f"{page} ({count})" for page, count in left.items())
    return text.replace(ALL_RAN, f"The code blocks were run when the book was built, and their outputs are "
                        f"shown below them. {sum(left.values())} blocks need a GPU or the simulator and were "
                        f"not run: {where}.")


def language(path: Path) -> str:
    """".zh" of README.zh.md, "" of README.md."""
    return Path(path.stem).suffix


def original(path: Path) -> Path:
    """The English page of any language's."""
    return path.with_name(path.name.replace(f"{language(path)}.md", ".md"))


def _output(text: str) -> str:
    long = " long" if text.count("\n") > LONG else ""
    wide = " wide" if max(map(len, text.splitlines()), default=0) > WIDE else ""
    return f"{FENCE}{{code-block}} text\n:class: printed{long}{wide}\n\n{text.rstrip()}\n{FENCE}\n"


def other_tongues(path: Path) -> str:
    """Links to the same page in the other languages."""
    first = original(path)
    there = {tongue: first.with_name(f"{first.stem}{tongue}.md") for tongue in LANGUAGES}
    return " ".join(f"[{LANGUAGES[t]}]({p.name})" for t, p in there.items() if p.exists() and p != path)


def _links(path: Path) -> str:
    """Above the title."""
    found = other_tongues(path)
    matter = "---\norphan: true\n---\n\n" if language(path) else ""
    return matter + (f"```{{container}} languages\n{found}\n```\n\n" if found else "")


def _after(path: Path, tongue: str) -> str:
    """Behind a chapter's first page: what to try, the exercises, the chapter's other pages."""
    if original(path).name != "README.md":
        return ""
    parts = []
    if path.parent.name in TRY:
        name, title = TRY[path.parent.name]
        parts.append(f"\n## {SAID[tongue][1]}\n\n[{title}](/book/{name}.md)\n")
    found = [c for c in course.chapters(ROOT) if c.folder.name == path.parent.name and c.holes]
    if found:
        parts += [f"\n## {SAID[tongue][0]}\n\n`make start CH={found[0].number}`, `make watch`\n",
                  *(exercise(h, tongue) for h in found[0].holes)]
    others = [p.stem for p in pages(path.parent)[1:]]
    if others and not tongue:
        parts.append("\n".join(["", "```{toctree}", ":hidden:", "", *others, "```", ""]))
    return "\n".join(parts)


def exercise(hole: course.Hole, tongue: str = "") -> str:
    """An exercise as its work file words it: the task, an example, never the answer."""
    into = tongue.removeprefix(".") or "en"
    stars, each, then, where = SAID[tongue][3:]
    effort = describe_effort(hole, into)
    lines = ["", f"### {hole.id} {_plain(tr(hole.title, into))}", "", f"`make check EX={hole.id}` · {effort}",
             "", _plain(unbroken(tr(hole.task, into).strip())), ""]
    if hole.example:
        lines += [FENCE + "text", tr(hole.example, into).strip(), FENCE, ""]
    if hole.uses:
        pairs = (re.split(": |：", tr(t, into), maxsplit=1) for t in hole.uses)
        lines += [tr("names you can use:", into), "",
                  *(f"- `{name}`: {_plain(text)}" for name, text in pairs), ""]
    if hole.stars:
        lines += [stars + then.join(f"{i}{each}{_plain(s)}" for i, s in enumerate(hole.stars, 1)), ""]
    return "\n".join([*lines, f"[{where}]({hole.why})", ""])


def _plain(text: str) -> str:
    """Text whose letters mean nothing to Markdown."""
    return re.sub(r"([\\`*_{}\[\]<>#|~$])", r"\\\1", text)
