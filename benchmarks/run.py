"""Compare the speed of flowedu and its peers (`make bench`).

    python benchmarks/run.py [--threads 1 2] [--quick] [rows ...]

With `--chart FILE.svg` the results are also merged into FILE.json, which has earlier results of other rows on
this machine, and all of them are drawn (charts.py). `--redraw` only draws the results in the file.

All contenders of a row run in this process, interleaved, in many rounds. The table has minima, medians, and
the ratio peer time / our time (above 1: flowedu is faster). Every row first checks that the contenders
compute the same result.
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

import charts
import kept

# The idle threads of the previous contender still spin for a while and would slow the next one down. Those of
# NumPy's OpenBLAS spin for about 0.1 s, in which our MLP step takes twice as long, and others for a few
# milliseconds.
SETTLE = 0.02
SETTLE_NUMPY = 0.25
WARM = 0.03


OURS = ("flowedu", "job", "our eager")              # other names are peers, or flowedu without a feature


@dataclass
class Row:
    """One line of the table. make(threads) returns {name: function that does the work once}."""

    name: str
    make: Callable[[int], dict[str, Callable[[], object]]] | None
    target: float                     # the project's goal for the ratio to the best peer; 0: none
    inner: int = 1                    # calls per timing, so that a timing takes at least some microseconds
    rounds: int = 30
    threads: tuple[int, ...] = ()     # numbers of threads of this row; empty: all requested ones
    timed: Callable[[int], dict[str, list[float]]] | None = None      # rounds -> timings from other processes
    settle: float = SETTLE            # seconds of rest before each contender; more if they read ahead
    share: Callable[[int, float], str] | None = None                  # (threads, our time) -> share of peak


def measure(row: Row, rounds: int, threads: int = 0) -> dict[str, list[float]]:
    """Return interleaved timings of a row's contenders, in seconds per call."""
    if row.timed is not None:
        return row.timed(rounds)
    contenders = row.make(threads)
    for f in contenders.values():                      # warm-up: compile, allocate, fill caches
        for _ in range(max(3, row.inner // 10)):
            f()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    gc.disable()
    try:
        for _ in range(rounds):
            for name, f in contenders.items():
                time.sleep(max(row.settle, SETTLE_NUMPY if "numpy" in contenders else SETTLE))
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
    """Return the name of the processor."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def busy() -> str:
    """Return a warning if other programs use the machine, which makes ratios unreliable, else ""."""
    try:
        load = os.getloadavg()[0]
    except OSError:
        return ""
    return f"  (load average {load:.1f}: something else is running; ratios may be off)" if load > 1.2 else ""


@dataclass(frozen=True)
class Result:
    """The timings of a row."""

    name: str
    target: float
    times: dict[str, list[float]]

    def ratio(self, peer: str) -> tuple[float, float]:
        """Return peer time / our time, of the minima and of the medians."""
        ours, theirs = self.times["flowedu"], self.times[peer]
        return min(theirs) / min(ours), statistics.median(theirs) / statistics.median(ours)

    def peers(self) -> list[str]:
        """Return the names of the peers, the fastest first."""
        return sorted((n for n in self.times if n not in OURS), key=lambda n: min(self.times[n]))

    def kept(self, quick: bool) -> dict:
        """Return the data for the file: minimum and median of every contender in seconds."""
        return {"date": str(datetime.date.today()), "quick": quick, "times": {
            name: [float(f"{f(t):.6g}") for f in (min, statistics.median)] for name, t in self.times.items()}}

    def line(self) -> str:
        """Return the line for the terminal: our time, then the ratios, the fastest peer first."""
        if not self.times:
            return self.name
        cells = [f"{self.name:48s} {unit(min(self.times['flowedu'])):>10s}"]
        for name in (*self.peers(), *(n for n in OURS[1:] if n in self.times)):
            low, mid = self.ratio(name)
            cells.append(f"{name} {low:.2f} ({mid:.2f})")
        return "  ".join(cells) + (f"   goal {self.target:.2g}" if self.target else "")


def _format_ratio(result: Result, peer: str) -> str:
    return "{:.2f} ({:.2f})".format(*result.ratio(peer))


def markdown(results: dict[str, dict[int, Result]]) -> str:
    """Return the table of docs/speed.md: for each number of threads the best peer and PyTorch eager."""
    counts = sorted({n for by in results.values() for n in by})
    head = [f"{n} thread{'s' if n > 1 else ''}: {what}" for n in counts
            for what in ("best peer", "PyTorch eager")]
    lines = [f"| | {' | '.join(head)} | our time |", "|---" * (len(head) + 2) + "|"]
    for name, by in results.items():
        if not any(peer.startswith("torch") for result in by.values() for peer in result.times):
            continue                                 # compared with ourselves
        cells = []
        for n in counts:
            result = by.get(n)
            peers = result.peers() if result else []
            cells.append(f"{_format_ratio(result, peers[0])} {peers[0]}" if peers else "")
            cells.append(_format_ratio(result, "torch eager") if "torch eager" in peers else "")
        cells.append(unit(min(by[max(by)].times["flowedu"])))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def merged(path: Path, here: dict[str, str], results: dict[str, dict[int, Result]], order: list[str],
           quick: bool, anew: bool = False) -> dict:
    """Merge results into those of other rows in the file, in the order of the table, and return all of them.

    here: machine and versions; results of another machine or of other versions are refused. quick: measured
    with few rounds. anew: discard the results in the file.
    """
    found = {} if anew else kept.load(path)
    other = [f"{what} {found[what]}" for what in here if found and found.get(what) != here[what]]
    if other:
        raise SystemExit(f"{path} has results of {'; '.join(other)}: --anew forgets them, or name "
                         f"another file")
    rows = {name: dict(by) for name, by in found.get("rows", {}).items()}
    for name, by in results.items():
        rows.setdefault(name, {}).update({str(n): result.kept(quick) for n, result in by.items()})
    places = {name: i for i, name in enumerate(order)}
    rows = dict(sorted(rows.items(), key=lambda item: places.get(item[0], len(places))))
    found = {**here, "drawn_by": charts.version(), "rows": rows}
    kept.save(path, found)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*", help="rows to run (default: all)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--quick", action="store_true", help="few rounds: a smoke test, not a measurement")
    parser.add_argument("--markdown", action="store_true", help="also print the table of docs/speed.md")
    parser.add_argument("--chart", type=Path, metavar="FILE.svg",
                        help="draw the ratios; results are kept in FILE.json")
    parser.add_argument("--anew", action="store_true", help="with --chart: forget what FILE.json has")
    parser.add_argument("--redraw", action="store_true",
                        help="with --chart: measure nothing, draw what FILE.json has")
    options = parser.parse_args()
    if (options.anew or options.redraw) and not options.chart:
        parser.error("--anew and --redraw are about --chart FILE.svg: name the file")
    file = options.chart and options.chart.with_suffix(".json")
    if options.redraw:
        found = kept.load(file)
        if not found:
            parser.error(f"there is no {file}: measure first, without --redraw")
        kept.save(file, {**found, "drawn_by": charts.version()})
        print("drawn:", charts.draw_ratios(found, options.chart))
        return
    if options.chart:
        charts.version()                                  # before minutes of measuring

    with contextlib.suppress(ImportError):
        import torch  # noqa: F401  (before flowedu, which would bring its own settings of OpenMP)
    import flowedu as flow
    from rows import all_rows, peer_threads, versions

    print(f"{datetime.date.today()}  {processor()}, {os.cpu_count()} cores  {versions()}{busy()}")
    print("our time; then others' time / ours (above 1: we are faster), of minima (of medians), the fastest "
          "peer first")
    table = all_rows()
    rows = [row for row in table if not options.rows or any(r in row.name for r in options.rows)]
    results: dict[str, dict[int, Result]] = {}
    ranks: dict[str, dict[int, Result]] = {}
    for threads in options.threads:
        here = [row for row in rows if row.timed is None and threads in (row.threads or (threads,))]
        flow.set_num_threads(threads)
        peer_threads(threads)
        title = f"\n{threads} thread{'s' if threads > 1 else ''}"
        print(title if here else "")
        for row in here:
            result = Result(row.name, row.target, measure(row, 4 if options.quick else row.rounds, threads))
            results.setdefault(row.name, {})[threads] = result
            near = f"   {row.share(threads, min(result.times['flowedu']))}" if row.share else ""
            print(result.line() + near, flush=True)
    if apart := [row for row in rows if row.timed is not None]:
        print("\nprocesses of their own")
        for row in apart:
            result = Result(row.name, row.target, measure(row, 4 if options.quick else row.rounds))
            print(result.line(), flush=True)
            if result.times:
                ranks[row.name] = {0: result}
    if options.markdown:
        print("\n" + markdown(results))
    if options.chart:
        here = {"machine": processor(), "versions": versions()}
        found = merged(file, here, {**results, **ranks}, [row.name for row in table], options.quick,
                       options.anew)
        print("\nkept and drawn:", file, charts.draw_ratios(found, options.chart))


if __name__ == "__main__":
    main()
