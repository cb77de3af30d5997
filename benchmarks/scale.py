"""Measure how time and memory grow with the size of a program (`make bench-scale`).

    python benchmarks/scale.py [--quick] [--threads N] [rows ...]

A row changes one size: the batch, a width, a depth, a length, or the number of ops or parameters. A constant
and a power are fitted to each quantity (fits.py), and the exponent is compared with the expected one
(scale_rows.py). The last part is one training step on many devices, as predicted by the cost model of chapter
6 (scale_devices.py).

The table is printed; data and a chart are written to build/bench-scale (--out).
"""
from __future__ import annotations

import argparse
import datetime
import gc
import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from tqdm.auto import tqdm

import flowedu as flow
import kept
import scale_devices
from fits import fit
from launched import has_mpi, launch
from run import busy, processor, unit
from scale_rows import MEMORY, Sweep, sweeps

DEVICES = (8, 64, 1024)
AGAIN = 3                          # extra rounds for rows that grow faster than expected
REPEATED = 0.5                     # most seconds for repeating quick measurements


def said(quantity: str, value: float) -> str:
    """Return a value with its unit as text."""
    if quantity not in MEMORY:
        return unit(value) if value < 1 else f"{value:.2f} s"
    return f"{value / 1e3:.1f} KB" if value < 1e6 else f"{value / 1e6:.1f} MB"


def measure(sweep: Sweep, quick: bool, limit: float, largest: int, bar) -> tuple[list[int], list[dict], str]:
    """Return (sizes, measurements of each size, reason why larger sizes are missing).

    limit: seconds for a round of all sizes. The minimum of several rounds counts, because other programs
    disturb adjacent sizes alike, but not every round. Rows that then grow faster than expected get extra
    rounds. Garbage collection is disabled meanwhile, as in run.py, because its time depends on all objects of
    the process.
    """
    sizes = [n for n in (sweep.sizes[:sweep.quick] if quick else sweep.sizes) if n <= largest]
    with suppress(Exception):
        sweep.measure(sizes[0])                                # one-time imports and allocations
    found, why = _first_round(sweep, sizes, limit, bar)
    bar.update(sweep.rounds * (len(sizes) - len(found)))
    sizes = sizes[:len(found)]
    for turn in range(1, sweep.rounds + AGAIN if sweep.rounds > 1 else 1):
        if turn >= sweep.rounds and not any(c["worse"] for c in curves(sweep, sizes, found)):
            break
        for i, n in enumerate(sizes):
            bar.set_postfix_str(f"{n:,}")
            gc.collect()
            got = sweep.measure(n)
            found[i] = {q: min(v, got[q]) for q, v in found[i].items()}
            bar.update(turn < sweep.rounds)
    return sizes, found, why


def _first_round(sweep: Sweep, sizes: list[int], limit: float, bar) -> tuple[list[dict], str]:
    """Return the measurements up to the size that takes too long or fails, and the reason."""
    found: list[dict] = []
    spent: list[float] = []
    begin = time.perf_counter()
    for n in sizes:
        bar.set_postfix_str(f"{n:,}")
        gc.collect()
        if len(spent) > 1 and _next(spent, sizes) > limit - (time.perf_counter() - begin):
            return found, f"not {n:,}: more than {limit:.0f} s"
        start = time.perf_counter()
        try:
            found.append(sweep.measure(n))
        except Exception as e:                                 # also a result; the other rows continue
            return found, f"FAILS at {n:,}: {type(e).__name__}: {e}"
        once = sum(v for q, v in found[-1].items() if q not in MEMORY)
        spent.append(max(once, time.perf_counter() - start - REPEATED))
        bar.update()
    return found, "" if sizes else "no size is that small"


def _next(spent: list[float], sizes: list[int]) -> float:
    """Estimate the seconds of the next size, which grow at the last rate and at least linearly."""
    n = len(spent)
    return spent[-1] * max(sizes[n] / sizes[n - 1], spent[-1] / spent[-2])


def curves(sweep: Sweep, sizes: list[int], found: list[dict]) -> list[dict]:
    """Return the data of a row: a curve for each quantity."""
    made = []
    for quantity in found[0] if found else ():
        values = [float(f"{f[quantity]:.6g}") for f in found]
        fitted, nature = fit(sizes, values), sweep.nature.get(quantity, 1)
        made.append({"row": sweep.name, "axis": sweep.axis, "quantity": quantity, "nature": nature,
                     "unit": "bytes" if quantity in MEMORY else "seconds", "sizes": sizes, "values": values,
                     "exponent": None if fitted is None else round(fitted.exponent, 3),
                     "constant": None if fitted is None else float(f"{fitted.constant:.6g}"),
                     "of": 0 if fitted is None else fitted.of,
                     "worse": fitted is not None and fitted.exceeds(nature)})
    return made


def verdict(curve: dict) -> str:
    """Return in words whether a curve grows faster than expected."""
    if curve["exponent"] is None:
        return "too few sizes to say"
    expected = "linear" if curve["nature"] == 1 else f"its nature, {curve['nature']}"
    if curve["worse"]:
        return f"WORSE than {expected}"
    return f"nothing worse than {expected}"


def show(sweep: Sweep, sizes: list[int], made: list[dict], why: str) -> None:
    title = f"\n{sweep.axis}: {sweep.name}"
    if sizes:
        title += f", {sizes[0]:,} to {sizes[-1]:,}"
    if why or not sizes:
        title += f"   ({why})"
    tqdm.write(title)
    for c in made:
        grows = "" if c["exponent"] is None else f"n^{c['exponent']:.2f}"
        first, last = (said(c["quantity"], c["values"][i]) for i in (0, -1))
        tqdm.write(f"  {c['quantity']:16s}{first:>11s} ...{last:>11s}   {grows:8s} {verdict(c)}")


# ---- devices
def on_devices(size: scale_devices.Size, devices: Iterable[int], rounds: int, bar) -> dict:
    """Return predictions and measurements of each plan."""
    flow.set_num_threads(1)
    bar.set_postfix_str("one device")
    one = scale_devices.measured("data", size, rounds)
    alone = {**scale_devices.predicted("data", size, 1), **one}
    bar.set_postfix_str("two processes")
    engine = "mpi" if has_mpi() else "threads"
    two = json.loads(launch(engine, scale_devices.__file__, *size, rounds).splitlines()[-1])
    bar.update()
    predicted: dict[str, dict] = {}
    for k in (2, *devices):
        for plan in scale_devices.PLANS:
            bar.set_postfix_str(f"{plan} on {k:,} devices")
            found = scale_devices.predicted(plan, size, k)
            found["seconds"] = scale_devices.seconds(found, alone, two["speed"])
            predicted.setdefault(plan, {})[str(k)] = {n: float(f"{v:.6g}") for n, v in found.items()}
            bar.update()
    return {"size": size._asdict(), "engine": engine, "alone": alone, "speed": two["speed"],
            "measured": two["plans"], "predicted": predicted}


def show_devices(found: dict) -> None:
    size, many = found["size"], [int(k) for k in next(iter(found["predicted"].values()))][1:]
    ranks = "processes" if found["engine"] == "mpi" else "threads"
    one = found["alone"]
    print(f"\ndevices: a training step (Adam) of {size['depth']} layers of {size['width']:,} x "
          f"{size['width']:,}, batch {size['batch']:,}, one thread a device;\n"
          f"  pipelines: {size['micro']} micro-batches, at most a stage for each layer\n"
          f"  one device: {said('step', one['seconds'])}, {said('memory', one['memory'])}; two {ranks} send "
          f"each other {found['speed'] / 1e9:.2f} GB/s, taken for the network's speed, too\n"
          f"  predicted by chapter 6's cost model: seconds, MB that a device sends, MB it needs;\n"
          "  measured: seconds, MB that the process grows by")
    print(f"  {'':10s}{'2: predicted':>22s}{'measured':>20s}" + "".join(f"{k:>22,}" for k in many))

    def cell(f):
        return f"{f['seconds']:.3f} s {f['sent'] / 1e6:5.0f} {f['memory'] / 1e6:5.0f}"

    for plan, by in found["predicted"].items():
        got = found["measured"][plan]
        print(f"  {plan:10s}{cell(by['2']):>22s}{got['seconds']:12.3f} s {got['memory'] / 1e6:5.0f}"
              + "".join(f"{cell(by[str(k)]):>22s}" for k in many))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rows", nargs="*",
                        help="rows to measure, by a part of their names; devices (default: all)")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller sizes: half a minute")
    parser.add_argument("--threads", type=int, default=1,
                        help="default 1: with more, small sizes use fewer of them")
    parser.add_argument("--limit", type=float,
                        help="seconds for one row, after which larger sizes are left out")
    parser.add_argument("--largest", type=int, default=1 << 62, help="leave out larger sizes")
    parser.add_argument("--out", type=Path, default=Path("build/bench-scale"),
                        help="folder for scale.json and scale.svg")
    options = parser.parse_args()
    flow.set_num_threads(options.threads)
    rows = [s for s in sweeps() if not options.rows or any(r in f"{s.axis}: {s.name}" for r in options.rows)]
    devices = not options.rows or "devices" in options.rows
    size = scale_devices.Size() if not options.quick else scale_devices.Size(depth=4, batch=256, micro=4)
    many = [k for k in DEVICES if k <= size.batch]
    print(f"{datetime.date.today()}  {processor()}, {os.cpu_count()} cores, {options.threads} thread"
          f"{'s' if options.threads > 1 else ''}{busy()}\n"
          "the least and the greatest size; the exponent of the size, fitted to the larger ones without a "
          "constant part")
    limit = options.limit or (3.0 if options.quick else 75.0)
    found = {"date": str(datetime.date.today()), "machine": processor(), "threads": options.threads,
             "quick": options.quick, "curves": []}
    total = sum(s.rounds * len([n for n in (s.sizes[:s.quick] if options.quick else s.sizes)
                                if n <= options.largest])
                for s in rows) + devices * (1 + len(scale_devices.PLANS) * (1 + len(many)))
    failed = []
    gc.disable()
    with tqdm(total=total, unit=" sizes", leave=False, disable=None) as bar:
        for sweep in rows:
            bar.set_description(sweep.axis)
            sizes, values, why = measure(sweep, options.quick, limit, options.largest, bar)
            made = curves(sweep, sizes, values)
            show(sweep, sizes, made, why)
            found["curves"] += made
            failed += [f"{sweep.axis}, {sweep.name}: {why}"] if why.startswith("FAILS") else []
            sweep.measure = None                               # frees its graphs
        if devices:
            bar.set_description("devices")
            found["devices"] = on_devices(size, many, 2 if options.quick else 4, bar)
    if devices:
        show_devices(found["devices"])
    worse = [f"{c['axis']}, {c['row']}, {c['quantity']}: n^{c['exponent']:.2f}, by nature {c['nature']}"
             for c in found["curves"] if c["worse"]]
    print("\n" + ("\n".join(["worse than by nature:", *worse, *failed]) if worse or failed else
                  "nothing grows faster than it has to"))
    written = [kept.save(options.out / "scale.json", found)]
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        print("the picture is missing: it needs matplotlib (pip install matplotlib)")
    else:
        import charts
        written.append(charts.draw_scale(found, options.out / "scale.svg"))
    print("written:", *written)


if __name__ == "__main__":
    main()
