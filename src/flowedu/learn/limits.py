"""An answer runs in a process of its own, with a limit of time, memory and output; it is ended with all it started."""
from __future__ import annotations

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

SECONDS, MEMORY, OUTPUT = 10.0, 2 << 30, 1 << 20   # OpenBLAS and NumPy alone map half a GiB


def _limits() -> None:
    """In the child, before it starts."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT, OUTPUT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def judged(hole, file: Path, home: Path, seed: int = 0, seconds: float = SECONDS) -> dict[str, Any]:
    """The verdict of judge.py, or what became of the process. What the answer prints is in "output"."""
    with tempfile.TemporaryDirectory() as folder:
        result, said = Path(folder, "verdict.json"), Path(folder, "output.txt")
        env = {**os.environ, "OMP_NUM_THREADS": "1", "FLOWEDU_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
        env.pop("FLOWEDU_HOLES", None)
        with said.open("wb") as out:
            what = (home, hole.id, file, result, seed, time.time() + seconds - 0.5)
            child = subprocess.Popen([sys.executable, "-m", "flowedu.learn.judge", *map(str, what)],
                                     stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, start_new_session=True,
                                     preexec_fn=_limits)
            try:
                code = child.wait(seconds)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                _end(child)
        output = said.read_text(errors="replace")
        try:
            verdict = json.loads(result.read_text())
        except (OSError, ValueError):
            verdict = {"state": "wrong", "stars": 0, "law": "", "extra": {}, "seconds": seconds,
                       "lines": reason(code, _text(Path(f"{result}.where")), file, output, seconds)}
        return {**verdict, "output": own(output)}


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
    return file.read_text() if file.exists() else ""


def reason(code: int | None, where: str, file: Path, output: str, seconds: float, memory: int = MEMORY) -> list[str]:
    """Why there is no verdict. code: of the process, None: it was ended; where: the traceback at that time."""
    if code is None:
        at = re.search(rf'File "{re.escape(str(file))}", line (\d+)', where)
        source = file.read_text().splitlines()
        line = [f"  line {at[1]:<6} {source[int(at[1]) - 1].strip()}"] if at else []
        return [f"  no answer after {seconds:g} seconds: an endless loop, or far too much work", *line]
    if code == -signal.SIGXFSZ or "File too large" in output:
        return [f"  more than {OUTPUT >> 20} MB were printed: the answer was ended"]
    if "MemoryError" in output or code == -signal.SIGKILL:
        return [f"  more than {memory >> 30} GiB of memory were asked for"]
    if code is not None and code < 0:
        return [f"  the process was ended by {signal.Signals(-code).name}"]
    last = [f"  {t[:96]}" for t in output.splitlines()[-1:]]
    return [f"  the process ended by itself with code {code}: os._exit, or a crash", *last]


def own(output: str) -> str:
    """What the answer printed, not too much of it."""
    lines = output.splitlines()
    return "\n".join(lines[:20] + ([f"... {len(lines) - 20} lines more"] if len(lines) > 20 else []))
