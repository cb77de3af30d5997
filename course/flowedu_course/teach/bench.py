"""Judge of answers that run in other processes.

A cell (worker.py) imports the library once and forks a child for each answer. A separate process judges the
answer, so that it cannot harm the verdicts on later answers.

    with Bench(folder) as bench:
        verdict = bench.judged(hole, file, seed)          as limits.judged
"""
from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import faulthandler
import json
import marshal
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from flowedu.errors import FlowError
from flowedu_course import course, kernels, limits
from flowedu_course.handout import untouched
from flowedu_course.judge import judged
from flowedu_course.laws import Verdict
from flowedu_course.teach.cell import closed_package, module_codes
from flowedu_course.teach.codec import Broken, Ended
from flowedu_course.teach.isolation import limit_memory, packages, sites
from flowedu_course.teach.proxy import Far
from flowedu_course.teach.together import believed, judge_together

# A right answer to 5.3 takes up to 25 seconds on a laptop. MEMORY excludes the memory that the library maps.
SECONDS, MEMORY = 90.0, 1 << 30
PATIENCE = 3                                       # wall-clock seconds per CPU second, for a busy machine
# wall-clock seconds for the compilers and the laws of a kernel
KERNEL_SECONDS = 540
TICK = 0.1                                         # seconds
_CHILD_SUBREAPER = 36                              # from <sys/prctl.h>



def _adopting() -> set[int]:
    """Make this process adopt the orphans of its descendants (Linux). Return its current children."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
    return _children()


def _children() -> set[int]:
    return {int(pid) for f in Path("/proc/self/task").glob("*/children")
            for pid in f.read_text(encoding="utf-8").split()}


class Bench:
    """A cell and its judge. The cell's tree is made in `folder`, unless `folder` has one."""

    def __init__(self, folder: Path, home: Path = course.HOME, seconds: float = SECONDS, memory: int = MEMORY,
                 landlock: bool = True):
        self.home, self.tree, self.seconds, self.memory, self.landlock = (home, folder, seconds, memory,
                                                                          landlock)
        self.holes = course.holes(home)
        if not (folder / "flowedu").exists():
            closed_package(folder, self.holes)
        self.read = [str(p) for p in (*packages(), folder)]
        self._without_laws = [str(p) for d in ("flowedu", "flowedu_course") for p in (folder / d).iterdir()
                              if p.name != "laws"]
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def start(self) -> None:
        """Start the cell if it does not run. Raises FlowError if the cell does not become ready."""
        if self.process is not None and self.process.poll() is None:
            return
        ours, theirs = socket.socketpair()
        env = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "FLOWEDU_NUM_THREADS": "1",
               "PYTHONUNBUFFERED": "1",
               "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin", "HOME": "/nowhere", "LANG": "C.UTF-8",
               "PYTHONPATH": os.pathsep.join([str(self.tree), *map(str, sites())])}
        self.said = tempfile.TemporaryFile()               # noqa: SIM115
        # Without -m, which would import flowedu first.
        cell = str(self.tree / "flowedu_course/teach/worker.py")
        self.process = subprocess.Popen([sys.executable, "-S", "-P", cell], stdin=theirs,
                                        stdout=self.said, stderr=self.said, env=env, cwd=self.tree,
                                        start_new_session=True)
        theirs.close()
        self.control = ours
        codes = module_codes(self.holes, self.tree)
        first = marshal.dumps({"codes": codes, "modules": [
            "flowedu", "flowedu.swap", "flowedu_course.teach.protocol", "flowedu_course.teach.proxy",
            "flowedu_course.teach.isolation", *codes]})
        with contextlib.suppress(OSError):
            ours.sendall(struct.pack("<Q", len(first)) + first)
        ours.settimeout(60)
        try:
            ready = ours.recv(5)
        except OSError:
            ready = b""
        if ready != b"ready":
            self.said.seek(0)
            said = self.said.read().decode(errors="replace")[-2000:]
            self.stop()
            raise FlowError("the worker process for answers did not start",
                            got=said.strip().splitlines()[-1:] and said)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.control.close()
            self.said.close()
            self.process = None

    def judged(self, hole, file: Path, seed: int = 0, cases: int = 0) -> Verdict:
        """Return the verdict on an answer, also if the answer crashes or hangs."""
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return Verdict("wrong", lines=[f"  {file.name} cannot be read: {type(error).__name__}"])
        if len(text) > 1 << 20:
            return Verdict("wrong", lines=[f"  {file.name} has {len(text) >> 20} MB"])
        if hole.is_compiled:
            if untouched(hole, text):
                return Verdict("open")
            if lacks := kernels.missing(hole):         # checked here, since an answer cannot report it
                return Verdict("unjudged", lines=[f"  {lacks}"])
            return self._kernel(hole, file, seed)
        verdict = self._judged(hole, file, text, seed, cases, hole.together)
        if self.stalled:                           # the machine stalled, so the time limit proves nothing
            verdict = self._judged(hole, file, text, seed, cases, hole.together)
        return verdict

    def _kernel(self, hole, file: Path, seed: int) -> Verdict:
        """Judge a kernel in a sandbox that has the compilers."""
        others = _adopting()
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "flowedu_course.teach.seal", hole.id, str(file), folder,
                       str(seed)]
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL, start_new_session=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(KERNEL_SECONDS)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            # Also kill processes that left the group. Their children become children of this process.
            while left := _children() - others:
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
            try:
                return believed(json.loads(Path(folder, "verdict.json").read_text(encoding="utf-8")), hole,
                                together=False)
            except (OSError, ValueError):
                return Verdict("wrong", lines=["  no verdict: the answer took too long, or it ended the "
                                               "judge's process"])

    def _judged(self, hole, file: Path, text: str, seed: int, cases: int, together: bool) -> Verdict:
        began = time.perf_counter()
        self.start()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as where:
            link, pid = self._child(hole, text, str(file), out, where, seed, together)
            try:
                verdict = self._verdict(hole, file, seed, cases, link, pid, together)
            finally:
                code = self._end(pid)
                link.close()
            output = _read(out)
            if verdict is None:
                late = self.late or code == -signal.SIGXCPU
                stack = _read(where).rpartition("Stack (")[2] if late else ""
                self.stalled = self.stalled and str(file) not in stack       # else the answer waits
                if self.stalled:
                    print("the answer's process:", stack, file=sys.stderr)
                lines = self._find_reason(None if late else code, stack, file, output)
                verdict = Verdict("wrong", lines=lines)
        verdict.seconds, verdict.output = round(time.perf_counter() - began, 3), limits.first_lines(output)
        return verdict

    def _child(self, hole, text: str, name: str, out, where, seed: int = 0,
               together: bool = False) -> tuple[socket.socket, int]:
        ours, theirs = socket.socketpair()
        request = {"hole": {**dataclasses.asdict(hole), "folder": ""}, "functions": hole.functions,
                   "seed": seed, "together": together, "folder": str(self.tree / "flowedu" / "chapters"),
                   "text": text, "name": name, "read": self.read, "memory": self.memory,
                   "seconds": self.seconds, "landlock": self.landlock}
        # The answer must not read the laws unless they run in the cell.
        if not together:
            request["read"] = [p for p in self.read if p != str(self.tree)] + self._without_laws
        data = json.dumps(request).encode()
        socket.send_fds(self.control, [struct.pack("<I", len(data))], [theirs.fileno(), out.fileno(),
                                                                       where.fileno()])
        self.control.sendall(data)
        theirs.close()
        pid = struct.unpack("<i", self.control.recv(4, socket.MSG_WAITALL))[0]
        return ours, pid

    def _end(self, pid: int) -> int:
        """Kill the answer's process and all that it started. Return its exit status."""
        for f in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                f(pid, signal.SIGKILL)
        data = json.dumps({"wait": pid}).encode()
        self.control.sendall(struct.pack("<I", len(data)) + data)
        return struct.unpack("<i", self.control.recv(4, socket.MSG_WAITALL))[0]

    def _verdict(self, hole, file: Path, seed: int, cases: int, link: socket.socket, other: int,
                 together: bool) -> Verdict | None:
        """Return the verdict of a judge process, or None if time ran out or the answer's process ended."""
        ours, theirs = os.pipe()
        self.late = self.stalled = False
        pid = os.fork()
        if not pid:
            try:
                os.close(ours)
                faulthandler.register(signal.SIGALRM, file=2)
                signal.setitimer(signal.ITIMER_REAL, 0.9 * PATIENCE * self.seconds)
                verdict = _judge(hole, file, seed, cases, link, other, together)
                with os.fdopen(theirs, "wb") as to:
                    to.write(json.dumps(verdict and dataclasses.asdict(verdict)).encode())
            finally:
                os._exit(0)
        os.close(theirs)
        data = bytearray()
        with os.fdopen(ours, "rb", 0) as of:
            ticks = 0
            while self._has_time(pid, other, ticks):
                if select.select([of], [], [], TICK)[0]:
                    part = of.read(1 << 16)
                    data += part
                    if not part:
                        break
                ticks += 1
            else:
                self.late = True
                self.stalled = self._measure_seconds(pid, other) < self.seconds / 2
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        try:
            said = json.loads(data)
        except ValueError:
            return None
        return said and Verdict(**said)

    def _has_time(self, judge: int, other: int, ticks: int) -> bool:
        """Return True while the processes have time left.

        Wall-clock time is counted in waits of TICK seconds, so a suspended machine costs an answer no time.
        """
        return self._measure_seconds(judge, other) < self.seconds and ticks * TICK < PATIENCE * self.seconds

    def _measure_seconds(self, *processes: int) -> float:
        """Return the seconds of processor time of the processes that still exist."""
        spent = 0.0
        for pid in processes:
            with contextlib.suppress(OSError):
                spent += time.clock_gettime(_clock(pid))
        return spent

    def _find_reason(self, code: int | None, where: str, file: Path, output: str) -> list[str]:
        """Return the runner's lines about a missing verdict."""
        if code == -signal.SIGKILL and "MemoryError" not in output:      # _end killed it
            return ["  the answer's process no longer replies: it closed its files, or it was killed"]
        return limits.reason(code, where, file, output, self.seconds, self.memory)


def _judge(hole, file: Path, seed: int, cases: int, link: socket.socket, other: int,
           together: bool) -> Verdict | None:
    """Judge in the judge's process. Return None if the answer's process ended.

    Laws that measure CPU time include the time of the answer's process.
    """
    own = time.process_time
    time.process_time = lambda: own() + time.clock_gettime(_clock(other))
    limit_memory(8 << 30)
    if len(hello := link.recv(4, socket.MSG_WAITALL)) < 4:
        return None
    # The library's answer is still in memory, where it could be found.
    if not together and struct.unpack("<I", hello)[0]:
        return None
    far = Far(link, file)
    try:
        if together:
            return judge_together(hole, file.read_text(encoding="utf-8"), link, seed)
        verdict = judged(hole, file, seed, cases, far.load)
        if far.gone:
            raise far.gone
    except Ended:
        return None
    except Broken as error:
        return Verdict("wrong", lines=[f"  the result cannot be read: {error}"[:98]])
    return verdict


def _clock(pid: int) -> int:
    """Return the CPU-time clock of another process, as clock_getcpuclockid does."""
    return (~pid << 3) | 2


def _read(file) -> str:
    file.seek(0)
    return file.read(2 << 20).decode(errors="replace")

