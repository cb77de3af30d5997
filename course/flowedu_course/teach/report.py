"""Files of a grade: results.json for Gradescope, junit.xml, and a page for the student."""
from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from flowedu.errors.files import write_text

STYLE = """body { font: 16px/1.5 "DejaVu Sans", Arial, sans-serif; color: #1f2933; max-width: 60em; margin: 2em auto;
padding: 0 1em } table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .3em .8em;
border-bottom: 1px solid #d9e2ec } td.n, th.n { text-align: right } pre { background: #f5f7fa; padding: .8em; overflow-x:
auto; font-size: 14px } .right { color: #14632c } .wrong { color: #a61b1b } .open { color: #616e7c }
.unjudged { color: #8d5a00 }
.remark { border-left: 4px solid #3e7cb1; padding-left: .8em; white-space: pre-line }"""
REMARK = "remark: "


class Mark(NamedTuple):
    """The result of one exercise.

    text: the output of the student's runner; of: number of possible stars (0: all). Stars for the time of a
    kernel do not count on a shared machine.
    """

    hole: Any
    state: str
    stars: int
    law: str
    text: str
    extra: dict[str, Any]
    of: int = 0
    must: bool = False
    remark: str = ""                               # of the instructor

    @property
    def together(self) -> bool:
        """True if the answer's own process judged it (see README.md in this folder)."""
        return self.hole.together

    @property
    def most(self) -> float:
        """Possible points; 0 if the exercise could not be judged, so that no points are lost."""
        return 0.0 if self.state == "unjudged" else float(self.hole.points)

    @property
    def missing(self) -> bool:
        return self.must and self.state not in ("right", "unjudged")

    @property
    def score(self) -> float:
        """Points: half for the laws and half for the stars; all for the laws if there are no stars."""
        if self.state != "right":
            return 0.0
        share = 0.5 + 0.5 * self.stars / (self.of or len(self.hole.stars)) if self.hole.stars else 1.0
        return round(self.hole.points * share, 2)


def total(marks: list[Mark]) -> tuple[float, float]:
    """Return (earned points, possible points) of the exercises that could be judged."""
    return round(sum(m.score for m in marks), 2), float(sum(m.most for m in marks))


def unjudged(marks: list[Mark]) -> str:
    """Return a sentence about points that could not be judged, with the reason, or ""."""
    left = [m for m in marks if m.state == "unjudged"]
    why = {m.text.splitlines()[-1].strip() for m in left if m.text}
    return "" if not left else (f"{sum(m.hole.points for m in left)} points could not be judged here and do "
                                f"not count ({', '.join(m.hole.id for m in left)}): {'; '.join(sorted(why))}")


def together(marks: list[Mark]) -> list[str]:
    """Return the exercises whose points depend on a verdict of the answer's own process."""
    return [m.hole.id for m in marks if m.together and m.score]


def missing(marks: list[Mark]) -> str:
    """Return a sentence about must exercises that are not right, or ""."""
    left = [f"{m.hole.short} ({m.state})" for m in marks if m.missing]
    return f"must exercises that are missing: {', '.join(left)}" if left else ""


def _describe_together(marks: list[Mark]) -> str:
    ids = together(marks)
    points = sum(m.score for m in marks if m.together)
    return f"{points:g} points were judged in the answer's own process: {', '.join(ids)}" if ids else ""


def read(folder: Path, holes: Iterable) -> list[Mark]:
    """Read the marks of results.json again, for example for other points."""
    tests = {t["name"]: t for t in json.loads((folder / "results.json").read_text(encoding="utf-8"))["tests"]}
    marks = []
    for hole in holes:
        t = tests[hole.short]
        tags = dict(tag.split(":", 1) for tag in t["tags"] if ":" in tag)
        extra = dict(t["extra_data"])
        of, law, remark = (extra.pop(k, v) for k, v in (("of", 0), ("law", ""), ("remark", "")))
        text = t["output"].removesuffix(_clean(f"\n\n{REMARK}{remark}") if remark else "")
        marks.append(Mark(hole, tags["state"], int(tags.get("stars", 0)), law, text, extra, of))
    return marks


def _output(m: Mark) -> str:
    return _clean(f"{m.text}\n\n{REMARK}{m.remark}" if m.remark else m.text)


def results(marks: list[Mark], note: str = "", remark: str = "") -> dict[str, Any]:
    """Return the contents of results.json for Gradescope."""
    right, judged = sum(m.state == "right" for m in marks), sum(m.state != "unjudged" for m in marks)
    parts = (missing(marks), note or f"{right} of {judged} exercises are right", unjudged(marks),
             _describe_together(marks), _clean(REMARK + remark) if remark else "")
    said = "; ".join(t for t in parts if t)
    general = {"extra_data": {"remark": remark}} if remark else {}
    return {"score": total(marks)[0], "output": said, **general,
            "tests": [{"name": m.hole.short, "score": m.score, "max_score": m.most, "output": _output(m),
                       "visibility": "visible", "tags": _tags(m),
                       "extra_data": {**m.extra, "of": m.of, "law": m.law,
                                      **({"remark": m.remark} if m.remark else {})}} for m in marks]}


def _tags(m: Mark) -> list[str]:
    return [f"state:{m.state}", *([f"law:{m.law.partition('.')[2]}"] if m.law else []),
            *([f"stars:{m.stars}"] if m.hole.stars else []), *(["together"] if m.together else []),
            *(["must"] if m.must else []), *(["missing"] if m.missing else [])]


def _clean(text: str) -> str:
    """Remove characters that XML or terminals interpret as commands."""
    return re.sub(r"[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd]", "?", text)


def junit(marks: list[Mark], name: str) -> str:
    e = lambda t: escape(_clean(t))
    wrong, skipped = (sum(m.state in states for m in marks) for states in (("wrong",), ("open", "unjudged")))
    lines = ['<?xml version="1.0" encoding="UTF-8"?>',
             f'<testsuite name="{e(name)}" tests="{len(marks)}" failures="{wrong}" skipped="{skipped}">']
    for m in marks:
        lines.append(f'<testcase classname="chapter{m.hole.chapter}" name="{e(m.hole.short)}" '
                     f'time="{m.extra.get("seconds", 0)}">')
        if m.state == "wrong":
            lines.append(f'<failure message="{e(m.law or "wrong")}">{e(m.text)}</failure>')
        elif m.state in ("open", "unjudged"):
            first = " ".join(m.text.split()) if m.state == "unjudged" else m.text.partition("\n")[0]
            lines.append(f'<skipped message="{e(first or "not begun")}"/>')
        lines.append("</testcase>")
    return "\n".join([*lines, "</testsuite>", ""])


def page(marks: list[Mark], name: str, note: str = "", remark: str = "") -> str:
    """Return the student's page as HTML."""
    e = lambda t: escape(_clean(t))
    reached, most = total(marks)
    rows = "\n".join(f'<tr><td><a href="#h{m.hole.id}">{e(m.hole.short)}</a></td><td '
                     f'class="{m.state}">{m.state}</td><td>{"*" * m.stars if m.hole.stars else ""}</td><td '
                     f'class="n">{"" if m.state == "unjudged" else f"{m.score:g}"}</td>'
                     f'<td class="n">{m.most:g}</td><td>{"together" if m.together else ""}</td>'
                     f'<td>{"must" if m.must else ""}</td></tr>'
                     for m in marks)
    parts = "\n".join(f'<h2 id="h{m.hole.id}">{e(m.hole.title)}</h2>\n<pre>{e(m.text)}</pre>'
                      + (f'\n<p class="remark">{REMARK}{e(m.remark)}</p>' if m.remark else "")
                      for m in marks if m.text or m.remark)
    said = f'<p class="remark">{REMARK}{e(remark)}</p>\n' if remark else ""
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{e(name)}</title>'
            f"<style>{STYLE}</style></head>\n<body><h1>{e(name)}: {reached:g} of {most:g}</h1>\n"
            f"<p>{e(missing(marks))}</p>\n<p>{e(note)}</p>\n{said}<p>{e(unjudged(marks))}</p>\n"
            f"<p>{e(_describe_together(marks))}</p>\n"
            "<table><tr><th>exercise</th><th>state</th>"
            '<th>stars</th><th class="n">points</th><th class="n">of</th><th></th><th></th></tr>\n'
            f"{rows}</table>\n"
            f"{parts}\n</body></html>\n")


def write(folder: Path, marks: list[Mark], name: str, note: str = "", remark: str = "") -> None:
    """Write all three files, each completely or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    put(folder / "junit.xml", junit(marks, name))
    put(folder / "index.html", page(marks, name, note, remark))
    put(folder / "results.json", json.dumps(results(marks, note, remark), indent=1))


def put(file: Path, text: str) -> None:
    write_text(file, text)
