"""Judges answers that run elsewhere: one cell (worker.py) with the library imported once, a child of it for each answer,
and a judge in a process of its own, so that neither can harm what comes next.

    with Bench(folder) as bench:
        verdict = bench.judged(hole, file, seed)          as limits.judged
"""
from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import marshal
import os
import random
import resource
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from flowedu.errors import FlowError
from flowedu.learn import course, kernels, limits, source
from flowedu.learn.handout import untouched
from flowedu.learn.judge import judged
from flowedu.learn.teach import stubs, wrong
from flowedu.learn.teach.isolation import packages, sites
from flowedu.learn.teach.protocol import Broken, receive, send
from flowedu.learn.teach.proxy import Far

SECONDS, MEMORY = 30.0, 1 << 30                    # for each hole; memory is what comes on top of the library
PATIENCE = 6                                       # seconds on the clock for each of work: the machine may be busy
# Of learn/ in the cell; of this folder.
LEARN = {"__init__.py", "laws", *(f"{n}.py" for n in
                                  "swap course judge source handout install kernels progress language blocks".split())}
_CHILD_SUBREAPER = 36                              # of <sys/prctl.h>
THERE = ("__init__.py", "worker.py", "proxy.py", "protocol.py", "isolation.py")


def _adopting() -> set[int]:
    """From here on the orphans of what this process starts are its own children (Linux); those it has now."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
    return _children()


def _children() -> set[int]:
    return {int(pid) for f in Path("/proc/self/task").glob("*/children") for pid in f.read_text(encoding="utf-8").split()}


def closed_package(folder: Path, holes: Iterable) -> Path:
    """A folder with the package `flowedu` in it: stubs for all holes, no laws, no judge; what is compiled is linked."""
    package = source.file_of("flowedu").parent
    to, holes = folder / "flowedu", list(holes)
    kept = LEARN | {source.file_of(h.module).name for h in holes if h.module.startswith("flowedu.learn.")}
    shutil.copytree(package, to, ignore=lambda d, names: _left_out(Path(d), names, package, kept), copy_function=_linked)
    for name in THERE:
        (to / "learn" / "teach").mkdir(exist_ok=True)
        shutil.copy(package / "learn" / "teach" / name, to / "learn" / "teach")
    for file, text in stubs.blank({}, holes).items():
        new = to / file.relative_to(package)
        new.unlink()
        new.write_text(text, encoding="utf-8")
    return folder


def _left_out(d: Path, names: list[str], package: Path, kept: set[str]) -> set[str]:
    found = shutil.ignore_patterns("__pycache__", "*.pyx", "*.pyc", "*.pxd", "*.pxi", "*.h", "*.cu")(str(d), names)
    return found | (set(names) - kept if d == package / "learn" else set())


def _linked(a: str, b: str) -> None:
    try:
        os.link(a, b)
    except OSError:                                # another file system
        shutil.copy2(a, b)


def _codes(holes: Iterable, tree: Path) -> dict[str, Any]:
    """The code of the modules with holes, as the library has them, under the names of the tree's files."""
    package = source.file_of("flowedu").parent
    found = {}
    for hole in holes:
        for file in {cut.file for cut in stubs.cuts(hole)}:
            name = ".".join(("flowedu", *file.relative_to(package).with_suffix("").parts))
            found[name] = compile(file.read_text("utf-8"), str(tree / "flowedu" / file.relative_to(package)), "exec",
                                  dont_inherit=True, optimize=0)
    return found


class Bench:
    """A cell and its judge. folder: where its tree is made, or was (a package in it is taken as it is)."""

    def __init__(self, folder: Path, home: Path = course.HOME, seconds: float = SECONDS, memory: int = MEMORY,
                 landlock: bool = True):
        self.home, self.tree, self.seconds, self.memory, self.landlock = home, folder, seconds, memory, landlock
        self.holes = course.holes(home)
        if not (folder / "flowedu").exists():
            closed_package(folder, self.holes)
        self.read = [str(p) for p in (*packages(), folder)]
        package = folder / "flowedu"
        self._without_laws = [str(p) for d in (package, package / "learn") for p in d.iterdir()
                              if p.name not in ("learn", "laws")]
        self.process: subprocess.Popen | None = None

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def start(self) -> None:
        """The cell, if it does not run. Raises FlowError: it does not come up."""
        if self.process is not None and self.process.poll() is None:
            return
        ours, theirs = socket.socketpair()
        env = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "FLOWEDU_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1",
               "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin", "HOME": "/nowhere", "LANG": "C.UTF-8",
               "PYTHONPATH": os.pathsep.join([str(self.tree), *map(str, sites())])}
        self.said = tempfile.TemporaryFile()               # noqa: SIM115
        cell = str(self.tree / "flowedu/learn/teach/worker.py")      # not by -m, which would import flowedu first
        self.process = subprocess.Popen([sys.executable, "-S", "-P", cell], stdin=theirs,
                                        stdout=self.said, stderr=self.said, env=env, cwd=self.tree, start_new_session=True)
        theirs.close()
        self.control = ours
        codes = _codes(self.holes, self.tree)
        first = marshal.dumps({"codes": codes, "modules": [
            "flowedu", "flowedu.learn.swap", "flowedu.learn.teach.protocol", "flowedu.learn.teach.proxy",
            "flowedu.learn.teach.isolation", *codes]})
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
            raise FlowError("the process that answers run in does not start", got=said.strip().splitlines()[-1:] and said)

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.control.close()
            self.said.close()
            self.process = None

    def judged(self, hole, file: Path, seed: int = 0, cases: int = 0) -> dict[str, Any]:
        """The verdict on an answer; whatever it does."""
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            return _nothing([f"  {file.name} cannot be read: {type(error).__name__}"])
        if len(text) > 1 << 20:
            return _nothing([f"  {file.name} has {len(text) >> 20} MB"])
        if hole.kind == "kernel":
            if untouched(hole, text):
                return {**_nothing([]), "state": "open"}
            if lacks := kernels.missing(hole):         # found here: an answer cannot say so
                return {**_nothing([f"  {lacks}"]), "state": "unjudged"}
            return self._kernel(hole, file, seed)
        return self._judged(hole, file, text, seed, cases, hole.together)

    def _kernel(self, hole, file: Path, seed: int) -> dict[str, Any]:
        """Behind walls, with compilers."""
        others = _adopting()
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "flowedu.learn.teach.seal", hole.id, str(file), folder, str(seed)]
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL, start_new_session=True)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(2 * PATIENCE * self.seconds)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            while left := _children() - others:        # of whoever left its group; an orphan's own come here next
                for pid in left:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
            try:
                return _believed(json.loads(Path(folder, "verdict.json").read_text(encoding="utf-8")), hole, together=False)
            except (OSError, ValueError):
                return _nothing(["  there is no verdict: it took too long, or ended its judge"])

    def _judged(self, hole, file: Path, text: str, seed: int, cases: int, together: bool) -> dict[str, Any]:
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
            if verdict is None or "gone" in verdict:
                late = self.late or code == -signal.SIGXCPU
                lines = self._why(None if late else code, _read(where).rpartition("Stack (")[2], file, output)
                verdict = _nothing(lines)
        return {**verdict, "seconds": round(time.perf_counter() - began, 3), "output": limits.own(output)}

    def _child(self, hole, text: str, name: str, out, where, seed: int = 0,
               together: bool = False) -> tuple[socket.socket, int]:
        ours, theirs = socket.socketpair()
        request = {"hole": {**dataclasses.asdict(hole), "folder": ""}, "functions": hole.functions, "seed": seed,
                   "together": together, "folder": str(self.tree / "flowedu" / "chapters"),
                   "text": text, "name": name, "read": self.read, "memory": self.memory, "seconds": self.seconds,
                   "landlock": self.landlock}
        if not together:                           # laws are not to be read; those that judge in the cell are
            request["read"] = [p for p in self.read if p != str(self.tree)] + self._without_laws
        data = json.dumps(request).encode()
        socket.send_fds(self.control, [struct.pack("<I", len(data))], [theirs.fileno(), out.fileno(), where.fileno()])
        self.control.sendall(data)
        theirs.close()
        pid = struct.unpack("<i", self.control.recv(4, socket.MSG_WAITALL))[0]
        return ours, pid

    def _end(self, pid: int) -> int:
        """The answer's process, with all it started, and its status."""
        for f in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                f(pid, signal.SIGKILL)
        data = json.dumps({"wait": pid}).encode()
        self.control.sendall(struct.pack("<I", len(data)) + data)
        return struct.unpack("<i", self.control.recv(4, socket.MSG_WAITALL))[0]

    def _verdict(self, hole, file: Path, seed: int, cases: int, link: socket.socket, other: int,
                 together: bool) -> dict[str, Any] | None:
        """The judge's, from a process of its own. None: it was not done in time."""
        ours, theirs = os.pipe()
        began, self.late = time.monotonic(), False
        pid = os.fork()
        if not pid:
            try:
                os.close(ours)
                said = json.dumps(_judge(hole, file, seed, cases, link, other, together)).encode()
                with os.fdopen(theirs, "wb") as to:
                    to.write(said)
            finally:
                os._exit(0)
        os.close(theirs)
        data = bytearray()
        with os.fdopen(ours, "rb", 0) as of:
            while self._has_time(pid, other, began):
                if select.select([of], [], [], 0.1)[0]:
                    part = of.read(1 << 16)
                    data += part
                    if not part:
                        break
            else:
                self.late = True
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        try:
            return json.loads(data)
        except ValueError:
            return None

    def _has_time(self, judge: int, other: int, began: float) -> bool:
        """Whether neither the processors' time nor the clock's is over."""
        spent = 0.0
        for pid in (judge, other):
            with contextlib.suppress(OSError):
                spent += time.clock_gettime(_clock(pid))
        return spent < self.seconds and time.monotonic() - began < PATIENCE * self.seconds

    def _why(self, code: int | None, where: str, file: Path, output: str) -> list[str]:
        """Why there is no verdict, in the words of the runner."""
        return limits.reason(code, where, file, output, self.seconds, self.memory)


def _judge(hole, file: Path, seed: int, cases: int, link: socket.socket, other: int, together: bool) -> dict[str, Any]:
    """In the judge's process. Laws that ask how long an answer worked mean the other's time, too."""
    own = time.process_time
    time.process_time = lambda: own() + time.clock_gettime(_clock(other))
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    if len(hello := link.recv(4, socket.MSG_WAITALL)) < 4:
        return {"gone": True}
    if hole.plain and source.same_code(file.read_text("utf-8"), (hole.folder / hole.plain).read_text("utf-8"),
                                       hole.functions[0]):
        return {**_nothing([]), "state": "open"}
    if together:
        try:
            return judge_together(hole, file.read_text(encoding="utf-8"), link, seed)
        except (Broken, KeyError) as error:
            return {"gone": str(error)}
    if struct.unpack("<I", hello)[0]:
        return {"gone": "still in memory"}         # it could be found there: not in a process that judges nothing
    far = Far(link, file)
    try:
        verdict = judged(hole, file, seed, cases, far.load)
    except Broken as error:
        return {"gone": str(error)}
    return {"gone": far.gone} if far.gone else verdict


def judge_together(hole, text: str, link: socket.socket, seed: int = 0) -> dict[str, Any]:
    """The verdict of the answer's own process on the answer, if that process also finds two wrong answers.

    One of those comes before the answer, one after it. Each request has a random number, which the reply repeats: a reply
    that was written before its request came is not taken. README.md beside this file describes the limits of this.

    Raises Broken, KeyError: the process has ended, or its reply is no verdict.
    """
    plants = random.SystemRandom().sample(wrong.answers(hole), 2)
    if not _finds(hole, plants[0], link):
        raise Broken("a wrong answer was not found")
    verdict = _ask_for_verdict(hole, text, link, seed)
    if verdict["state"] == "right" and not _finds(hole, plants[1], link):
        return _nothing(["  after it ran, its judge accepts wrong answers, too",
                         "  an answer changes nothing but what its task names"])
    return verdict


def _finds(hole, plant: wrong.Wrong, link: socket.socket) -> bool:
    """Whether the other process rejects a wrong answer, by its law. (It does so for the seed 0.)"""
    verdict = _ask_for_verdict(hole, plant.text, link, 0)
    return (verdict["state"], verdict["law"]) == ("wrong", plant.law)


def _ask_for_verdict(hole, text: str, link: socket.socket, seed: int) -> dict[str, Any]:
    number = secrets.token_hex(16)
    send(link, {"text": text, "number": number, "seed": seed})
    reply = receive(link)
    if reply["number"] != number:
        raise Broken("a reply to another request")
    return _believed(reply["verdict"], hole)


def _clock(pid: int) -> int:
    """The clock of the time that another process was given: as clock_getcpuclockid has it."""
    return (~pid << 3) | 2


def _believed(said: Any, hole, together: bool = True) -> dict[str, Any]:
    """A verdict of a process in which the answer ran, as far as it is one."""
    try:
        text = [str(t)[:200] for t in said["lines"]][:11]
        extra = {str(k)[:40]: v for k, v in said["extra"].items() if type(v) in (int, float)}
        return {"state": {"right": "right", "open": "open"}.get(said["state"], "wrong"), "lines": text, "output": "",
                "stars": max(0, min(int(said["stars"]), max(1, len(hole.stars)))),
                "of": max(int(said["stars"]), min(int(said.get("of") or len(hole.stars)), len(hole.stars))),
                "title": str(said.get("title", ""))[:100],
                "law": said["law"] if said["law"] in hole.laws else "", "seconds": float(said["seconds"]),
                "extra": {**extra, **({"together": True} if together else {})}}
    except (KeyError, TypeError, ValueError, AttributeError):
        return _nothing(["  there is no verdict"])


def _nothing(lines: list[str]) -> dict[str, Any]:
    return {"state": "wrong", "stars": 0, "law": "", "extra": {}, "seconds": 0.0, "lines": lines, "output": ""}


def _read(file) -> str:
    file.seek(0)
    return file.read(2 << 20).decode(errors="replace")

