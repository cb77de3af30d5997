"""Run the tests nearest to a source file.

    python tools/near.py src/flowedu/core/sbp/boxing/geometry.py   run them (make test-near FILE=...)
    python tools/near.py --record                                  measure tests/near.json (about 20 minutes)

`tests/near.json` has a list of test files for each Python file of the library. --record runs the fast tests
with `coverage`, with one context for each test file. The list of a source file first covers the executed
lines in little time: the next test file is always the one that covers most new lines per second. After that
come the test files that have most of their lines in the source file, until the list takes SECONDS. Compiled
files have no lines to record. Their tests, and the tests of files that only long tests execute, are up to
eight test files that contain the name of the file or of its folder.
"""
from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAP = ROOT / "tests" / "near.json"
SECONDS = 30                                        # in one process with coverage; a normal run takes less
EXAMPLE = "make test-near FILE=src/flowedu/core/sbp/boxing/geometry.py"


class Recorder:
    """A pytest plugin that records lines and seconds of each test file in the folder NEAR_DATA."""

    def __init__(self, folder: Path) -> None:
        import coverage

        self.seconds: dict[str, float] = defaultdict(float)
        self.folder = folder
        self.coverage = coverage.Coverage(data_file=str(folder / f"lines.{os.getpid()}"),
                                          source=[str(ROOT / "src"), str(ROOT / "course")],
                                          config_file=False, messages=False)

    def pytest_sessionstart(self, session) -> None:
        self.coverage.start()

    def pytest_runtest_setup(self, item) -> None:
        self.coverage.switch_context(item.path.relative_to(ROOT).as_posix())

    def pytest_runtest_logreport(self, report) -> None:
        self.seconds[report.nodeid.partition("::")[0]] += report.duration

    def pytest_sessionfinish(self, session) -> None:
        self.coverage.stop()
        self.coverage.save()
        (self.folder / f"seconds.{os.getpid()}.json").write_text(json.dumps(self.seconds), encoding="utf-8")


def pytest_configure(config) -> None:
    if "NEAR_DATA" in os.environ:
        config.pluginmanager.register(Recorder(Path(os.environ["NEAR_DATA"])))


def choose_tests(lines: dict[str, set[int]], totals: dict[str, int], seconds: dict[str, float]) -> list[str]:
    """Return test files for one source file.

    lines: {test file: executed lines of the source file}; totals: executed lines of all source files.
    """
    chosen: list[str] = []
    missing, left = set().union(*lines.values()), float(SECONDS)
    affordable = {test for test in lines if seconds[test] <= SECONDS}

    def gain(test: str) -> tuple[float, float, str]:
        return len(lines[test] & missing) / (seconds[test] + 0.2), len(lines[test]) / totals[test], test
    while affordable:
        best = max(affordable, key=gain)
        if not lines[best] & missing and len(chosen) >= 8:
            break
        chosen.append(best)
        missing.difference_update(lines[best])
        left -= seconds[best]
        affordable = {test for test in affordable - {best} if seconds[test] <= left}
    return chosen


def record() -> None:
    import coverage

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {**os.environ, "NEAR_DATA": name, "PYTHONPATH": str(ROOT / "tools")}
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "near", "-m", "not slow"]
        subprocess.run(command, cwd=ROOT, env=environment)
        lines: dict[str, dict[str, set[int]]] = defaultdict(dict)
        seconds: dict[str, float] = defaultdict(float)
        for file in folder.glob("seconds.*.json"):
            for test, took in json.loads(file.read_text(encoding="utf-8")).items():
                seconds[test] = max(seconds[test], took)
        data = coverage.CoverageData(basename=str(folder / "all"))
        for file in folder.glob("lines.*"):
            part = coverage.CoverageData(basename=str(file))
            part.read()
            data.update(part)
        for source in data.measured_files():
            by_line = data.contexts_by_lineno(source)
            tests = lines[Path(source).relative_to(ROOT).as_posix()]
            for number, contexts in by_line.items():
                for test in contexts:
                    if test:
                        tests.setdefault(test, set()).add(number)
    totals: dict[str, int] = defaultdict(int)
    for tests in lines.values():
        for test, numbers in tests.items():
            totals[test] += len(numbers)
    nearest = {source: choose_tests(tests, totals, seconds) for source, tests in sorted(lines.items())
               if tests}
    draft = MAP.with_suffix(".new")
    draft.write_text(json.dumps(nearest, indent=1) + "\n", encoding="utf-8")
    draft.replace(MAP)


def find_tests(path: Path) -> list[str]:
    """Return the test files for a source file, or exit with a message."""
    try:
        name = path.resolve().relative_to(ROOT).as_posix()
    except ValueError:
        name = ""
    if not name or not path.is_file():
        sys.exit(f"test-near: there is no file {path} in this checkout\n  fix: {EXAMPLE}")
    if name.startswith("tests/"):
        return [name]
    tests = json.loads(MAP.read_text(encoding="utf-8")).get(name, [])
    module = ".".join(Path(name).with_suffix("").parts[-2:])
    for word in (module, path.stem, path.parent.name):
        if not tests:
            command = ["git", "grep", "-liwF", "-e", word, "--", "tests/*/test_*.py"]
            tests = subprocess.run(command, cwd=ROOT, capture_output=True,
                                   encoding="utf-8").stdout.splitlines()[:8]
    tests = [test for test in tests if (ROOT / test).is_file()]
    if not tests:
        sys.exit(f"test-near: no test is recorded for {name}\n  fix: make test, or python tools/near.py "
                 f"--record")
    return tests


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests nearest to a source file.")
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--record", action="store_true", help="measure tests/near.json again")
    options, rest = parser.parse_known_args()
    if options.record:
        record()
        return 0
    if options.file is None:
        sys.exit(f"test-near: no file is given\n  fix: {EXAMPLE}")
    tests = find_tests(options.file)
    print(f"{options.file}: {', '.join(tests)}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-m", "not slow", *tests, *rest]
    return subprocess.run(command, cwd=ROOT).returncode


if __name__ == "__main__":
    sys.exit(main())
