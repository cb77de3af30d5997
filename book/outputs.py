"""Outputs of the code blocks of the lessons.

Each page runs in a process of its own. A page that has not changed is not run again. Pages with GPU kernels
run in the simulator if `make test-cuda` has set it up.

    python book/outputs.py PAGE OUT.json     one page
"""
from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tqdm.auto import tqdm

from flowedu.errors.files import write_text
from flowedu_course.lesson import run_lesson

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "book" / "outputs"
HERE = {"PYTHONPATH": str(ROOT / "src")}
DRAWN = ".drawn.json"
LIMIT = 300                                    # seconds for a page


def record(page: Path, out: Path) -> None:
    """Run a page and write what its Python blocks print, in order; None for one that was left out."""
    printed: list[str | None] = []
    run_lesson(page, lambda text: printed.append(None if text.startswith(f"{page}:")
                                                 and ": left out: " in text
                                                 else text.replace(f"{ROOT}/", "")))
    write_text(out, json.dumps(printed))


def all_outputs(pages: list[Path], kept: Path) -> dict[Path, list[str | None]]:
    """{page: what its Python blocks print}. kept: the folder of what is known.

    Raises RuntimeError: a lesson fails.
    """
    sources = (f for part in ("src", "course") for f in (ROOT / part).rglob("*"))
    library = _digest(sorted(f for f in sources if f.suffix in (".py", ".so", ".cu", ".h")))
    cuda = _cuda()
    files = {p: kept / f"{p.parent.name}-{p.stem}-{_key(p, library + cuda)}.json" for p in pages}
    workers = min(4, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
                  or 1)
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        missing = [p for p, f in files.items() if not f.exists()]
        # The slow ones first.
        missing.sort(key=lambda p: "needs=" not in p.read_text(encoding="utf-8"))
        ran = pool.map(_run, missing, [files[p] for p in missing], [cuda] * len(missing))
        failed = [text for text in tqdm(ran, "running the lessons", len(missing), unit="page", disable=None)
                  if text]
    if failed:
        raise RuntimeError("\n".join(failed))
    names = {f"{p.parent.name}-{p.stem}" for p in pages}
    for old in set(kept.glob("*.json")) - {g for f in files.values() for g in (f, f.with_suffix(DRAWN))}:
        if old.name.rpartition("-")[0] in names:
            old.unlink()
    return {p: json.loads(f.read_text(encoding="utf-8")) for p, f in files.items()}


def pictures(page: Path, kept: Path) -> dict[str, str]:
    """Return {name: text} of the pictures (.svg, .html) that the blocks of a page wrote when it was run."""
    found, = kept.glob(f"{page.parent.name}-{page.stem}-*{DRAWN}")
    return json.loads(found.read_text(encoding="utf-8"))


def _cuda() -> str:
    """What FLOWEDU_CUDA is to be: as it was chosen, else the simulator if it is there."""
    if "FLOWEDU_CUDA" in os.environ:
        return os.environ["FLOWEDU_CUDA"]
    ask = [sys.executable, "-c", "import flowedu; print(flowedu.cuda.is_available())"]
    surroundings = {**os.environ, **HERE, "FLOWEDU_CUDA": "sim"}
    done = subprocess.run(ask, capture_output=True, encoding="utf-8", env=surroundings, timeout=LIMIT)
    return "sim" if done.stdout.strip() == "True" else "off"


def _run(page: Path, out: Path, cuda: str = "off") -> str:
    """Run one page in its own process and an empty folder; "" or why it failed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(Path(__file__).resolve()), str(page), str(out.resolve())]
        cuda = cuda if "needs=" in page.read_text(encoding="utf-8") else "off"
        surroundings = {**os.environ, **HERE, "FLOWEDU_NUM_THREADS": "1", "FLOWEDU_CUDA": cuda}
        try:
            done = subprocess.run(command, capture_output=True,
                                  encoding="utf-8", cwd=folder, env=surroundings, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return f"{page}: the lesson takes more than {LIMIT} s"
        files = sorted(f for f in Path(folder).iterdir() if f.suffix in (".svg", ".html"))
        drawn = {f.name: f.read_text(encoding="utf-8") for f in files}
        write_text(out.with_suffix(DRAWN), json.dumps(drawn))
    return "" if done.returncode == 0 else f"{page}: {done.stderr.strip()[-2000:]}"


def _digest(files: list[Path]) -> str:
    """Of dates and sizes: the kernels are large."""
    facts = [(str(f.relative_to(ROOT)), f.stat().st_mtime_ns, f.stat().st_size) for f in files]
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _key(page: Path, library: str) -> str:
    return hashlib.sha256(page.read_bytes() + library.encode()).hexdigest()[:16]


if __name__ == "__main__":
    record(Path(sys.argv[1]), Path(sys.argv[2]))
