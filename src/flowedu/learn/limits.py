"""An answer runs in a process of its own, with a limit of time, memory and output; it is ended with all it started."""
from __future__ import annotations

import functools
import json
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

from flowedu.learn import judge, kernels
from flowedu.learn.judge import FLOOD, PRINTED

CPU = 120                                          # seconds that a process may compute
SECONDS, MEMORY = 10.0, 2 << 30                    # OpenBLAS and NumPy alone map half a GiB
SIMULATED = 64 << 30                               # what the simulator reserves for its checks, and never fills


def _limits(memory: int = MEMORY) -> None:
    """In the child, before it starts."""
    for what, most in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_FSIZE, PRINTED), (resource.RLIMIT_CORE, 0),
                       (resource.RLIMIT_CPU, CPU)):                          # CPU: should nobody be left to end it
        already = resource.getrlimit(what)[1]
        limit = most if already == resource.RLIM_INFINITY else min(most, already)
        resource.setrlimit(what, (limit, limit))


def judged(hole, file: Path, home: Path, seed: int = 0, seconds: float = 0.0,
           speed: bool = False) -> dict[str, Any]:
    """The verdict of judge.py, or what became of the process. What the answer prints is in "output".

    seconds: 0 stands for SECONDS, of kernels for 30, and as many before to compile them. speed: whether a kernel's stars
    for time count (GRADE_SPEED=1: they do). DEBUG=1: in the foreground and without limits, so that breakpoint() works."""
    if os.environ.get("DEBUG") and hole.kind != "kernel":
        return {**judge.judged(hole, file, seed), "output": ""}
    seconds = seconds or (kernels.SECONDS if hole.kind == "kernel" else SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        result, said = Path(folder, "verdict.json"), Path(folder, "output.txt")
        env = {**os.environ, "OMP_NUM_THREADS": "1", "FLOWEDU_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        env.pop("FLOWEDU_HOLES", None)
        if speed:
            env["GRADE_SPEED"] = "1"
        if hole.kind == "kernel":
            env |= kernels.environment(hole)
            verdict = _compiled(hole, file, home, Path(folder), env)
            if verdict["lines"]:
                return {"stars": 0, "law": "", "extra": {}, "seconds": 0.0, "output": "", **verdict}
        what = (home, hole.id, file, result, seed, time.time() + seconds - 0.5)
        code = _child("flowedu.learn.judge", what, said, env, seconds,
                      functools.partial(_limits, SIMULATED if hole.language == "cuda" else MEMORY))
        output = said.read_text(errors="replace", encoding="utf-8")
        try:
            verdict = json.loads(result.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            verdict = {"state": "wrong", "stars": 0, "law": "", "extra": {}, "seconds": seconds,
                       "lines": reason(code, _text(Path(f"{result}.where")), file, output, seconds,
                                       at_case=_text(result.with_suffix(".json.case")))}
        return {**verdict, "output": own(output)}


def _child(module: str, what: tuple, said: Path, env: dict[str, str], seconds: float, limits: Any) -> int | None:
    """The exit status of a module, run in a process of its own; None: it had not ended."""
    def begin() -> None:
        if limits is not None:
            limits()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])

    with said.open("wb") as out:
        child = None
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])        # Ctrl-C waits until there is a child to end
            child = subprocess.Popen([sys.executable, "-m", module, *map(str, what)], stdin=subprocess.DEVNULL, stdout=out,
                                     stderr=out, env=env, start_new_session=True, preexec_fn=begin)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
            return child.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if child is not None:
                _end(child)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])


def _compiled(hole, file: Path, home: Path, folder: Path, env: dict[str, str]) -> dict[str, Any]:
    """What became of the compilers, which write more, and want more memory, than an answer may: no lines, where all went
    well."""
    result, said = folder / "compiled.json", folder / "compiled.txt"
    code = _child("flowedu.learn.kernels", (home, hole.id, file, result), said, env, kernels.SECONDS, None)
    try:
        return json.loads(result.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        last = [f"  {t[:96]}" for t in said.read_text(errors="replace", encoding="utf-8").splitlines()[-1:]]
        return {"state": "wrong", "lines": [f"  it was not compiled after {kernels.SECONDS:g} seconds" if code is None else
                                            "  the compiler was ended before it was done", *last]}


def _end(child: subprocess.Popen) -> None:
    """The process, and those it started."""
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
    """Why there is no verdict. code: of the process, None: it was ended; where: the traceback at that time; at_case: the
    case that a kernel was at."""
    case = [f"  case            {at_case[:80]}"] if at_case else []
    if code is None or where:                      # whatever ended it then: its time was up
        at = re.search(rf'File "{re.escape(str(file))}", line (\d+)', where)
        source = file.read_text(encoding="utf-8").splitlines()
        line = [f"  line {at[1]:<6} {source[int(at[1]) - 1].strip()}"] if at else []
        return [f"  no answer after {seconds:g} seconds: an endless loop, or far too much work", *case, *line]
    if code == -signal.SIGXFSZ or "File too large" in output:
        return [FLOOD]
    if "No space left on device" in output:
        return ["  the disk is full: no verdict could be written"]
    if "MemoryError" in output or code == -signal.SIGKILL:
        return [f"  more than {memory >> 30} GiB of memory were asked for"]
    if code is not None and code < 0:
        return [f"  the process was ended by {signal.Signals(-code).name}",
                *case, *(["  it read or wrote memory that is not its own"] if case else [])]
    last = [f"  {t[:96]}" for t in output.splitlines()[-1:]]
    return [f"  the process ended by itself with code {code}: os._exit, or a crash", *last]


def own(output: str) -> str:
    """What the answer printed, not too much of it."""
    lines = output.splitlines()
    return "\n".join(lines[:20] + ([f"... {len(lines) - 20} lines more"] if len(lines) > 20 else []))
