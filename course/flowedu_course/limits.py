"""Separate processes for answers, with limits on time, memory, and output."""
from __future__ import annotations

import functools
import math
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from flowedu_course import judge, kernels
from flowedu_course.judge import FLOOD, PRINTED
from flowedu_course.laws import Verdict

# Seconds of processor time: a right answer needs up to 4 on a laptop. OpenBLAS and NumPy alone map half a
# GiB.
SECONDS, MEMORY = 20.0, 2 << 30
# Wall-clock seconds per second of processor time, because the machine may be busy.
PATIENCE = 4
DETAILS = 200                                      # lines of details, from the end
SIMULATED = 64 << 30                               # address space that the simulator reserves for its checks


def limit_process(seconds: float, memory: int = MEMORY) -> None:
    """Limit the child process before it starts.

    After `seconds` it gets SIGXCPU, and two seconds later SIGKILL.
    """
    for what, most, grace in ((resource.RLIMIT_AS, memory, 0), (resource.RLIMIT_FSIZE, PRINTED, 0),
                              (resource.RLIMIT_CORE, 0, 0), (resource.RLIMIT_CPU, math.ceil(seconds), 2)):
        already = resource.getrlimit(what)[1]
        hard = most + grace if already == resource.RLIM_INFINITY else min(most + grace, already)
        resource.setrlimit(what, (min(most, hard), hard))


def judged(hole, file: Path, home: Path, seed: int = 0, seconds: float = 0.0,
           speed: bool = False) -> Verdict:
    """Return the verdict of judge.py, with the answer's output, or a verdict on how its process ended.

    seconds: limit of processor time; 0 means SECONDS, or for kernels 30 after up to 30 to compile. The limit
    on the clock is PATIENCE times as long. speed: True if a kernel's stars for time count, as with
    GRADE_SPEED=1. DEBUG=1 runs without limits, for breakpoint().
    """
    if os.environ.get("DEBUG") and not hole.is_compiled:
        return judge.judged(hole, file, seed)
    verdict, output, _ = _judged(hole, file, home, seed, seconds, speed)
    verdict.output = first_lines(output)
    return verdict


def details(runner, hole) -> list[str]:
    """Judge an answer again.

    Return the traceback, the output, and each line of the judge, for key d of watch.
    """
    file = runner.file(hole)
    if not file.exists():
        return [f"{hole.short}: not begun   {file}"]
    verdict, output, ended = _judged(hole, file, runner.home, runner.seed)
    heading = f"{hole.short}: {verdict.state}   {file}"
    if hole.is_compiled:                      # it has no Python traceback
        return [heading, *first_lines(output).splitlines(), *verdict.lines]
    lines = output.splitlines()
    if ended:
        lines += [heading, *verdict.trace.splitlines(), verdict.title]
    lines += verdict.lines
    if ended and not verdict.trace and verdict.state == "wrong":
        lines.append("  no exception was raised, but the result is wrong")
    left = len(lines) - DETAILS
    return [*([f"... {left} more lines"] if left > 0 else []), *lines[-DETAILS:],
            f"  to debug it: insert breakpoint(), then run `DEBUG=1 make check EX={hole.id}`"]


def _judged(hole, file: Path, home: Path, seed: int, seconds: float = 0.0,
            speed: bool = False) -> tuple[Verdict, str, bool]:
    """Return (verdict, output of the answer, True if its process ended with a verdict)."""
    seconds = seconds or (kernels.SECONDS if hole.is_compiled else SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        result, said = Path(folder, "verdict.json"), Path(folder, "output.txt")
        env = {**os.environ, "OMP_NUM_THREADS": "1", "FLOWEDU_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        env.pop("FLOWEDU_HOLES", None)
        if speed:
            env["GRADE_SPEED"] = "1"
        if hole.is_compiled:
            env |= kernels.environment(hole)
            verdict = _compiled(hole, file, home, Path(folder), env)
            if verdict.lines:
                return verdict, "", True
        what = (home, hole.id, file, result, seed, time.time() + PATIENCE * seconds - 0.5)
        code = _child("flowedu_course.judge", what, said, env, seconds,
                      functools.partial(limit_process, seconds, SIMULATED if hole.language == "cuda" else MEMORY))
        output = said.read_text(errors="replace", encoding="utf-8")
        try:
            return Verdict.read(result), output, True
        except (OSError, ValueError, TypeError):
            at_line, at_case = _text(Path(f"{result}.where")), _text(result.with_suffix(".json.case"))
            lines = reason(code, at_line, file, output, seconds, at_case=at_case)
            return Verdict("wrong", seconds=seconds, lines=lines), output, False


def _child(module: str, what: tuple, said: Path, env: dict[str, str], seconds: float,
           limits: Any) -> int | None:
    """Run a module in a separate process. Return its exit status, or None if time ran out."""
    def begin() -> None:
        if limits is not None:
            limits()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

    with said.open("wb") as out:
        child = None
        try:
            # Ctrl-C waits until the child exists
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            child = subprocess.Popen([sys.executable, "-m", module, *map(str, what)],
                                     stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=out, env=env, start_new_session=True, preexec_fn=begin)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            return child.wait(PATIENCE * seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if child is not None:
                _end(child)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def _compiled(hole, file: Path, home: Path, folder: Path, env: dict[str, str]) -> Verdict:
    """Compile a kernel without an answer's limits, which are too low for compilers. No lines mean success."""
    result, said = folder / "compiled.json", folder / "compiled.txt"
    code = _child("flowedu_course.kernels", (home, hole.id, file, result), said, env, kernels.SECONDS, None)
    try:
        return Verdict.read(result)
    except (OSError, ValueError, TypeError):
        last = [f"  {t[:96]}" for t in said.read_text(errors="replace", encoding="utf-8").splitlines()[-1:]]
        why = f"  it did not compile within {kernels.SECONDS:g} seconds"
        return Verdict("wrong", lines=[why if code is None else "  the compiler was stopped before it "
                                       "finished", *last])


def _end(child: subprocess.Popen) -> None:
    """Kill a process and the processes that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except (ProcessLookupError, PermissionError):
            break
        try:
            child.wait(0.5)
        except subprocess.TimeoutExpired:
            continue
    child.wait()


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


def reason(code: int | None, where: str, file: Path, output: str, seconds: float, memory: int = MEMORY,
           at_case: str = "") -> list[str]:
    """Return the lines that explain a missing verdict.

    code: exit status, None if killed; where: the last traceback; at_case: a kernel's last case.
    """
    case = [f"  case            {at_case[:80]}"] if at_case else []
    # The time limit was reached, whatever ended the process.
    if code in (None, -signal.SIGXCPU) or where:
        at = re.search(rf'File "{re.escape(str(file))}", line (\d+)', where)
        source = file.read_text(encoding="utf-8").splitlines()
        line = [f"  line {at[1]:<6} {source[int(at[1]) - 1].strip()}"] if at else []
        return [f"  no result after {seconds:g} seconds: an endless loop, or too much work", *case, *line]
    if code == -signal.SIGXFSZ or "File too large" in output:
        return [FLOOD]
    if "No space left on device" in output:
        return ["  the disk is full: the verdict could not be saved"]
    if "MemoryError" in output or code == -signal.SIGKILL:
        return [f"  more than {memory >> 30} GiB of memory were needed"]
    if code is not None and code < 0:
        return [f"  the process was ended by {signal.Signals(-code).name}",
                *case, *(["  it read or wrote memory outside its arrays"] if case else [])]
    last = [f"  {t[:96]}" for t in output.splitlines()[-1:]]
    return [f"  the process exited with status {code}: os._exit, or a crash", *last]


def first_lines(output: str) -> str:
    """Return the first 20 lines of the answer's output."""
    lines = output.splitlines()
    return "\n".join(lines[:20] + ([f"... {len(lines) - 20} more lines"] if len(lines) > 20 else []))
