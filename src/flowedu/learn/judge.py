"""One hole judged, in a process of its own: `python -m flowedu.learn.judge HOME 4.3 work/4.3_place.py RESULT SEED`.

What it finds it writes to RESULT, as JSON: {state, law, stars, lines, seconds}. State is "open" (the stub was not touched,
or a target's answer is no better than it), "wrong", "right", or "unjudged": this machine lacks what a kernel needs. Nothing
that an answer does can do more than end this process: limits.py looks after it.
"""
from __future__ import annotations

import ast
import contextlib
import errno
import faulthandler
import importlib
import inspect
import json
import re
import sys
import textwrap
import threading
import time
import traceback
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

PRINTED = 1 << 20                                  # bytes that an answer may print
FLOOD = f"  it printed more than {PRINTED:,} bytes: leave the print out, or let it print less"


def judged(hole, file: Path, seed: int = 0, cases: int = 0, load: Callable | None = None) -> dict[str, Any]:
    """The verdict on the answer in `file`. cases: how many each law draws (0: as many as it says); load(file, module): the
    names that the file makes (swap.load: it runs here)."""
    start = time.perf_counter()
    made = {"state": "right", "stars": 0 if hole.stars else 1, "law": "", "lines": [], "extra": {}}
    try:
        from flowedu.learn import source, swap
        from flowedu.learn.laws import law

        if load is None:
            _others(hole, file.parent)
        if hole.kind == "kernel":
            from flowedu.learn import kernels
            made |= _laws(hole, kernels.load(hole, file, apart=True), seed, cases, file)
            return {**made, "seconds": round(time.perf_counter() - start, 3)}
        module = importlib.import_module(hole.module)
        space = (load or swap.load)(file, module)
        missing = [n for n in hole.functions if _code(space.get(n)) is None or _code(space[n]).co_filename != str(file)]
        if missing:
            return {**made, "state": "wrong", "lines": [f"  {file.name} has no function {missing[0]}"]}
        wide = [(n, own) for n, own, code in _signatures(hole, space, module) if own and not _fits(own, code)]
        if wide:
            name, own = wide[0]
            return {**made, "state": "wrong",
                    "lines": [f"  {name} is called with ({', '.join(own)})", "  keep the parameters"]}
        if hole.plain and source.same_code(file.read_text(), (hole.folder / hole.plain).read_text(), hole.functions[0]):
            return {**made, "state": "open", "stars": 0, "seconds": 0.0}       # what stood there when it was handed out
        law(hole.laws[0])                          # its file keeps what it needs of the library's own
        with swap.taking(hole, space):
            made |= _laws(hole, answer(hole, space), seed, cases, file)
    except NotImplementedError as error:
        which = str(error).partition(": your turn")[0]
        if which == str(error):
            made |= said(error, file)
        elif which != hole.id and swap.begun(file):          # in a student's tree, where it is a stub
            made |= {"state": "wrong", "lines": [f"  {which} comes first: this law runs the library's, which is open"]}
        else:
            made |= {"state": "open", "stars": 0}
    except SyntaxError as error:
        at = [f"  line {error.lineno:<6} {(error.text or '').strip()}"] if error.lineno else []
        made |= {"state": "wrong", "lines": [f"  {type(error).__name__}: {error.msg}"[:98], *at]}
    except BaseException as error:                 # sys.exit among them
        made |= said(error, file)
    if made["state"] != "right":
        made["stars"] = 0
    return {**made, "seconds": round(time.perf_counter() - start, 3)}


def _others(hole, work: Path) -> None:
    """In a student's tree, whose library has stubs (of kernels none): the answers that are right take their places."""
    from flowedu.learn import course, progress, swap
    if course.student(course.HOME):
        rows = progress.Progress(work).rows
        swap.install(work, lambda h: h.kind != "kernel" and h.id != hole.id and rows.get(h.id, {}).get("state") == "right")


def _code(f: Any) -> types.CodeType | None:
    """Of a function, also behind decorators."""
    return getattr(inspect.unwrap(f), "__code__", None) if callable(f) else None


def _signatures(hole, space, module):
    """(name, parameters of the library's, the student's code) of what is called by position."""
    from flowedu.learn import swap
    for path, name in zip(hole.objects, hole.functions):
        owner, field, _ = swap.target(module, path)
        own = () if hasattr(owner, "rules") else swap.plain(getattr(owner, field)).__code__
        yield name, own and own.co_varnames[:own.co_argcount], _code(space[name])


def _fits(own: tuple[str, ...], c: types.CodeType) -> bool:
    return bool(c.co_flags & 0x04) or c.co_varnames[:len(own)] == own[:c.co_argcount] and c.co_argcount >= len(own)


def _laws(hole, yours: Any, seed: int, cases: int, file: Path) -> dict[str, Any]:
    from flowedu.learn.laws import law
    for number, name in enumerate(hole.laws, 1):
        one = law(name)
        try:
            lines = one.broken(yours, seed, cases)
        except Exception as error:
            if isinstance(error, NotImplementedError) and "your turn" in str(error):
                raise
            lines = said(error, file)["lines"]
        if lines:
            return {"state": "wrong", "law": name, "lines": lines,
                    "title": f"law {number} of {len(hole.laws)}: {one.title}"}
    if not hole.stars:
        return {}
    measures = measured(hole, yours, seed)
    if hole.kind == "kernel":
        from flowedu.learn import kernels
        return kernels.stars(hole, measures, file.read_text())
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
    from flowedu.learn import laws
    frames = [f for f in _frames(error) if f.filename == str(file) or
              Path(f.filename).parent == file.parent and re.match(r"\d+\.\d+_", Path(f.filename).name)]
    own = [f for f in frames if f.filename == str(file)]
    others = [f"  in your {Path(f.filename).name}, line {f.lineno:<6} {f.line}" for f in frames[-1:] if f not in own]
    case = [f"  smallest case   {laws.short(error.case)}"] if getattr(error, "case", "") else []
    if file.suffix != ".py":
        from flowedu.learn import kernels
        return {"state": "wrong", "lines": case + kernels.said(error, file.read_text()) + others}
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


def notes(hole, at_hand: list[str] = ()) -> list[str]:
    """What a work file begins with."""
    lines = [f"{hole.title}", "", *hole.task.strip().splitlines()]
    if hole.example:
        lines += ["", *("    " + t for t in hole.example.strip().splitlines())]
    if at_hand:
        lines += ["", *textwrap.wrap(f"at hand: {', '.join(at_hand)}", 120)]
    first = [f"after  {', '.join(hole.first)}: its laws run them, and here they are open"] if hole.first else []
    return [*lines, "", f"{hole.about}, {hole.points} points", *first, f"read   {hole.page}"]


def stub(hole) -> str:
    """The work file as it is handed out: the task, then a function that raises, or a wasteful one."""
    if hole.kind == "kernel":
        from flowedu.learn import kernels
        return kernels.stub(hole)
    from flowedu.learn.source import around
    source = around(hole).read_text()
    text = '"""' + "\n".join(notes(hole, hole.at_hand)) + '\n"""\n\n\n'
    if hole.stub:
        return text + (hole.folder / hole.stub).read_text()
    return text + "\n\n".join(
        f"def {name}({_parameters(source, path) if given is None else given}):\n"
        f"    raise NotImplementedError(\"{hole.id}: your turn\")\n"
        for path, name, given in zip(hole.objects, hole.functions, hole.parameters or [None] * len(hole.objects)))


def names_at_hand(source: str, paths: Sequence[str]) -> list[str]:
    """What the file around an answer offers it, of all that the library's own lines use: imports, functions, constants."""
    from flowedu.errors import ArgumentError
    from flowedu.learn.source import function
    own = {path.partition(".")[0] for path in paths}
    there = {getattr(n, "asname", None) or n.name.partition(".")[0] if isinstance(n, ast.alias) else getattr(n, "name", "")
             or getattr(n, "id", "") for top in ast.parse(source).body for n in _makers(top)}
    used: set[str] = set()
    for path in paths:
        with contextlib.suppress(ArgumentError):   # a field of a record
            used |= {n.id for top in function(source, path).body for n in ast.walk(top) if isinstance(n, ast.Name)}
    return sorted(n for n in used & there - own if not n.startswith("_"))


def _makers(top: ast.stmt) -> list[ast.AST]:
    """What of a statement at the top of a file makes names."""
    if isinstance(top, ast.Import | ast.ImportFrom):
        return list(top.names)
    if isinstance(top, ast.FunctionDef | ast.ClassDef):
        return [top]
    return [t for t in getattr(top, "targets", [getattr(top, "target", None)]) if isinstance(t, ast.Name)]


def _parameters(source: str, path: str) -> str:
    """As the library writes them."""
    from flowedu.learn.source import function
    return ast.unparse(function(source, path).args)


def main(arguments: list[str]) -> None:
    from flowedu.learn import course, laws
    home, id, file, result, seed = arguments[:5]
    laws.NOTE = Path(f"{result}.case")
    threading.excepthook = lambda e: print("a thread of yours:", *(
        t.strip() for t in said(e.exc_value, Path(file))["lines"]), sep="\n  ", flush=True)
    with open(f"{result}.where", "w") as where:
        if len(arguments) > 5:                     # when the time is up, it says at which line
            faulthandler.dump_traceback_later(max(0.1, float(arguments[5]) - time.time()), file=where)
        verdict = judged(course.find(id, Path(home)), Path(file), int(seed))
        faulthandler.cancel_dump_traceback_later()
    Path(f"{result}.new").write_text(json.dumps(verdict))
    Path(f"{result}.new").rename(result)


if __name__ == "__main__":
    main(sys.argv[1:])
