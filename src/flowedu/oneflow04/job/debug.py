"""Log files of flow.config.enable_debug_mode(True): the plans of jobs, and learning rates of train jobs.

    log/20210630_120000-4711-train_job/plan.txt               the text of job.show()
                                       train_step2lr.csv      train_step, lr

The folder is inside flow.env.log_dir. Lines are written in batches, at least every second of training, and
the last lines when the job is deleted or the program ends.
"""
from __future__ import annotations

import itertools
import os
import time
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from flowedu.core.job.session import default_session
from flowedu.errors.files import write_text
from flowedu.oneflow04.job import env

PLAN, RATES = "plan.txt", "train_step2lr.csv"
_BATCH, _SECONDS = 1000, 1.0
_logs: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def enabled() -> bool:
    """Return True if the current session writes logs."""
    session: Any = default_session()        # a Session04
    return bool(session.config.get("enable_debug_mode"))


def start(job) -> str:
    """Write the plan of a compiled job into a new folder. Print and return the path of the folder."""
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
    """Log the step and the learning rate (or one rate per optimizer) of a run of a train job.

    Before start(job) the values are only stored, because a job of varying shapes runs its first step before
    it has a plan.
    """
    log = _logs.get(job)
    if log is None:
        log = _logs[job] = Log(job)
    log.add(step, lr)


def flush() -> None:
    """Write all pending lines of all jobs."""
    for log in list(_logs.values()):
        log.flush()


class Log:
    """A CSV file of the learning rates of one job. The file is not kept open; whole lines are appended."""

    def __init__(self, owner: object):
        self.path, self.written = "", time.monotonic()
        self.lines: list[str] = []
        self._header = False
        weakref.finalize(owner, self.flush)         # when the owner is deleted, and at exit

    def add(self, step: int, lr: float | Sequence[float]) -> None:
        rates: Sequence[Any] = lr if isinstance(lr, (list, tuple)) else [lr]
        if not self._header:
            self._header = True
            self.lines.append("train_step, lr" + "".join(f", lr{i}" for i in range(1, len(rates))) + "\n")
        self.lines.append(", ".join([str(int(step)), *(str(np.float32(r)) for r in rates)]) + "\n")
        if len(self.lines) >= _BATCH or time.monotonic() - self.written >= _SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the pending lines.

        If the disk is full, drop the lines and print a message; training continues.
        """
        if not self.path or not self.lines:
            return
        lines, self.lines, self.written = self.lines, [], time.monotonic()
        try:
            with open(self.path, "a", encoding="utf-8", newline="\n") as f:
                f.write("".join(lines))
        except OSError as e:
            print(f"debug mode: {len(lines)} lines were not written: {e}")
