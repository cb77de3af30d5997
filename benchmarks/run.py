"""flowedu and its peers, side by side: `make bench`, or `python benchmarks/run.py [--threads 1 2] [--quick] [rows ...]`.

All contenders of a row run in this one process, interleaved, many rounds; the table gives minima and medians and the
ratio peer time / our time (above 1: we are faster). Every row first checks that the contenders compute the same thing.
"""
from __future__ import annotations

import argparse
import contextlib
import datetime
import gc
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# The last contender's idle threads still spin for a while and would slow the next one down: those of NumPy's OpenBLAS
# for some 0.1 s (our MLP step then takes twice as long), others for a few milliseconds.
SETTLE = 0.02
SETTLE_NUMPY = 0.25
WARM = 0.03


@dataclass
class Row:
    """One line of the table: name -> a function that does the work once."""

    name: str
    make: Callable[[], dict[str, Callable[[], object]]] | None
    target: float                     # ratio to the peer (or to "without") that this project wants to reach; 0: none
    inner: int = 1                    # calls per timing, so that a timing is never below some microseconds
    rounds: int = 30
    timed: Callable[[int], dict[str, list[float]]] | None = None      # in processes of their own: rounds -> timings


def measure(row: Row, rounds: int) -> dict[str, list[float]]:
    """Interleaved timings of a row's contenders, in seconds per call."""
    if row.timed is not None:
        return row.timed(rounds)
    contenders = row.make()
    for f in contenders.values():                      # warm-up: compile, allocate, fill caches
        for _ in range(max(3, row.inner // 10)):
            f()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    gc.disable()
    try:
        for _ in range(rounds):
            for name, f in contenders.items():
                time.sleep(SETTLE_NUMPY if "numpy" in contenders else SETTLE)
                warm = time.perf_counter() + WARM
                while time.perf_counter() < warm:        # sleeping cores and threads wake up slowly
                    f()
                start = time.perf_counter()
                for _ in range(row.inner):
                    f()
                times[name].append((time.perf_counter() - start) / row.inner)
    finally:
        gc.enable()
    return times


def unit(seconds: float) -> str:
    return f"{seconds * 1e6:.2f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def processor() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def busy() -> str:
    """A warning when something else is using the machine: ratios then mean little."""
    try:
        load = os.getloadavg()[0]
    except OSError:
        return ""
    return f"  (load average {load:.1f}: something else is running; ratios may be off)" if load > 1.2 else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="rows to run (default: all)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--quick", action="store_true", help="few rounds: a smoke test, not a measurement")
    options = parser.parse_args()

    import flowedu as flow
    with contextlib.suppress(ImportError):
        import torch  # noqa: F401  (before flowedu: each reads OpenMP's settings as the user left them)

    from rows import all_rows, peer_threads, versions

    print(f"{datetime.date.today()}  {processor()}, {os.cpu_count()} cores  {versions()}{busy()}")
    print("ratio = peer time / our time, of minima (of medians); NumPy's OpenBLAS uses its own number of threads")
    rows = [row for row in all_rows() if not options.rows or any(r in row.name for r in options.rows)]
    here = [row for row in rows if row.timed is None]
    for threads in options.threads if here else ():
        flow.set_num_threads(threads)
        peer_threads(threads)
        print(f"\n{threads} thread{'s' if threads > 1 else ''}\n{HEAD}")
        for row in here:
            print(line(row, measure(row, 4 if options.quick else row.rounds)), flush=True)
    if apart := [row for row in rows if row.timed is not None]:
        print(f"\nprocesses of their own\n{HEAD}")
        for row in apart:
            print(line(row, measure(row, 4 if options.quick else row.rounds)), flush=True)


HEAD = f"{'':44s} {'flowedu':>10s} {'torch':>10s} {'ratio':>15s} {'numpy':>10s} {'ratio':>8s}   goal"


def line(row: Row, times: dict[str, list[float]]) -> str:
    """A row of the table."""
    if not times:
        return row.name
    ours = times["flowedu"]
    cells = [f"{row.name:44s} {unit(min(ours)):>10s}"]
    for peer in ("torch", "numpy"):
        if peer not in times:
            cells.append(f"{'-':>10s} {'-':>{15 if peer == 'torch' else 8}s}")
            continue
        theirs = times[peer]
        low, mid = min(theirs) / min(ours), statistics.median(theirs) / statistics.median(ours)
        ratio = f"{low:.2f} ({mid:.2f})" if peer == "torch" else f"{low:.2f}"
        cells.append(f"{unit(min(theirs)):>10s} {ratio:>{15 if peer == 'torch' else 8}s}")
    more = [n for n in times if n not in ("flowedu", "torch", "numpy")]     # without a feature, other ways, other peers
    for n in more:
        low, mid = min(times[n]) / min(ours), statistics.median(times[n]) / statistics.median(ours)
        cells.append(f" {n}: {unit(min(times[n]))} {low:.2f} ({mid:.2f})")
    return " ".join(cells) + (f"   {row.target:.2g}" if row.target else "")


if __name__ == "__main__":
    main()
