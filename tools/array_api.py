"""Run the test suite of the Python array API standard on flow.array_api and on its peers.

    python tools/array_api.py [--suite FOLDER] [--only flowedu] [--examples 20] [pytest's arguments]

The suite is searched in the folder of --suite or FLOWEDU_ARRAY_API_TESTS, then in build/array-api-tests, then
among installed packages. Without it, nothing runs, and the exit status is 0. tests/array_api/xfails.txt lists
the expected failures with reasons. PyTorch and NumPy, both through array-api-compat, also run for comparison
if they are installed.
"""
from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "tests" / "array_api"
PINNED = "55fcc60"                       # the commit to which xfails.txt applies
LIBRARIES = {"flowedu": "flowedu.array_api", "torch": "array_api_compat.torch",
             "numpy": "array_api_compat.numpy"}
MISSING = """array API: the suite data-apis/array-api-tests is not here, so nothing was tested. To get it:
  git clone --recursive https://github.com/data-apis/array-api-tests build/array-api-tests
  git -C build/array-api-tests checkout {pinned} && git -C build/array-api-tests submodule update
or FLOWEDU_ARRAY_API_TESTS=/path/to/it"""


def find_suite(folder: str | None) -> Path | None:
    """Return the folder of the suite, which contains array_api_tests/ and array-api/, or None."""
    places = [Path(p) for p in (folder, os.environ.get("FLOWEDU_ARRAY_API_TESTS")) if p]
    places.append(ROOT / "build" / "array-api-tests")
    spec = importlib.util.find_spec("array_api_tests")
    if spec is not None and spec.origin:
        places.append(Path(spec.origin).parents[1])
    found = [p for p in places if (p / "array_api_tests").is_dir() and (p / "array-api" / "src").is_dir()]
    return found[0].resolve() if found else None


def find_commit(suite: Path) -> str:
    """Return the commit of the suite's folder, or "unknown" if it is not a checkout."""
    run = subprocess.run(["git", "-C", str(suite), "rev-parse", "--short=7", "HEAD"], capture_output=True,
                         encoding="utf-8")
    return run.stdout.strip() or "unknown"


def run_suite(suite: Path, library: str, examples: int, arguments: list[str], log: Path) -> dict:
    """Run the suite on one library; return {"counts": {outcome: number}, "wrong": ids of failures}."""
    with tempfile.TemporaryDirectory() as d:
        report = Path(d, "report.json")
        env = {**os.environ, "ARRAY_API_TESTS_MODULE": LIBRARIES[library],
               "FLOWEDU_ARRAY_API_REPORT": str(report),
               "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
               "PYTHONDONTWRITEBYTECODE": "1"}
        if library == "flowedu":
            env |= {"FLOWEDU_ARRAY_API_XFAILS": str(HERE / "xfails.txt"),
                    "ARRAY_API_TESTS_SKIP_DTYPES": "complex64,complex128,uint16,uint32,uint64"}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "suite_plugin", "-p", "no:cacheprovider",
                   "--tb=short",
                   f"--max-examples={examples}", "--derandomize", "--disable-deadline", *arguments,
                   "array_api_tests"]
        with log.open("w", encoding="utf-8") as out:
            subprocess.run(command, cwd=suite, env=env, stdout=out, stderr=subprocess.STDOUT)
        if not report.exists():
            raise SystemExit(f"the suite did not run on {library}: see {log}")
        return json.loads(report.read_text(encoding="utf-8"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", help="folder of the suite")
    parser.add_argument("--only", choices=LIBRARIES, help="one library instead of all that are installed")
    parser.add_argument("--examples", type=int, default=20, help="inputs drawn for each case")
    options, arguments = parser.parse_known_args()
    suite = find_suite(options.suite)
    if suite is None:
        print(MISSING.format(pinned=PINNED))
        return 0
    missing = [name for name in ("ndindex", "pytest_jsonreport") if not importlib.util.find_spec(name)]
    if missing:
        print(f"array API: the suite needs {' and '.join(missing)}, so nothing was tested. To get them:\n"
              "  pip install ndindex pytest-json-report")
        return 0
    logs = ROOT / "build" / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    commit = find_commit(suite)
    print(f"data-apis/array-api-tests {commit}, {options.examples} inputs for each case, derandomized"
          + ("" if commit == PINNED else f" (tests/array_api/xfails.txt was written for {PINNED})"))
    print(f"{'':10}{'passed':>8}{'failed':>8}{'xfailed':>8}{'xpassed':>8}{'skipped':>8}", flush=True)
    wrong = []
    for library in [options.only] if options.only else LIBRARIES:
        needed = ("array_api_compat", library) if library != "flowedu" else ("flowedu",)
        if not all(importlib.util.find_spec(name) for name in needed):
            print(f"{library:10}not compared: {' or '.join(needed)} is not installed")
            continue
        report = run_suite(suite, library, options.examples, arguments, logs / f"array-api-{library}.log")
        n = report["counts"]
        numbers = (n["passed"], n["failed"] + n["error"], n["xfailed"], n["xpassed"], n["skipped"])
        print(f"{library:10}" + "".join(f"{number:8}" for number in numbers), flush=True)
        wrong += report["wrong"] if library == "flowedu" else []
    for test in wrong:
        print(f"  failed: {test}")
    if wrong:
        print(f"see {logs / 'array-api-flowedu.log'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
