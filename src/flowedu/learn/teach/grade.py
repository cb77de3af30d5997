"""Grades: of one submission (`make grade WORK=submission CH=4 SEED=2027`) or of a class (`make grade-all DIR=submissions
CH=4`).

    python -m flowedu.learn.teach.grade work 4 --seed 2027             build/grade/results.json, junit.xml, index.html
    python -m flowedu.learn.teach.grade submissions 4 --all            a folder for each student, grades.csv

A class is shared out to workers, processes of their own: one that dies takes one student along, who is tried once more.
What was graded and has not changed stands. README.md beside this file describes names of folders, and time limits.
"""
from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import io
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from flowedu.errors import ArgumentError, FlowError
from flowedu.learn import course, kernels
from flowedu.learn.runner import Runner
from flowedu.learn.teach import report, submission
from flowedu.learn.teach.bench import Bench, closed_package

SILENCE = 600                                      # seconds after a worker's last message until it is taken for dead
# Names in the output folder that are not those of students.
RESERVED = {"grades.csv", "leaderboard.txt", "leaderboard.html", "results.json", "junit.xml", "index.html", "key", "work"}
LONGEST = 120                                      # bytes of a folder's name in the output, if it has to be escaped


def chosen(which: str, home: Path = course.HOME) -> list:
    """The holes of "4", "1-4" or "all". Raises ArgumentError: there are none."""
    first, _, last = which.partition("-")
    numbers = {c.number for c in course.chapters(home) if c.holes}
    if which != "all" and not (first.isdigit() and (last or first).isdigit() and
                               {int(first), int(last or first)} <= numbers):
        raise ArgumentError(f"there is no chapter {which} with exercises", got=which,
                            expected="all, a range such as 1-4, or one of " + ", ".join(map(str, sorted(numbers))))
    return [h for h in course.holes(home) if which == "all" or int(first) <= h.chapter <= int(last or first)]


def graded(bench: Bench, folder: Path, out: Path, holes: Sequence, seed: int, name: str,
           report_progress: Callable[[], None] = lambda: None) -> list[report.Mark]:
    """Judge a submission and write its files. report_progress() is called after each exercise."""
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
        report_progress()
        text = "\n".join(runner.told(hole, verdict, Path("work", hole.file), keys=False))
        extra = {**verdict["extra"], "seconds": verdict["seconds"], "hints": submission.hints(folder, hole)}
        marks.append(report.Mark(hole, verdict["state"], verdict["stars"], verdict["law"], text, extra,
                                 verdict.get("of", 0)))
    report.write(out, marks, name)
    report.put(out / "key", submission.key(work, holes, seed))
    return marks


# ---- a class
def students(folder: Path) -> list[Path]:
    """The folders of students, whatever their names.

    Raises ArgumentError: there are none.
    """
    others = left_out(folder)
    found = sorted(p for p in folder.iterdir() if p.is_dir() and p not in others)
    if not found:
        raise ArgumentError(f"{folder} has no submissions", expected="a folder for each student", got="none")
    return found


def left_out(folder: Path) -> dict[Path, str]:
    """What is not graded, with the reason. (A file in a folder of folders is no submission.)"""
    found = {}
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            found[path] = "not graded: this is a link, and links are not followed"
        elif path.name.startswith(".") and path.is_dir():
            found[path] = "not graded: a folder whose name begins with a dot"
    return found


def label(name: str) -> str:
    """A folder's name as one line of plain text, different for different names."""
    return "".join(c if c.isprintable() and c != "\\" else c.encode("unicode_escape").decode() for c in name)


def output_name(name: str) -> str:
    """The folder of a student's results: the same name, or a form with % for names that a file system, a terminal, or
    this program may take for something else."""
    plain = name.isprintable() and name == name.strip(" .") and not set(name) & set("%/\\") and name not in RESERVED
    if plain:
        return name
    data = os.fsencode(name)
    first, *rest = data
    escaped = f"%{first:02x}" + "".join(chr(b) if chr(b).isascii() and chr(b).isalnum() else f"%{b:02x}" for b in rest)
    if len(escaped) <= LONGEST:
        return escaped
    return f"{escaped[:LONGEST - 34]}%%{hashlib.sha256(data).hexdigest()[:32]}"


class Worker:
    """A process that grades one student after the other. Messages are lines of JSON in both directions."""

    def __init__(self, arguments: Sequence[str]):
        self.process = subprocess.Popen([sys.executable, "-m", "flowedu.learn.teach.grade", "--worker", *arguments],
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
        """"busy", "done", or "ended": the state after what it has written; waits if it has written nothing."""
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


def grade_all(folder: Path, which: str, out: Path, seed: int = 0, workers: int = 2, say=print) -> list[dict]:
    """Grade every student; rows of the table, which is written to out/grades.csv. Goes on where it stopped."""
    holes = chosen(which)
    todo = [(s, 0) for s in students(folder)]
    count, begun, rows = len(todo), time.monotonic(), {}
    for s, _ in list(todo):
        if _stands(out / output_name(s.name), s, holes, seed):
            rows[s.name] = _row(out / output_name(s.name), s.name)
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
                for w in _with_news([w for w, n in busy.items() if n >= 0]):
                    state = "ended" if w.late else w.read()
                    if state == "busy":
                        continue
                    tries = busy.pop(w)
                    name = w.student.name
                    to = out / output_name(name)
                    if state == "done":
                        busy[w] = -1
                    else:
                        w.end()
                        busy[start()] = -1
                        if tries < 1:
                            todo.append((w.student, tries + 1))
                            continue
                        report.write(to, [report.Mark(h, "wrong", 0, "", "", {}) for h in holes], label(name),
                                     "could not be graded: the grader ended twice; look at this one by hand")
                    rows[name] = _row(to, name)
                    _progress(rows, stood, count, begun, name, say)
        finally:
            for w in busy:
                w.end()
    for path, why in left_out(folder).items():
        say(f"{label(path.name)}: {why}")
        rows[path.name] = {"name": label(path.name), "unjudged": why}
    table = [rows[n] for n in sorted(rows)]
    _write_table(out / "grades.csv", table, holes)
    return table


def _with_news(workers: list[Worker]) -> list[Worker]:
    """Those that have written something, have ended, or have been silent too long."""
    ready = select.select([w.process.stdout for w in workers], [], [], 0.2)[0]
    return [w for w in workers if w.process.stdout in ready or w.late]


def _stands(out: Path, student: Path, holes: Sequence, seed: int) -> bool:
    if not (out / "key").exists() or not (out / "results.json").exists():
        return False
    if '"state:unjudged"' in (out / "results.json").read_text("utf-8"):                # what it lacked may be there now
        return False
    before = (out / "key").read_text(encoding="utf-8")
    submission.taken(student, out / "work", holes)
    return before == submission.key(out / "work", holes, seed)


def _row(out: Path, name: str) -> dict:
    said = json.loads((out / "results.json").read_text(encoding="utf-8"))
    judged = lambda t: "state:unjudged" not in t["tags"]
    why = {t["output"].splitlines()[-1].strip() for t in said["tests"] if not judged(t)}
    return {"name": label(name), "score": said["score"], "of": sum(t["max_score"] for t in said["tests"]),
            **{t["name"]: t["score"] if judged(t) else "unjudged" for t in said["tests"]},
            "unjudged": "; ".join(sorted(why)),
            "together": " ".join(t["name"].split()[0] for t in said["tests"] if "together" in t["tags"] and t["score"]),
            "seconds": round(sum(t["extra_data"].get("seconds", 0) for t in said["tests"]), 1)}


def _progress(rows: dict, stood: int, count: int, begun: float, name: str, say) -> None:
    done = len(rows) - stood
    left = (time.monotonic() - begun) / done * (count - len(rows))
    bar = "#" * round(20 * len(rows) / count)
    say(f"[{bar:20s}] {len(rows)} of {count}  {label(name)}: {rows[name]['score']:g} of {rows[name]['of']:g}  "
        f"about {left / 60:.1f} min left")


def _write_table(file: Path, table: list[dict], holes: Iterable) -> None:
    text = io.StringIO()
    names = ["name", "score", "of", *(h.short for h in holes), "seconds", "unjudged", "together"]
    rows = csv.DictWriter(text, names, restval="")
    rows.writeheader()
    rows.writerows({k: _cell(v) for k, v in row.items()} for row in table)
    report.put(file, text.getvalue())


def _cell(v):
    """Mark texts that a spreadsheet takes for formulas."""
    return f"'{v}" if isinstance(v, str) and v.strip()[:1] in tuple("=+-@＝＋－＠") else v


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


def _work(options: argparse.Namespace, holes: Sequence) -> None:
    """A worker's life. What laws print goes to the terminal: the pipe is for messages."""
    messages = os.dup(1)
    os.dup2(2, 1)
    send = lambda message: os.write(messages, f"{json.dumps(message)}\n".encode())
    with Bench(options.tree) as bench:
        for line in sys.stdin.buffer:
            name = json.loads(line)
            graded(bench, options.folder / name, options.out / output_name(name), holes, options.seed, label(name),
                   lambda: send({"busy": 1}))
            send({"done": name})


def _run(options: argparse.Namespace) -> int:
    holes = chosen(options.chapter)
    if not options.folder.is_dir():
        raise ArgumentError(f"there is no folder {options.folder}", got=str(options.folder),
                            fix="WORK=work, or DIR=submissions")
    if options.worker:
        _work(options, holes)
        return 0
    _set_up(holes)
    if options.all:
        began = time.monotonic()
        table = grade_all(options.folder, options.chapter, options.out, options.seed, options.jobs,
                          lambda t: print(t, flush=True))
        print(f"{len(table)} students in {(time.monotonic() - began) / 60:.1f} min: {options.out}/grades.csv")
        return 0
    with tempfile.TemporaryDirectory() as tree, Bench(Path(tree, "tree")) as bench:
        marks = graded(bench, options.folder, options.out, holes, options.seed,
                       label(options.folder.resolve().name))
    for m in marks:
        print(m.text)
    reached, most = report.total(marks)
    print(f"{reached:g} of {most:g} points: {options.out}/results.json, junit.xml, index.html")
    if left := report.unjudged(marks):
        print(left)
    return 0


if __name__ == "__main__":
    sys.exit(main())
