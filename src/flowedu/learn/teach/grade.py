"""Grades: of one submission (`make grade WORK=submission CH=4 SEED=2027`) or of a class (`make grade-all DIR=submissions
CH=4`).

    python -m flowedu.learn.teach.grade work 4 --seed 2027             build/grade/results.json, junit.xml, index.html
    python -m flowedu.learn.teach.grade submissions 4 --all            a folder for each student, grades.csv

A class is shared out to workers, processes of their own: one that dies takes one student along, who is tried once more.
What was graded and has not changed stands.
"""
from __future__ import annotations

import argparse
import csv
import io
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from flowedu.errors import ArgumentError, FlowError
from flowedu.learn import course, kernels
from flowedu.learn.runner import Runner
from flowedu.learn.teach import report, submission
from flowedu.learn.teach.bench import Bench, closed_package

STUDENT = 600                                      # seconds of silence after which a worker is taken for dead


def chosen(which: str, home: Path = course.HOME) -> list:
    """The holes of "4", "1-4" or "all". Raises ArgumentError: there are none."""
    first, _, last = which.partition("-")
    numbers = {c.number for c in course.chapters(home) if c.holes}
    if which != "all" and not (first.isdigit() and (last or first).isdigit() and
                               {int(first), int(last or first)} <= numbers):
        raise ArgumentError(f"there is no chapter {which} with exercises", got=which,
                            expected="all, a range such as 1-4, or one of " + ", ".join(map(str, sorted(numbers))))
    return [h for h in course.holes(home) if which == "all" or int(first) <= h.chapter <= int(last or first)]


def graded(bench: Bench, folder: Path, out: Path, holes: Sequence, seed: int, name: str) -> list[report.Mark]:
    """Judge a submission, write its files."""
    work = out / "work"
    missing = submission.taken(folder, work, holes)
    runner = Runner(bench.home, work)
    marks = []
    for hole in holes:
        file = work / hole.file
        if hole.id in missing:
            marks.append(report.Mark(hole, "open", 0, "", f"{hole.short}: {missing[hole.id]}", {}))
            continue
        verdict = bench.judged(hole, file, seed)
        text = "\n".join(runner.told(hole, verdict, Path("work", hole.file), keys=False))
        extra = {**verdict["extra"], "seconds": verdict["seconds"], "hints": submission.hints(folder, hole)}
        marks.append(report.Mark(hole, verdict["state"], verdict["stars"], verdict["law"], text, extra,
                                 verdict.get("of", 0)))
    report.write(out, marks, name)
    report.put(out / "key", submission.key(work, holes, seed))
    return marks


# ---- a class
def students(folder: Path) -> list[Path]:
    found = sorted(p for p in folder.iterdir() if p.is_dir() and not p.is_symlink() and not p.name.startswith(".")
                   and p.name.isprintable())
    if not found:
        raise ArgumentError(f"{folder} has no submissions", expected="a folder for each student", got="none")
    return found


class Worker:
    """A process that grades students whose names it is told, one after the other."""

    def __init__(self, arguments: Sequence[str]):
        self.process = subprocess.Popen([sys.executable, "-m", "flowedu.learn.teach.grade", "--worker", *arguments],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.student: Path | None = None
        self.since = 0.0

    def give(self, student: Path) -> None:
        self.student, self.since = student, time.monotonic()
        self.process.stdin.write(f"{student.name}\n".encode())
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def grade_all(folder: Path, which: str, out: Path, seed: int = 0, workers: int = 2, say=print) -> list[dict]:
    """Grade every student; rows of the table, which is written to out/grades.csv. Goes on where it stopped."""
    holes = chosen(which)
    todo = [(s, 0) for s in students(folder)]
    count, begun, rows = len(todo), time.monotonic(), {}
    for s, _ in list(todo):
        if _stands(out / s.name, s, holes, seed):
            rows[s.name] = _row(out / s.name, s.name)
    todo = [(s, n) for s, n in todo if s.name not in rows]
    if rows:
        say(f"{len(rows)} of {count} were graded before and have not changed")
    stood = len(rows)
    with tempfile.TemporaryDirectory() as tree:
        closed_package(Path(tree), course.holes())
        start = lambda: Worker([str(folder), which, "--out", str(out), "--seed", str(seed), "--tree", tree])
        busy: dict[Worker, int] = {start(): -1 for _ in range(min(workers, len(todo)))}
        try:
            while todo or any(n >= 0 for n in busy.values()):
                for w, n in list(busy.items()):
                    if n < 0 and todo:
                        student, busy[w] = todo.pop(0)
                        w.give(student)
                for w in _spoken([w for w, n in busy.items() if n >= 0]):
                    line = w.process.stdout.readline() if w.process.poll() is None or w.since else b""
                    tries = busy.pop(w)
                    name = w.student.name
                    if line.strip() == name.encode():
                        busy[w] = -1
                    else:
                        w.end()
                        busy[start()] = -1
                        if tries < 1:
                            todo.append((w.student, tries + 1))
                            continue
                        report.write(out / name, [report.Mark(h, "wrong", 0, "", "", {}) for h in holes], name,
                                     "could not be graded: the grader ended twice; look at this one by hand")
                    rows[name] = _row(out / name, name)
                    _progress(rows, stood, count, begun, name, say)
        finally:
            for w in busy:
                w.end()
    table = [rows[n] for n in sorted(rows)]
    _write_table(out / "grades.csv", table, holes)
    return table


def _spoken(workers: list[Worker]) -> list[Worker]:
    """Those that said something, ended, or have been silent too long."""
    ready = select.select([w.process.stdout for w in workers], [], [], 0.2)[0]
    return [w for w in workers if w.process.stdout in ready or time.monotonic() - w.since > STUDENT and not w.end()]


def _stands(out: Path, student: Path, holes: Sequence, seed: int) -> bool:
    if not (out / "key").exists() or not (out / "results.json").exists():
        return False
    if '"state:unjudged"' in (out / "results.json").read_text():                # what it lacked may be there now
        return False
    before = (out / "key").read_text()
    submission.taken(student, out / "work", holes)
    return before == submission.key(out / "work", holes, seed)


def _row(out: Path, name: str) -> dict:
    said = json.loads((out / "results.json").read_text())
    judged = lambda t: "state:unjudged" not in t["tags"]
    why = {t["output"].splitlines()[-1].strip() for t in said["tests"] if not judged(t)}
    return {"name": name, "score": said["score"], "of": sum(t["max_score"] for t in said["tests"]),
            **{t["name"]: t["score"] if judged(t) else "unjudged" for t in said["tests"]},
            "unjudged": "; ".join(sorted(why)),
            "seconds": round(sum(t["extra_data"].get("seconds", 0) for t in said["tests"]), 1)}


def _progress(rows: dict, stood: int, count: int, begun: float, name: str, say) -> None:
    done = len(rows) - stood
    left = (time.monotonic() - begun) / done * (count - len(rows))
    bar = "#" * round(20 * len(rows) / count)
    say(f"[{bar:20s}] {len(rows)} of {count}  {name}: {rows[name]['score']:g} of {rows[name]['of']:g}  "
        f"about {left / 60:.1f} min left")


def _write_table(file: Path, table: list[dict], holes: Iterable) -> None:
    text = io.StringIO()
    names = ["name", "score", "of", *(h.short for h in holes), "seconds", "unjudged"]
    rows = csv.DictWriter(text, names)
    rows.writeheader()
    rows.writerows({k: _cell(v) for k, v in row.items()} for row in table)
    report.put(file, text.getvalue())


def _cell(v):
    """A spreadsheet takes some texts for formulas."""
    return f"'{v}" if isinstance(v, str) and v[:1] in "=+-@\t\r" else v


# ---- commands
def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m flowedu.learn.teach.grade", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="work, or with --all a folder of such folders")
    parser.add_argument("chapter", help='"4", "1-4" or "all"')
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("build/grade"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--tree", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except FlowError as error:
        print(error, file=sys.stderr)
    except OSError as error:
        print(f"{error.strerror}: {error.filename}", file=sys.stderr)
    return 2


def _set_up(holes: Sequence) -> None:
    """What it takes to judge them, where that can be had; what cannot is said, and its exercises are "unjudged"."""
    for kind in {h.language: h for h in holes if h.kind == "kernel"}.values():
        if lacks := kernels.set_up(kind, course.HOME):
            print(f"{kind.short} and its like cannot be judged here: {lacks}", flush=True)


def _run(options: argparse.Namespace) -> int:
    holes = chosen(options.chapter)
    if not options.folder.is_dir():
        raise ArgumentError(f"there is no folder {options.folder}", got=str(options.folder),
                            fix="WORK=work, or DIR=submissions")
    if options.worker:
        with Bench(options.tree) as bench:
            for line in sys.stdin:
                name = line.rstrip("\n")
                graded(bench, options.folder / name, options.out / name, holes, options.seed, name)
                print(name, flush=True)
        return 0
    _set_up(holes)
    if options.all:
        began = time.monotonic()
        table = grade_all(options.folder, options.chapter, options.out, options.seed, options.jobs,
                          lambda t: print(t, flush=True))
        print(f"{len(table)} students in {(time.monotonic() - began) / 60:.1f} min: {options.out}/grades.csv")
        return 0
    with tempfile.TemporaryDirectory() as tree, Bench(Path(tree, "tree")) as bench:
        marks = graded(bench, options.folder, options.out, holes, options.seed, options.folder.resolve().name)
    for m in marks:
        print(m.text)
    reached, most = report.total(marks)
    print(f"{reached:g} of {most:g} points: {options.out}/results.json, junit.xml, index.html")
    if left := report.unjudged(marks):
        print(left)
    return 0


if __name__ == "__main__":
    sys.exit(main())
