"""flow.config.enable_debug_mode(True): every job's plan, and every train job's learning rates, as files.

    log/20210630_120000-4711-train_job/plan.txt               what job.show() prints
                                       train_step2lr.csv      train_step, lr

The folder is below flow.env.log_dir. Lines are written in batches, at least every second of training, and the last of
them when the job is forgotten or the program ends.
"""
from __future__ import annotations

import itertools
import os
import time
import weakref
from collections.abc import Sequence

import numpy as np

from flowedu.core.job.session import default_session
from flowedu.errors.files import write_text
from flowedu.oneflow04.job import env

PLAN, RATES = "plan.txt", "train_step2lr.csv"
_BATCH, _SECONDS = 1000, 1.0
_logs: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def enabled() -> bool:
    """Whether the current session is to be logged."""
    return bool(default_session().config.get("enable_debug_mode"))


def start(job) -> str:
    """The job is compiled: write its plan into a new folder, whose path is printed and returned."""
    root = os.path.abspath(env.value("log_dir", "log"))
    os.makedirs(root, exist_ok=True)
    name = f"{time.strftime('%Y%m%d_%H%M%S')}-{os.getpid()}-{job.name}"
    for suffix in itertools.count(1):
        folder = os.path.join(root, name if suffix == 1 else f"{name}-{suffix}")
        try:
            os.mkdir(folder)
            break
        except FileExistsError:
            continue
    write_text(os.path.join(folder, PLAN), job.show() + "\n")
    print(f"debug mode: {job.name}: {folder}")
    log = _logs.get(job)
    if log is None or log.path:
        log = _logs[job] = Log(job)
    log.path = os.path.join(folder, RATES)
    return folder


def step(job, step: int, lr: float | Sequence[float]) -> None:
    """A train job ran with this step and this learning rate (or one per optimizer). Before start(job) it is only kept: a
    job whose shapes vary has its first step before it has a plan."""
    log = _logs.get(job)
    if log is None:
        log = _logs[job] = Log(job)
    log.add(step, lr)


def flush() -> None:
    """Write what is waiting, of all jobs."""
    for log in list(_logs.values()):
        log.flush()


class Log:
    """A CSV file that grows, of the learning rates of one job. It holds no open file; whole lines are appended at once."""

    def __init__(self, owner: object):
        self.path, self.written = "", time.monotonic()
        self.lines: list[str] = []
        self._header = False
        weakref.finalize(owner, self.flush)         # when the owner is forgotten, and at exit

    def add(self, step: int, lr: float | Sequence[float]) -> None:
        rates = lr if isinstance(lr, (list, tuple)) else [lr]
        if not self._header:
            self._header = True
            self.lines.append("train_step, lr" + "".join(f", lr{i}" for i in range(1, len(rates))) + "\n")
        self.lines.append(", ".join([str(int(step)), *(str(np.float32(r)) for r in rates)]) + "\n")
        if len(self.lines) >= _BATCH or time.monotonic() - self.written >= _SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what is there. A disk that is full does not stop the training: the lines are dropped, with a word."""
        if not self.path or not self.lines:
            return
        lines, self.lines, self.written = self.lines, [], time.monotonic()
        try:
            with open(self.path, "a", encoding="utf-8", newline="\n") as f:
                f.write("".join(lines))
        except OSError as e:
            print(f"debug mode: {len(lines)} lines were not written: {e}")
