"""Check that tests fail when a fault is planted in the library (`make mutants`).

    python tools/mutants.py [--only TEXT] [--jobs N]

A row of tests/mutants/*.toml plants one fault: it replaces the text `before`, which `file` contains once, by
`after`. The tests in `tests` must then fail. Tests with the mark `slow`, which `make test` leaves out, do
not count unless the row has `slow = true`. Rows run in copies of this folder, on the base instruction set,
as on a machine without PyTorch, unless the row `needs` it. Each selection of tests must first pass on a
faultless copy. A fault that no test detects is a survivor: write a law that detects it.

Fields: about (a few words), file, before, after, tests (arguments of pytest), and, if necessary, needs =
["torch"] and slow = true.
"""
from __future__ import annotations

import argparse
import itertools
import os
import queue
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TABLES = ROOT / "tests" / "mutants"
# Seconds for one run of tests; a fault may cause an endless loop.
LIMIT = 600
COMPILED = {".pyx", ".pxd", ".pxi", ".h"}


class Selection(NamedTuple):
    """The tests of a row: arguments of pytest, packages that they need, and whether slow tests also run."""

    tests: str
    needs: tuple[str, ...]
    slow: bool

    def arguments(self) -> list[str]:
        """Return the arguments of pytest."""
        return [*([] if self.slow else ["-m", "not slow"]), *shlex.split(self.tests)]


@dataclass(frozen=True)
class Mutant:
    """One planted fault."""

    table: str
    about: str
    file: str
    before: str
    after: str
    tests: str
    needs: list[str] = field(default_factory=list, hash=False)
    slow: bool = False

    @property
    def selection(self) -> Selection:
        return Selection(self.tests, tuple(self.needs), self.slow)

    def __str__(self) -> str:
        return f"{self.table}: {self.about} ({self.file})"


def read_mutants(folder: Path = TABLES) -> list[Mutant]:
    """Return all rows in the order of the tables. Raises KeyError or TypeError for other fields."""
    return [Mutant(table=path.stem, **row) for path in sorted(folder.glob("*.toml"))
            for row in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]]


class Copy:
    """A copy of this folder in which faults are planted, one at a time."""

    def __init__(self, at: Path):
        self.at = at
        names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                               cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout.split("\0")
        built = [str(p.relative_to(ROOT)) for p in (ROOT / "src").rglob("*.so")]
        for name in {*names, *built} - {""}:
            if (ROOT / name).is_file():
                target = at / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, target)
        if (kept := ROOT / "build" / "kernels").is_dir():        # so that only planted faults are compiled
            shutil.copytree(kept, at / "build" / "kernels")

    def run(self, selection: Selection, planted: str = "") -> tuple[int, str]:
        """Return pytest's exit status (1: tests failed) and the end of its output. A timeout is a failure."""
        absent = {"torch", "mpi4py"} - set(selection.needs)
        env = {**os.environ, "PYTHONPATH": f"{self.at / 'src'}{os.pathsep}{self.at / 'course'}",
               "FLOWEDU_ISA": "base",
               "PYTHONDONTWRITEBYTECODE": "1", "FLOWEDU_WITHOUT": " ".join(absent),
               "HYPOTHESIS_PROFILE": "mutant"}
        env.pop("CI", None)                                  # in CI, a skipped test would fail
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider",
                   *selection.arguments()]
        try:
            done = subprocess.run(command, cwd=self.at, env=env, capture_output=True, encoding="utf-8",
                                  timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return 1, f"no end within {LIMIT} s"
        out = done.stdout + done.stderr
        # A fault that breaks the import of the test files, or crashes the interpreter, is also detected.
        if planted and (done.returncode in (2, 3, 4) or done.returncode < 0):
            return 1, out[-2000:]
        return done.returncode, out[-2000:]

    def build(self) -> str:
        """Compile changed files for the base instruction set. Return the error output, or ""."""
        done = subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=self.at,
                              env={**os.environ, "FLOWEDU_BUILD_ISA": "base"}, capture_output=True,
                              encoding="utf-8")
        return "" if done.returncode == 0 else done.stdout[-1000:] + done.stderr[-1000:]

    def bring_back_what_was_built(self) -> None:
        """Restore the faultless kernels with their dates, which is faster than to compile them again."""
        for folder, pattern in (("src", "*.so"), ("build", "*")):
            for path in (self.at / folder).rglob(pattern):
                good = ROOT / path.relative_to(self.at)
                if path.is_file() and good.is_file() and good.stat().st_mtime_ns != path.stat().st_mtime_ns:
                    shutil.copy2(good, path)

    def try_out(self, m: Mutant) -> str:
        """Return "killed", "survived", or a description of an error in the row."""
        path = self.at / m.file
        text = path.read_text(encoding="utf-8")
        if text.count(m.before) != 1:
            return f"'before' stands {text.count(m.before)} times in {m.file}"
        compiled = path.suffix in COMPILED
        path.write_text(text.replace(m.before, m.after), encoding="utf-8")
        try:
            if compiled and (words := self.build()):
                return f"does not compile: {words}"
            status, out = self.run(m.selection, planted=m.about)
        finally:
            shutil.copy2(ROOT / m.file, path)
            if compiled:
                self.bring_back_what_was_built()
        return {0: "survived", 1: "killed"}.get(status, f"pytest ended with {status}: {out}")


def trouble(rows: list[Mutant], copies: queue.Queue, jobs: int, bar) -> dict[Selection, str]:
    """Return {selection of tests: output} for selections that do not pass on the faultless copies."""
    found: dict[Selection, str] = {}

    def check(key: Selection) -> None:
        copy = copies.get()
        try:
            status, out = copy.run(key)
        finally:
            copies.put(copy)
        if status:
            found[key] = f"the tests fail without a fault (pytest {status}): {out}"
        bar.update()

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(check, dict.fromkeys(m.selection for m in rows)))
    return found


def main() -> int:
    from tqdm import tqdm
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="only rows with this text in table, words or file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    rows = [m for m in read_mutants() if options.only in str(m)]
    if not rows:
        print(f"no mutant has '{options.only}' in its table, words or file")
        return 2
    with tempfile.TemporaryDirectory(prefix="flowedu-mutants-") as folder:
        copies: queue.Queue[Copy] = queue.Queue()
        for k in range(min(options.jobs, len(rows))):
            copies.put(Copy(Path(folder, str(k))))
        selections = len({m.selection for m in rows})
        with tqdm(total=selections, desc="without a fault", unit="run") as bar:
            bad = trouble(rows, copies, options.jobs, bar)
        verdicts: dict[Mutant, str] = {}
        lock = threading.Lock()
        with tqdm(total=len(rows), desc="mutants", unit="fault") as bar:
            def judge(m: Mutant) -> None:
                copy = copies.get()
                try:
                    verdict = bad.get(m.selection) or copy.try_out(m)
                finally:
                    copies.put(copy)
                with lock:
                    verdicts[m] = verdict
                    if verdict != "killed":
                        tqdm.write(f"{verdict.partition(':')[0].upper()}  {m}")
                    bar.update()

            with ThreadPoolExecutor(options.jobs) as pool:
                list(pool.map(judge, rows))
    killed = sum(v == "killed" for v in verdicts.values())
    for table, group in itertools.groupby(rows, lambda m: m.table):
        group = list(group)
        print(f"{table:16s} {sum(verdicts[m] == 'killed' for m in group):4d} of {len(group)} killed")
    rest = {m: v for m, v in verdicts.items() if v != "killed"}
    for m, verdict in rest.items():
        print(f"\n{m}\n  tests: {m.tests}\n  {verdict}")
    print(f"\n{killed} of {len(rows)} mutants killed; {sum(v == 'survived' for v in rest.values())} survived")
    return 1 if rest else 0


if __name__ == "__main__":
    sys.exit(main())
