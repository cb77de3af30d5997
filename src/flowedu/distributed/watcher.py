"""The launcher's supervision of mpiexec: it forwards signals, and reports the rank ended by a signal."""
from __future__ import annotations

import contextlib
import ctypes
import functools
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from flowedu.distributed.deaths import WATCHED, Deaths

MARK = re.compile(rb"\x1eflowedu (start|end) (\d+) (\d+) ([^\n]*)\n")
DEATH = re.compile(rb"PID (\d+) RUNNING AT ([^\n]*)\n=\s+EXIT CODE: (\d+)")
CRASH = re.compile(rb"Fatal Python error: (Seg|Abo|Bus|Ill|Flo)")              # by faulthandler
CRASHES = {b"Seg": "SIGSEGV", b"Abo": "SIGABRT", b"Bus": "SIGBUS", b"Ill": "SIGILL", b"Flo": "SIGFPE"}
FATAL = ("SIGKILL", "SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGFPE", "SIGTERM")
_PR_SET_PDEATHSIG = 1
GRACE = 3.0                                        # seconds


class Filter(threading.Thread):
    """A thread that copies mpiexec's output, removes the workers' marks, and stores the end of ranks."""

    def __init__(self, source, target, marks: dict, deaths: Deaths,
                 start: Callable[[str], bool] | None = None):
        super().__init__(daemon=True)
        self.source, self.target = source, target
        self.marks, self.deaths = marks, deaths
        self.tail, self.start_nodes = b"", start

    def run(self) -> None:
        carry = b""
        while self.start_nodes is not None and (line := self.source.readline()):
            if self.start_nodes(line.decode().rstrip()):
                self.start_nodes = None
        while chunk := os.read(self.source.fileno(), 1 << 16):
            text = carry + chunk
            for kind, rank, pid, host in MARK.findall(text):
                self.marks.setdefault(kind, {})[int(pid), host] = int(rank)
                if kind == b"start":
                    self.deaths.expect(int(pid), host)
            text = MARK.sub(b"", text)
            cut = text.rfind(b"\x1e")
            text, carry = (text, b"") if cut < 0 else (text[:cut], text[cut:])
            self._pass(text)
        self._pass(carry)

    def _pass(self, text: bytes) -> None:
        self.tail = (self.tail + text)[-8192:]
        self.target.write(text)
        self.target.flush()


def apart(cmd: Sequence[str], env: Mapping[str, str], **options) -> subprocess.Popen:
    """Start a part of MPI in its own session.

    If hydra's proxy ends before it has started its ranks, it sends a signal to process 0, which means its own
    process group. This must not be the group of the caller, which may include a shell and make.
    """
    return subprocess.Popen(cmd, env=dict(env), start_new_session=True, **options)


@contextlib.contextmanager
def on_signals(act: Callable[[int], None]) -> Iterator[None]:
    """Call act(number) for Ctrl-C and SIGTERM inside the block.

    The terminal sends Ctrl-C only to its own session, which does not include the started processes.
    """
    old = {n: signal.signal(n, lambda number, frame: act(number)) for n in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _with_parent() -> None:
    """End the child process when the launcher ends, even if the launcher is killed.

    Called in the child before it starts.
    """
    with contextlib.suppress(AttributeError, OSError):       # Linux only
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def watch(cmd: Sequence[str], env: Mapping[str, str], start: Callable[[str,
                                                                       Callable], bool] | None = None) -> int:
    """Run `cmd`, mpiexec and its arguments, to the end, and return the exit code.

    `start(line, stop)` gets the lines by which mpiexec requests its parts on machines, until it returns True;
    `stop()` ends mpiexec.
    """
    deaths = Deaths()
    child = apart(cmd, {**env, WATCHED: deaths.address}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                  bufsize=0, preexec_fn=_with_parent)
    marks: dict[bytes, dict] = {b"start": {}, b"end": {}}
    begin = None if start is None else functools.partial(_begin, start, lambda: _end(child))
    filters = [Filter(child.stdout, sys.stdout.buffer, marks, deaths, begin),
               Filter(child.stderr, sys.stderr.buffer, marks, deaths)]
    with on_signals(child.send_signal):
        for f in filters:
            f.start()
        code = child.wait()
        for f in filters:
            f.join()
    ended = {pid for pid, _ in marks[b"end"]}
    fallen = [pid for pid in deaths.order() if pid not in ended]
    for f in filters:
        for pid, host, status in DEATH.findall(f.tail):
            named, first = int(pid), fallen[0] if fallen and int(status) == signal.SIGKILL else int(pid)
            crash = find_crash(filters[1].tail) if first != named else 0
            rank, sure = _rank(marks[b"start"], first, host), bool(crash) or first == named
            tell(rank, first, host.decode(), crash or int(status), sure)
    lost = sorted(set(marks[b"start"].values()) - set(marks[b"end"].values()))
    if not code and lost:
        who = [f"rank {r}" for (pid, host), r in marks[b"start"].items()
               if pid in fallen[:1] and host == deaths.host] or ["one"]
        print(f"launch: ranks {', '.join(map(str, lost))} did not come to their end: {who[0]} left without "
              f"a word (os._exit?)", file=sys.stderr)
        return 1
    return code if code >= 0 else 128 - code


def _begin(start: Callable[[str, Callable], bool], stop: Callable[[], None], line: str) -> bool:
    try:
        return start(line, stop)
    # In a thread the error would be lost, and mpiexec would wait.
    except Exception as error:
        print(f"launch: cannot start all machines: {error}", file=sys.stderr, flush=True)
        stop()
        return True


def _end(child: subprocess.Popen) -> None:
    """End mpiexec. While it waits for a machine it ignores SIGTERM."""
    child.terminate()
    by_force = threading.Timer(GRACE, child.kill)
    by_force.daemon = True
    by_force.start()


def find_crash(text: bytes) -> int:
    """Return the signal that ended a rank, as Python's faulthandler reported it (worker.py), or 0."""
    found = CRASH.search(text)
    return getattr(signal, CRASHES[found[1]]).value if found else 0


def _rank(started: Mapping[tuple, int], pid: int, host: bytes) -> int | None:
    """Return the rank of a process. mpiexec may use another name of a machine than the machine itself."""
    same = {rank for (p, _), rank in started.items() if p == pid}
    return started.get((pid, host), same.pop() if len(same) == 1 else None)


def tell(rank: int | None, pid: int, host: str, status: int, sure: bool = True) -> None:
    """Report the end of a process.

    If not `sure`, mpiexec reported a process that it had ended itself, and `status` is the status of that
    process. The process `pid` ended first: it may have been killed, or it may have called os._exit.
    """
    who = f"rank {rank}" if rank is not None else "a rank"
    names = {getattr(signal, n).value: n for n in FATAL}
    status = status - 128 if status - 128 in names else status         # with a core dump
    if not sure:
        why = "ended first, without a word (os._exit, or killed?)"
    elif status in names:
        why = f"was killed by signal {status} ({names[status]})" + (
            ", perhaps for lack of memory" if status == signal.SIGKILL else "")
    else:
        why = f"ended with code {status}"
    print(f"launch: {who} (process {pid} on {host}) {why}; all ranks have ended", file=sys.stderr, flush=True)


def sweep(since: float = 0, until: float = math.inf, folder: str = "/dev/shm", tries: int = 5) -> None:
    """Remove the files of MPICH's shared memory that killed ranks have left.

    These are files of this user, created between `since` and `until`, that no process maps. Ranks that end
    normally remove their files. The function tries again for a moment if files are still mapped.
    """
    for _ in range(tries):
        made = []
        for f in Path(folder).glob("mpich_shm_*"):
            with contextlib.suppress(OSError):               # removed by another process
                about = f.stat()
                if since <= about.st_ctime <= until and about.st_uid == os.getuid():
                    made.append(f)
        left = _unmapped(made) if made else []
        for f in left:
            f.unlink(missing_ok=True)
        if len(left) == len(made):
            return
        time.sleep(0.1)


def _unmapped(files: list[Path]) -> list[Path]:
    """Return the files that no process uses, as far as this user can see."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            text = maps.read_text(errors="replace", encoding="utf-8")
        except OSError:                            # the process has ended, or belongs to another user
            continue
        files = [f for f in files if f"{f}\n" not in text]
    return files
