"""Run machine-dependent tests under the settings of other machines (`make test-everywhere`).

    python tools/test_everywhere.py                 all combinations
    python tools/test_everywhere.py --sample        a third of them, chosen by the commit: what CI runs
    python tools/test_everywhere.py --list          show the combinations and the tests, and run nothing
    python tools/test_everywhere.py -- -x tests/fast        other tests, and options of pytest

The instruction sets and the numbers of threads form a Latin square: each of the nine pairs runs once, and
each third of the square has every instruction set and every number of threads once. The two hash seeds
alternate. A full product would take twice as long, and no known fault needs a hash seed together with a pair.
All combinations run in a copy of the checkout, in a folder whose name has a space, a quote, and an umlaut,
under the C locale without Python's UTF-8 mode. `make test` itself runs in the checkout and in the user's
locale.
"""
from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src" / "flowedu" / "_kernels"))
from processor import NEEDS, cpu_flags  # noqa: E402  (needs no compiled kernels)

FOLDER = "a b'ü"
ISAS, THREADS, HASH_SEEDS = ("base", "v3", "v4"), (1, 2, 4), (0, 1)
THIRDS = 3
JOBS = 2                                            # combinations that run in parallel

# A test belongs here if its result can depend on the vector width, the number of threads, the order of a set,
# the path of the checkout, or the locale. Laws that compare an op with NumPy on every element are left out:
# tests/laws has them for all instruction sets.
SENSITIVE = ({
     "tests/laws/test_plan_quality.py": "memory plans contain scratch that grows with vector width and "
     "threads", "tests/fast/test_winograd.py": "convolutions that exist for some instruction sets only",
     "tests/fast/test_winograd_range.py": "convolutions that exist for some instruction sets only",
     "tests/fast/test_inverted_residual.py": "a pass and a kernel for some instruction sets only",
     "tests/graph/test_models.py": "plans, passes and trained models",
     "tests/graph/test_saving.py": "files of graphs",
     "tests/models": "trainings",
     "tests/amp/test_trained_models.py": "trainings: rounding depends on vector width and threads",
     "tests/core/job/test_training.py": "trainings",
     "tests/oneflow04/test_scripts.py": "trainings, programs as files",
     "tests/oneflow04/test_seeds.py": "trainings",
     "tests/saving/test_checkpoint_files.py": "paths and text files",
     "tests/utils/test_tensorboard.py": "paths and text files",
     "tests/structure/test_paths.py": "reads the checkout: paths",
     "tests/structure/test_house.py": "reads the checkout: paths, sets of names",
     "tests/errors/test_places.py": "prints lines of files",
     "tests/doors/test_links.py": "links are URLs of paths",
     "tests/doors/test_syllabus.py": "links are URLs of paths",
     "tests/dist/test_launch.py": "starts processes by path, and parses what mpiexec prints",
 })


class Combination(NamedTuple):
    isa: str
    threads: int
    hash_seed: int
    third: int

    def __str__(self) -> str:
        return f"ISA {self.isa:<4}  threads {self.threads}  hash seed {self.hash_seed}"


def combinations() -> list[Combination]:
    """Return the nine combinations: row i and column j of the Latin square are in the third (j - i) % 3."""
    return [Combination(isa, threads, HASH_SEEDS[(3 * i + j) % len(HASH_SEEDS)], (j - i) % THIRDS)
            for i, isa in enumerate(ISAS) for j, threads in enumerate(THREADS)]


def can_run(isa: str) -> bool:
    """Return True if the processor has this instruction set."""
    return NEEDS[isa] <= cpu_flags()


def choose_third(commit: str) -> int:
    """Return the third that a commit runs. Over many commits, every third has its turn."""
    return int(commit[:12] or "0", 16) % THIRDS


def read_commit() -> str:
    """Return the commit of the checkout, or "" outside of one."""
    done = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True,
                          encoding="ascii")
    return done.stdout.strip() if done.returncode == 0 else ""


def copy_checkout(target: Path) -> None:
    """Copy the working tree with its compiled kernels to `target`, as a new repository; .venv is a link."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"],
                            capture_output=True)
    if listed.returncode == 0:
        subprocess.run(["git", "clone", "-q", "--shared", "--no-checkout", str(ROOT), str(target)],
                       check=True)
        subprocess.run(["git", "-C", str(target), "reset", "-q"], check=True)
        files = [Path(os.fsdecode(name)) for name in listed.stdout.split(b"\0") if name]
    else:
        files = [p.relative_to(ROOT) for top in ("*.*", "Makefile", "src/**/*", "course/**/*", "tests/**/*",
                                                 "tools/**/*",
                                                 "chapters/**/*", "book/**/*", "docs/**/*", "benchmarks/**/*")
                 for p in ROOT.glob(top)]
    files += [p.relative_to(ROOT) for p in (ROOT / "src").rglob("*.so")]
    for file in files:
        if (ROOT / file).is_file():
            (target / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / file, target / file)
    (target / ".venv").symlink_to(ROOT / ".venv")


def environment(row: Combination, target: Path) -> dict[str, str]:
    """Return the environment variables of a combination.

    PyTorch cannot be imported from such a path under the C locale, so tests run without it. With more threads
    than processors, waiting threads sleep (OMP_WAIT_POLICY) instead of using the time of others.
    """
    own = ("LC_", "LANG", "FLOWEDU_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(own) and k != "CI"}
    return {**env, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
            "PYTHONHASHSEED": str(row.hash_seed),
            "FLOWEDU_ISA": row.isa, "FLOWEDU_NUM_THREADS": str(row.threads), "OMP_WAIT_POLICY": "passive",
            "HYPOTHESIS_PROFILE": "debug", "FLOWEDU_WITHOUT": "torch",
            "PYTHONPATH": f"{target / 'src'}{os.pathsep}{target / 'course'}", "PYTHONDONTWRITEBYTECODE": "1"}


def check_import(target: Path, env: dict[str, str]) -> None:
    """Exit with a message unless `import flowedu` in the copy imports the copy."""
    python = str(target / ".venv" / "bin" / "python")
    done = subprocess.run([python, "-c",
                           "import os, sys, flowedu; sys.stdout.buffer.write(os.fsencode(flowedu.__file__))"],
                          cwd=target, env=env, capture_output=True)
    if os.fsdecode(done.stdout) != str(target / "src" / "flowedu" / "__init__.py"):
        sys.exit(
            f"the copy in {str(target)!a} does not import itself: {done.stdout!r} {done.stderr[-500:]!r}")


def run(row: Combination, target: Path, arguments: list[str]) -> tuple[int, str]:
    """Run the tests of one combination; return pytest's exit code and the line of the summary.

    pytest-xdist cannot send a non-ASCII path under the C locale, so combinations run in parallel instead of
    tests.
    """
    print(f"{row} ...", flush=True)
    env, began = environment(row, target), time.monotonic()
    check_import(target, env)
    cache = target.parent / f"{row.isa}-{row.threads}"
    command = [str(target / ".venv" / "bin" / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider",
               "--tb=short", f"--basetemp={cache}", *arguments]
    done = subprocess.run(command, cwd=target, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = done.stdout.decode("utf-8", "replace").encode("ascii", "backslashreplace").decode().splitlines()
    last = next((line.strip("= ") for line in reversed(lines) if line.strip()), "")
    outcome = "ok    " if done.returncode == 0 else "FAILED"
    line = f"{row}  {outcome}  {time.monotonic() - began:4.0f} s  {last}"
    start = next((i for i, text in enumerate(lines) if text.startswith("====")), 0)
    print(*(lines[start:] if done.returncode else []), line, sep="\n", flush=True)
    return done.returncode, line


def main() -> int:
    parser = argparse.ArgumentParser("tools/test_everywhere.py", description=__doc__.splitlines()[0])
    parser.add_argument("--sample", action="store_true",
                        help="a third of the combinations, chosen by the commit")
    parser.add_argument("--list", action="store_true",
                        help="show the combinations and the tests, and run nothing")
    parser.add_argument("--third", type=int, choices=range(THIRDS), help="this third of the combinations")
    parser.add_argument("tests", nargs="*", help="tests and options of pytest, after --; default: the tests "
                        "of the list")
    options = parser.parse_args()
    third = choose_third(read_commit()) if options.sample else options.third
    rows = [c for c in combinations() if third is None or c.third == third]
    if options.list:
        print(*(f"{row}{'' if can_run(row.isa) else '  (not on this processor)'}" for row in rows), sep="\n")
        print(*(f"{path:<36}{reason}" for path, reason in SENSITIVE.items()), sep="\n")
        return 0
    arguments = options.tests or ["-m", "not slow", *(p for p in SENSITIVE if (ROOT / p).exists())]
    absent = sorted({row.isa for row in rows if not can_run(row.isa)})
    with tempfile.TemporaryDirectory(prefix="flowedu-") as folder, ThreadPoolExecutor(JOBS) as pool:
        target = Path(folder, FOLDER)
        copy_checkout(target)
        results = list(pool.map(lambda row: run(row, target, arguments),
                                [row for row in rows if can_run(row.isa)]))
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print("", *(line for _, line in results), *(f"left out: this processor does not have {isa}"
                                                for isa in absent),
          f"{usage.ru_utime + usage.ru_stime:.0f} s of processor in all", sep="\n")
    return 1 if any(code for code, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
