"""Judge one hole: `python -m flowedu_course.judge HOME 4.3 work/4.3_place.py RESULT SEED`.

The command loads the answer, installs it in the library, checks the laws one by one, counts stars, and
writes the Verdict (laws) to RESULT as JSON. limits.py runs the command in a separate process, so a crash of
an answer ends only this process.
"""
from __future__ import annotations

import errno
import faulthandler
import importlib
import inspect
import re
import signal
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path
from typing import Any, TextIO

from flowedu import swap
from flowedu_course import course, hunts, kernels, laws, rules
from flowedu_course.handout import is_begun, is_plain
from flowedu_course.install import install
from flowedu_course.laws import Verdict
from flowedu_course.laws.guard import guarded

PRINTED = 1 << 20                                  # bytes that an answer may print
FLOOD = f"  it printed more than {PRINTED:,} bytes: remove the print, or print less"


def judged(hole, file: Path, seed: int = 0, cases: int = 0, load: Callable = swap.load) -> Verdict:
    """Return the verdict on the answer in `file`.

    cases: number of cases per law (0: default); load(file, module): returns the file's names.
    """
    start = time.perf_counter()
    try:
        changes = hunts.judge_changes(hole, file.read_text(encoding="utf-8")) if hole.is_hunt else None
        if changes:
            return changes
        if load is swap.load:
            rows = course.Progress(file.parent).rows
            _install_others(hole, file.parent, rows)
            if (weak := _weak_needs(hole, rows)) and is_begun(file):
                return Verdict("open", lines=[laws.blocked_line(", ".join(weak))])
        verdict = (_kernel(hole, file, seed, cases) if hole.is_compiled
                   else _python(hole, file, seed, cases, load))
    except BaseException as error:                 # also sys.exit
        verdict = _failed(hole, error, file)
    verdict.seconds = round(time.perf_counter() - start, 3)
    return verdict


def _kernel(hole, file: Path, seed: int, cases: int) -> Verdict:
    yours = kernels.load(hole, file, apart=True)
    return _check(hole, yours, seed, cases, file,
                  lambda measures: kernels.stars(hole, measures, file.read_text(encoding="utf-8")))


def _python(hole, file: Path, seed: int, cases: int, load: Callable) -> Verdict:
    module = importlib.import_module(hole.module)
    space = load(file, module)
    if lines := _unlike(hole, space, module, file):
        return Verdict("wrong", lines=lines)
    laws.law(hole.laws[0])                         # importing the laws saves the library's functions
    with swap.taking(hole, space):
        verdict = _check(hole, answer(hole, space), seed, cases, file,
                         lambda measures: _stars(hole, measures))
    if verdict.state == "right" and hole.plain and is_plain(hole, file):
        return Verdict("open",
                       lines=["  this is the function that your tree has in this place: use another method"])
    return verdict


def _check(hole, yours: Any, seed: int, cases: int, file: Path,
           count_stars: Callable[[dict], Verdict]) -> Verdict:
    """Return the verdict of the first law that does not hold; if all hold, the stars of the measures."""
    broken = _check_laws(hole, yours, seed, cases, file)
    if broken or not hole.stars:
        return broken or Verdict(stars=1)
    try:
        return count_stars(measured(hole, yours, seed))
    except laws.Rejected as error:                 # the measured result is wrong
        return _broken(hole, next(n for n in hole.laws if laws.law(n) is error.law), error.lines)


def _unlike(hole, space: dict[str, Any], module: types.ModuleType, file: Path) -> list[str]:
    """Return the lines of a failure if the library cannot call the functions of the file, else []."""
    for name in hole.functions:
        if _code(space.get(name)) is None or _code(space[name]).co_filename != str(file):
            return [f"  {file.name} has no function {name}"]
    for name, own, code in _signatures(hole, space, module):
        if own and not _fits(own, code):
            return [f"  {name} is called with ({', '.join(own)})", "  keep the parameters"]
    return []


def _failed(hole, error: BaseException, file: Path) -> Verdict:
    """Return the verdict on an answer that raised an error."""
    if isinstance(error, SyntaxError):
        at = [f"  line {error.lineno:<6} {(error.text or '').strip()}"] if error.lineno else []
        return Verdict("wrong", lines=[f"  {type(error).__name__}: {error.msg}"[:98], *at])
    which, turn, _ = (str(error).partition(": your turn") if isinstance(error, NotImplementedError)
                      else ("", "", ""))
    if not turn:
        return Verdict("wrong", lines=error_lines(error, file), trace=_trace(error))
    if which != hole.id and is_begun(file):           # a stub of a student's tree raised it
        return Verdict("wrong", lines=[laws.blocked_line(which)])
    return Verdict("open")


def _install_others(hole, work: Path, rows: dict) -> None:
    """Install the other right answers in a student's tree, whose library has stubs (except for kernels)."""
    if course.student(course.HOME):
        install(work, lambda h: not h.is_separate and h.id != hole.id
                and rows.get(h.id, {}).get("state") == "right")


def _weak_needs(hole, rows: dict) -> list[str]:
    """Return the required exercises whose stubs obey all laws, but would spoil what the laws measure."""
    return [id for id in hole.first if rows.get(id, {}).get("state") != "right"
            and course.find(id, hole.folder.parents[1]).kind == "target"]


def _code(f: Any) -> types.CodeType | None:
    """Return the code of a function, also of a decorated one."""
    return getattr(inspect.unwrap(f), "__code__", None) if callable(f) else None


def _signatures(hole, space, module):
    """Yield (name, positional parameters of the library's function, code of the student's)."""
    for path, name in zip(hole.objects, hole.functions):
        owner, field, _ = swap.target(module, path)
        own = () if hasattr(owner, "rules") else swap.plain(getattr(owner, field)).__code__
        yield name, own and own.co_varnames[:own.co_argcount], _code(space[name])


def _fits(own: tuple[str, ...], c: types.CodeType) -> bool:
    return (bool(c.co_flags & 0x04) or c.co_varnames[:len(own)] == own[:c.co_argcount]
            and c.co_argcount >= len(own))


def _check_laws(hole, yours: Any, seed: int, cases: int, file: Path) -> Verdict | None:
    """Return the verdict of the first law that does not hold, or None if all hold."""
    for name in hole.laws:
        one, trace = laws.law(name), ""
        try:
            lines = one.broken(yours, seed, cases)
        except Exception as error:
            if isinstance(error, NotImplementedError) and "your turn" in str(error):
                raise
            lines, trace = error_lines(error, file), _trace(error)
        if lines:
            return _broken(hole, name, lines, trace)
    return None


def _broken(hole, name: str, lines: list[str], trace: str = "") -> Verdict:
    """Return the verdict of a law that does not hold."""
    title = f"law {hole.laws.index(name) + 1} of {len(hole.laws)}: {laws.law(name).title}"
    return Verdict("wrong", law=name, title=title, lines=lines, trace=trace)


def _stars(hole, measures: dict[str, Any]) -> Verdict:
    """Return a verdict with the stars reached, and the rule of the next star."""
    found = "   ".join(f"{k} {v:,}" for k, v in measures.items())
    if hole.half and not rules.holds(hole.half, measures):
        return Verdict("open", extra=measures, title="all laws hold; not yet better than the initial code",
                       lines=[f"  {found}     half of the points: {hole.half}"])
    reached = len(list(takewhile(lambda rule: rules.holds(rule, measures), hole.stars)))
    more = [f"  {found}     {reached + 1} star{'s' if reached else ''}: {rule}"
            for rule in hole.stars[reached:reached + 1]]
    return Verdict(stars=reached, extra=measures, lines=more)


def answer(hole, space: dict[str, Any]) -> Any:
    """Return the argument of laws: the function of a work file, or {name: function}."""
    yours = {n: guarded(space[n]) for n in hole.functions}
    return yours[hole.functions[0]] if len(yours) == 1 else yours


def measured(hole, yours: Any, seed: int = 0) -> dict[str, Any]:
    """Return the measures of a hole's stars. A student's tree has the library's figures, for seed 0."""
    module = importlib.import_module(f"flowedu_course.laws.{hole.laws[0].partition('.')[0]}")
    stored = hole.figures()
    found = getattr(module, f"{hole.functions[0].strip('_')}_stars")(yours, 0 if stored else seed)
    return found | stored if stored else found


def error_lines(error: BaseException, file: Path) -> list[str]:
    """Return the error's class, message, and line, with the file if it is another answer's."""
    frames = [f for f in _frames(error) if f.filename == str(file) or
              Path(f.filename).parent == file.parent and re.match(r"\d+\.\d+_", Path(f.filename).name)]
    own = [f for f in frames if f.filename == str(file)]
    others = [f"  in your {Path(f.filename).name}, line {f.lineno:<6} {f.line}" for f in frames[-1:]
              if f not in own]
    case = [laws.SMALLEST + laws.short(error.case)] if getattr(error, "case", "") else []
    if not frames and (line := _line_of_a_law(error)):
        return [*case, f"  the law itself raised {type(error).__name__}: {laws.short(str(error))}"[:98],
                f"  it cannot read your result, or it has a fault: {line}"]
    if file.suffix != ".py":
        return case + kernels.describe_error(error, file.read_text(encoding="utf-8")) + others
    lines = [FLOOD if getattr(error, "errno", 0) == errno.EFBIG or "File too large" in str(error) else
             f"  {type(error).__name__}: {(str(error).splitlines() or [''])[0][:90]}"]
    if own:
        lines.append(f"  line {own[-1].lineno:<6} {own[-1].line}")
    return [*case, *lines, *others]


def _line_of_a_law(error: BaseException) -> str:
    """Return "ranks.py, line 7" if a line of a law raised the error, else ""."""
    last = Path(_frames(error)[-1].filename) if error.__traceback__ else Path()
    return f"{last.name}, line {_frames(error)[-1].lineno}" if last.parent.name == "laws" else ""


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).rstrip()


def _frames(error: BaseException | None) -> list[traceback.FrameSummary]:
    """Return the frames of the error, then those of its causes, innermost last."""
    frames: list[traceback.FrameSummary] = []
    while error is not None:
        frames += traceback.extract_tb(error.__traceback__)
        error = error.__cause__ or error.__context__
    return frames


def alarm_at(when: float, file: TextIO) -> None:
    """Make the main thread write its traceback to `file` at time `when` or at the limit of processor time.

    The traceback is also written during a call into C. The watchdog thread of dump_traceback_later would read
    frames while the main thread changes them.
    """
    for number in (signal.SIGALRM, signal.SIGXCPU):
        faulthandler.register(number, file=file, all_threads=False)
    signal.setitimer(signal.ITIMER_REAL, max(0.1, when - time.time()))


def main(arguments: list[str]) -> None:
    home, id, file, result, seed = arguments[:5]
    laws.NOTE = Path(f"{result}.case")
    threading.excepthook = lambda e: print("a thread of your answer raised an error:", *(
        t.strip() for t in error_lines(e.exc_value, Path(file))), sep="\n  ", flush=True)
    with open(f"{result}.where", "w", encoding="utf-8") as where:
        if len(arguments) > 5:                     # a deadline, at which the line is reported
            alarm_at(float(arguments[5]), where)
        verdict = judged(course.find(id, Path(home)), Path(file), int(seed))
        signal.setitimer(signal.ITIMER_REAL, 0)
    verdict.write(Path(result))


if __name__ == "__main__":
    main(sys.argv[1:])
