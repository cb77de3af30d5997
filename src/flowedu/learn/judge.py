"""One hole judged, in a process of its own: `python -m flowedu.learn.judge HOME 4.3 work/4.3_place.py RESULT SEED`.

What it finds it writes to RESULT, as JSON: {state, law, stars, lines, seconds}. State is "open" (the stub was not touched,
or a target's answer is no better than it), "wrong", "right", or "unjudged": this machine lacks what a kernel needs. Nothing
that an answer does can do more than end this process: limits.py looks after it.
"""
from __future__ import annotations

import errno
import faulthandler
import importlib
import inspect
import json
import re
import signal
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from flowedu.learn import course, kernels, laws, source, swap
from flowedu.learn.handout import begun
from flowedu.learn.install import install
from flowedu.learn.progress import Progress

PRINTED = 1 << 20                                  # bytes that an answer may print
FLOOD = f"  it printed more than {PRINTED:,} bytes: leave the print out, or let it print less"


def judged(hole, file: Path, seed: int = 0, cases: int = 0, load: Callable = swap.load) -> dict[str, Any]:
    """The verdict on the answer in `file`. cases: how many each law draws (0: as many as it says); load(file, module): the
    names that the file makes."""
    start = time.perf_counter()
    try:
        if load is swap.load:
            _others(hole, file.parent)
        found = _kernel(hole, file, seed, cases) if hole.kind == "kernel" else _python(hole, file, seed, cases, load)
    except BaseException as error:                 # sys.exit among them
        found = _failed(hole, error, file)
    verdict = {"state": "right", "stars": 0 if hole.stars else 1, "law": "", "lines": [], "extra": {}, **found}
    if verdict["state"] != "right":
        verdict["stars"] = 0
    return {**verdict, "seconds": round(time.perf_counter() - start, 3)}


def _kernel(hole, file: Path, seed: int, cases: int) -> dict[str, Any]:
    yours = kernels.load(hole, file, apart=True)
    return _broken(hole, yours, seed, cases, file) or (
        kernels.stars(hole, measured(hole, yours, seed), file.read_text(encoding="utf-8")) if hole.stars else {})


def _python(hole, file: Path, seed: int, cases: int, load: Callable) -> dict[str, Any]:
    module = importlib.import_module(hole.module)
    space = load(file, module)
    if lines := _unlike(hole, space, module, file):
        return {"state": "wrong", "lines": lines}
    if hole.plain and source.same_code(file.read_text("utf-8"), (hole.folder / hole.plain).read_text("utf-8"),
                                       hole.functions[0]):
        return {"state": "open"}                   # what stood there when it was handed out
    laws.law(hole.laws[0])                         # its file keeps what it needs of the library's own
    with swap.taking(hole, space):
        yours = answer(hole, space)
        return _broken(hole, yours, seed, cases, file) or (_stars(hole, measured(hole, yours, seed)) if hole.stars else {})


def _unlike(hole, space: dict[str, Any], module: types.ModuleType, file: Path) -> list[str]:
    """What keeps the library from calling what the file made; nothing, where it can."""
    for name in hole.functions:
        if _code(space.get(name)) is None or _code(space[name]).co_filename != str(file):
            return [f"  {file.name} has no function {name}"]
    for name, own, code in _signatures(hole, space, module):
        if own and not _fits(own, code):
            return [f"  {name} is called with ({', '.join(own)})", "  keep the parameters"]
    return []


def _failed(hole, error: BaseException, file: Path) -> dict[str, Any]:
    """What came of an answer that could not be judged to the end."""
    if isinstance(error, SyntaxError):
        at = [f"  line {error.lineno:<6} {(error.text or '').strip()}"] if error.lineno else []
        return {"state": "wrong", "lines": [f"  {type(error).__name__}: {error.msg}"[:98], *at]}
    which, turn, _ = str(error).partition(": your turn") if isinstance(error, NotImplementedError) else ("", "", "")
    if not turn:
        return said(error, file)
    if which != hole.id and begun(file):           # in a student's tree, where it is a stub
        return {"state": "wrong", "lines": [f"  {which} comes first: this law runs the library's, which is open"]}
    return {"state": "open"}


def _others(hole, work: Path) -> None:
    """In a student's tree, whose library has stubs (of kernels none): the answers that are right take their places."""
    if course.student(course.HOME):
        rows = Progress(work).rows
        install(work, lambda h: h.kind != "kernel" and h.id != hole.id and rows.get(h.id, {}).get("state") == "right")


def _code(f: Any) -> types.CodeType | None:
    """Of a function, also behind decorators."""
    return getattr(inspect.unwrap(f), "__code__", None) if callable(f) else None


def _signatures(hole, space, module):
    """(name, parameters of the library's, the student's code) of what is called by position."""
    for path, name in zip(hole.objects, hole.functions):
        owner, field, _ = swap.target(module, path)
        own = () if hasattr(owner, "rules") else swap.plain(getattr(owner, field)).__code__
        yield name, own and own.co_varnames[:own.co_argcount], _code(space[name])


def _fits(own: tuple[str, ...], c: types.CodeType) -> bool:
    return bool(c.co_flags & 0x04) or c.co_varnames[:len(own)] == own[:c.co_argcount] and c.co_argcount >= len(own)


def _broken(hole, yours: Any, seed: int, cases: int, file: Path) -> dict[str, Any]:
    """The first law that does not hold; nothing, where all do."""
    for number, name in enumerate(hole.laws, 1):
        one = laws.law(name)
        try:
            lines = one.broken(yours, seed, cases)
        except Exception as error:
            if isinstance(error, NotImplementedError) and "your turn" in str(error):
                raise
            lines = said(error, file)["lines"]
        if lines:
            return {"state": "wrong", "law": name, "lines": lines,
                    "title": f"law {number} of {len(hole.laws)}: {one.title}"}
    return {}


def _stars(hole, measures: dict[str, Any]) -> dict[str, Any]:
    """How many of hole.stars hold, one after the other, and what to do for the next."""
    found = "   ".join(f"{k} {v:,}" for k, v in measures.items())
    if hole.half and not eval(hole.half, {"__builtins__": {}}, measures):
        return {"state": "open", "extra": measures, "title": "lawful, and not yet better than what was handed out",
                "lines": [f"  {found}     half of the points: {hole.half}"]}
    reached = 0
    for rule in hole.stars:
        if not eval(rule, {"__builtins__": {}}, measures):             # the rule is chapter.toml's
            break
        reached += 1
    if reached == len(hole.stars):
        return {"stars": reached, "extra": measures}
    return {"stars": reached, "extra": measures,
            "lines": [f"  {found}     {reached + 1} star{'s' if reached else ''}: {hole.stars[reached]}"]}


def answer(hole, space: dict[str, Any]) -> Any:
    """What laws get: the function of a work file, or {name: function}."""
    return space[hole.functions[0]] if len(hole.functions) == 1 else {n: space[n] for n in hole.functions}


def measured(hole, yours: Any, seed: int = 0) -> dict[str, Any]:
    """What a hole's stars are given for. A student's tree has figures, for the seed 0, in place of what they compare
    with."""
    module = importlib.import_module(f"flowedu.learn.laws.{hole.laws[0].partition('.')[0]}")
    stored = hole.figures()
    found = getattr(module, f"{hole.functions[0].strip('_')}_stars")(yours, 0 if stored else seed)
    return found | stored if stored else found


def said(error: BaseException, file: Path) -> dict[str, Any]:
    """Class, message, the student's line; nothing else. Of what another answer raised, its file and line, too."""
    frames = [f for f in _frames(error) if f.filename == str(file) or
              Path(f.filename).parent == file.parent and re.match(r"\d+\.\d+_", Path(f.filename).name)]
    own = [f for f in frames if f.filename == str(file)]
    others = [f"  in your {Path(f.filename).name}, line {f.lineno:<6} {f.line}" for f in frames[-1:] if f not in own]
    case = [f"  smallest case   {laws.short(error.case)}"] if getattr(error, "case", "") else []
    if file.suffix != ".py":
        return {"state": "wrong", "lines": case + kernels.said(error, file.read_text(encoding="utf-8")) + others}
    lines = [FLOOD if getattr(error, "errno", 0) == errno.EFBIG or "File too large" in str(error) else
             f"  {type(error).__name__}: {(str(error).splitlines() or [''])[0][:90]}"]
    if own:
        lines.append(f"  line {own[-1].lineno:<6} {own[-1].line}")
    return {"state": "wrong", "lines": [*case, *lines, *others]}


def _frames(error: BaseException | None) -> list[traceback.FrameSummary]:
    """Those of the error, then those of what it was raised from, the innermost last."""
    found: list[traceback.FrameSummary] = []
    while error is not None:
        found += traceback.extract_tb(error.__traceback__)
        error = error.__cause__ or error.__context__
    return found


def alarm_at(when: float, file: TextIO) -> None:
    """At that time (as time.time() counts) the main thread writes to `file` where it is, also from within a call into C. A
    thread that looked at it from outside, as dump_traceback_later has, would find frames that come and go under it."""
    faulthandler.register(signal.SIGALRM, file=file, all_threads=False)
    signal.setitimer(signal.ITIMER_REAL, max(0.1, when - time.time()))


def main(arguments: list[str]) -> None:
    home, id, file, result, seed = arguments[:5]
    laws.NOTE = Path(f"{result}.case")
    threading.excepthook = lambda e: print("a thread of yours:", *(
        t.strip() for t in said(e.exc_value, Path(file))["lines"]), sep="\n  ", flush=True)
    with open(f"{result}.where", "w", encoding="utf-8") as where:
        if len(arguments) > 5:                     # when the time is up, it says at which line
            alarm_at(float(arguments[5]), where)
        verdict = judged(course.find(id, Path(home)), Path(file), int(seed))
        signal.setitimer(signal.ITIMER_REAL, 0)
    Path(f"{result}.new").write_text(json.dumps(verdict), encoding="utf-8")
    Path(f"{result}.new").rename(result)


if __name__ == "__main__":
    main(sys.argv[1:])
