"""Grade one submission or the submissions of a class.

    make grade WORK=submission CH=4 SEED=2027
    make grade-all DIR=submissions CH=4

    python -m flowedu_course.teach.grade work 4 --seed 2027     build/grade/results.json, junit.xml, index.html
    python -m flowedu_course.teach.grade submissions 4 --all           a folder for each student, grades.csv

Worker processes grade a class. If a worker ends early, its student is graded once more. Submissions that
have not changed since they were graded are skipped. README.md in this folder describes folder names and time
limits.
"""
from __future__ import annotations

import argparse
import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from flowedu.errors import ArgumentError
from flowedu_course import course, kernels
from flowedu_course.runner import Runner
from flowedu_course.teach import classfile, gradebook, report, similar, submission
from flowedu_course.teach.bench import Bench, closed_package
from flowedu_course.teach.classfile import ClassFile
from flowedu_course.teach.commands import report_errors
from flowedu_course.teach.submission import select_holes

# Seconds without a message after which a worker counts as dead.
SILENCE = 600
BY_HAND = "could not be graded: the grader ended twice; grade this one by hand"


def graded(bench: Bench, folder: Path, out: Path, holes: Sequence, seed: int, name: str,
           report_progress: Callable[[], None] = lambda: None) -> list[report.Mark]:
    """Judge a submission and write its files. report_progress() is called after each exercise."""
    work = out / "work"
    missing = submission.copy_answers(folder, work, holes)
    runner = Runner(bench.home, work)
    marks = []
    for hole in holes:
        file = work / hole.file
        if hole.id in missing:
            marks.append(report.Mark(hole, "open", 0, "", f"{hole.short}: {missing[hole.id]}", {}))
            continue
        verdict = bench.judged(hole, file, seed)
        report_progress()
        text = "\n".join(runner.format_verdict(hole, verdict, Path("work", hole.file), keys=False))
        extra = {**verdict.extra, "seconds": verdict.seconds, "hints": submission.hints(folder, hole)}
        marks.append(report.Mark(hole, verdict.state, verdict.stars, verdict.law, text, extra,
                                 verdict.of))
    report.write(out, marks, name)
    report.put(out / "key", submission.key(work, holes, seed))
    return marks


# ---- a class
class Worker:
    """A process that grades students one by one. Messages in both directions are lines of JSON."""

    def __init__(self, arguments: Sequence[str]):
        self.process = subprocess.Popen([sys.executable, "-m", "flowedu_course.teach.grade", "--worker",
                                         *arguments],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.student: Path | None = None
        self.since = 0.0
        self._unread = b""

    def give(self, student: Path) -> None:
        self.student, self.since = student, time.monotonic()
        with contextlib.suppress(BrokenPipeError):             # it has ended: read() reports so
            self.process.stdin.write(f"{json.dumps(student.name)}\n".encode())
            self.process.stdin.flush()

    def read(self) -> str:
        """Wait for output of the worker and return its state: "busy", "done", or "ended"."""
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        *lines, self._unread = (self._unread + data).split(b"\n")
        self.since = time.monotonic()
        if not data:
            return "ended"
        return "done" if json.dumps({"done": self.student.name}).encode() in lines else "busy"

    @property
    def late(self) -> bool:
        return time.monotonic() - self.since > SILENCE

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def grade_all(folder: Path, which: str, out: Path, seed: int = 0, workers: int = 2, say=print,
              settings: ClassFile | None = None) -> list[dict]:
    """Grade every student, write out/grades.csv, and return its rows. Students already graded are skipped.

    Weights and remarks are applied to all results, including those of earlier runs.
    """
    holes, settings = select_holes(which), settings or ClassFile()
    todo = [(s, 0) for s in submission.students(folder)]
    count, begun, rows = len(todo), time.monotonic(), {}
    for s, _ in list(todo):
        if _stands(out / submission.output_name(s.name), s, holes, seed):
            rows[s.name] = _finish(out / submission.output_name(s.name), s.name, holes, settings)
    todo = [(s, n) for s, n in todo if s.name not in rows]
    if rows:
        say(f"{len(rows)} of {count} were graded before and have not changed")
    stood = len(rows)
    with tempfile.TemporaryDirectory() as tree:
        if todo:
            closed_package(Path(tree), course.holes())
        start = lambda: Worker([str(folder), which, "--out", str(out), "--seed", str(seed), "--tree", tree])
        busy: dict[Worker, int] = {start(): -1 for _ in range(min(workers, len(todo)))}
        try:
            while todo or any(n >= 0 for n in busy.values()):
                for w, n in list(busy.items()):
                    if n < 0 and todo:
                        student, busy[w] = todo.pop(0)
                        w.give(student)
                for w in _with_news([w for w, n in busy.items() if n >= 0]):
                    state = "ended" if w.late else w.read()
                    if state == "busy":
                        continue
                    tries = busy.pop(w)
                    name = w.student.name
                    to = out / submission.output_name(name)
                    if state == "done":
                        busy[w] = -1
                    else:
                        w.end()
                        busy[start()] = -1
                        if tries < 1:
                            todo.append((w.student, tries + 1))
                            continue
                        report.write(to, [report.Mark(h, "wrong", 0, "", "", {}) for h in holes], name)
                    rows[name] = _finish(to, name, holes, settings, "" if state == "done" else BY_HAND)
                    _progress(rows, stood, count, begun, name, say)
        finally:
            for w in busy:
                w.end()
    for path, why in submission.find_ignored(folder).items():
        say(f"{submission.label(path.name)}: {why}")
        rows[path.name] = {"name": submission.label(path.name), "unjudged": why}
    table = [rows[n] for n in sorted(rows)]
    gradebook.write_table(out / "grades.csv", table, holes)
    gradebook.write_imports(out, table, settings.weigh(holes), settings.roster)
    return table


def _finish(to: Path, name: str, holes: Sequence, settings: ClassFile, note: str = "") -> dict:
    """Write a student's files with weights and remarks, and return the row of grades.csv."""
    report.write(to, settings.apply(report.read(to, holes), name), submission.label(name), note,
                 settings.general(name))
    return gradebook.row(to, name)


def _with_news(workers: list[Worker]) -> list[Worker]:
    """Return the workers that have output, have ended, or have been silent for too long."""
    ready = select.select([w.process.stdout for w in workers], [], [], 0.2)[0]
    return [w for w in workers if w.process.stdout in ready or w.late]


def _stands(out: Path, student: Path, holes: Sequence, seed: int) -> bool:
    if not (out / "key").exists() or not (out / "results.json").exists():
        return False
    # Missing tools may be installed now.
    if '"state:unjudged"' in (out / "results.json").read_text("utf-8"):
        return False
    before = (out / "key").read_text(encoding="utf-8")
    submission.copy_answers(student, out / "work", holes)
    return before == submission.key(out / "work", holes, seed)


def _progress(rows: dict, stood: int, count: int, begun: float, name: str, say) -> None:
    done = len(rows) - stood
    left = (time.monotonic() - begun) / done * (count - len(rows))
    bar = "#" * round(20 * len(rows) / count)
    say(f"[{bar:20s}] {len(rows)} of {count}  {submission.label(name)}: {rows[name]['score']:g} of "
        f"{rows[name]['of']:g}  about {left / 60:.1f} min left")


# ---- commands
@report_errors
def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu_course.teach.grade",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path,
                        help="a submission; with --all, a folder with one submission per student")
    parser.add_argument("chapter", help='"4", "1-4", "fast" or "all"')
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("build/grade"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--weights", default="", help="a table of make weights, or time")
    parser.add_argument("--remarks", type=Path, help="a CSV file or a folder, see classfile.py")
    parser.add_argument("--roster", type=Path, help="a CSV file with the ids of Canvas or Moodle")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--tree", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    return _run(options)


def _set_up(holes: Sequence) -> None:
    """Set up the tools that kernels need; print which are missing, whose exercises are then "unjudged"."""
    for kind in {h.language: h for h in holes if h.is_compiled}.values():
        if lacks := kernels.set_up(kind, course.HOME):
            print(f"{kind.short} and similar exercises cannot be judged here: {lacks}", flush=True)


def _work(options: argparse.Namespace, holes: Sequence) -> None:
    """Run a worker. Output of laws goes to stderr, because stdout is the pipe for messages."""
    messages = os.dup(1)
    os.dup2(2, 1)
    send = lambda message: os.write(messages, f"{json.dumps(message)}\n".encode())
    with Bench(options.tree) as bench:
        for line in sys.stdin.buffer:
            name = json.loads(line)
            to = options.out / submission.output_name(name)
            graded(bench, options.folder / name, to, holes, options.seed, submission.label(name),
                   lambda: send({"busy": 1}))
            send({"done": name})


def _read_settings(options: argparse.Namespace, holes: Sequence) -> ClassFile:
    """Read the instructor's files. Raises ArgumentError if one has a fault."""
    points, must = {}, frozenset()
    if options.weights == "time":
        points = classfile.by_time(holes)
    elif options.weights:
        points, must = classfile.read_weights(Path(options.weights), holes, [h.id for h in course.holes()])
    names = [options.folder.resolve().name]
    if options.all:
        names = [s.name for s in submission.students(options.folder)]
    remarks = classfile.read_remarks(options.remarks, names, holes) if options.remarks else {}
    return ClassFile(points, must, remarks, classfile.read_roster(options.roster) if options.roster else {})


def _run(options: argparse.Namespace) -> int:
    holes = select_holes(options.chapter)
    if not options.folder.is_dir():
        raise ArgumentError(f"there is no folder {options.folder}", got=str(options.folder),
                            fix="WORK=work, or DIR=submissions")
    if options.worker:
        _work(options, holes)
        return 0
    settings = _read_settings(options, holes)
    _set_up(holes)
    if options.all:
        began = time.monotonic()
        table = grade_all(options.folder, options.chapter, options.out, options.seed, options.jobs,
                          lambda t: print(t, flush=True), settings)
        found = similar.pairs(options.folder, holes)
        similar.write(options.out / "similar.csv", found)
        if found:
            print(f"{len(found)} pair{'s' * (len(found) > 1)} of equal or nearly equal answers: {options.out}/similar.csv")
        print(f"{len(table)} students in {(time.monotonic() - began) / 60:.1f} min: {options.out}/grades.csv")
        return 0
    with tempfile.TemporaryDirectory() as tree, Bench(Path(tree, "tree")) as bench:
        marks = graded(bench, options.folder, options.out, holes, options.seed,
                       submission.label(options.folder.resolve().name))
    name = options.folder.resolve().name
    marks = settings.apply(marks, name)
    report.write(options.out, marks, submission.label(name), remark=settings.general(name))
    if missing := report.missing(marks):
        print(missing)
    for m in marks:
        print(m.text + (f"\n  {report.REMARK}{m.remark}" if m.remark else ""))
    reached, most = report.total(marks)
    print(f"{reached:g} of {most:g} points: {options.out}/results.json, junit.xml, index.html")
    if left := report.unjudged(marks):
        print(left)
    return 0


if __name__ == "__main__":
    sys.exit(main())
