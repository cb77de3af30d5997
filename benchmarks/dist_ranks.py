"""Program of each rank for dist_rows.py, which times one collective in several ways, interleaved.

    python -m flowedu.distributed.launch --nproc_per_node 2 [--engine threads] dist_ranks.py all_reduce BYTES
    ROUNDS

Rank 0 prints the seconds per call as JSON: {way: [...]}. Ways: "comm" calls the communicator with a new
result; "out" does so with a given result array; "perform" runs a boxing route on arrays; "to_global" calls
the method of a global tensor; "raw" calls mpi4py with a given result array, or, between threads, NumPy in one
thread.
"""
from __future__ import annotations

import gc
import json
import sys

import numpy as np

import flowedu as flow
from flowedu.core.sbp.boxing import route
from flowedu.core.sbp.ranks import current
from flowedu.core.sbp.sbp import layout
from flowedu.core.values import dtype as dt
from flowedu.core.values.spec import Spec
from launched import calls_of, timed


def ways(kind: str, nbytes: int) -> dict:
    """Return {way: function that runs the collective once}. nbytes: size of the array of each rank."""
    engine = current()
    comm, devices = engine.comm(engine.rank), tuple(range(engine.size))
    n = nbytes // 4
    a = np.random.default_rng(engine.rank).standard_normal(n).astype(np.float32)
    reduces = kind == "all_reduce"
    total = n if reduces else n * comm.size
    out = np.empty(n if reduces else (comm.size, n), np.float32)
    ours, sbp = (comm.all_reduce, "P") if reduces else (comm.all_gather, "S0")
    r = route(layout(sbp, devices), layout("B", devices), Spec((total,), dt.float32))
    place = flow.placement("cpu", list(devices))
    x = flow.tensor(a).to_global(place, flow.sbp.partial_sum if reduces else flow.sbp.split(0))
    found = {"comm": lambda: ours(a), "out": lambda: ours(a, out=out), "perform": lambda: r.perform(comm, a),
             "to_global": lambda: x.to_global(sbp=flow.sbp.broadcast)}
    mine = np.empty_like(out)
    if engine.name == "mpi":
        world = engine.MPI.COMM_WORLD
        call = world.Allreduce if reduces else world.Allgather

        def call_mpi():
            call(a, mine)

        found["raw"] = call_mpi
        call_mpi()
    else:
        others = [a, *(np.random.default_rng(i).standard_normal(n).astype(np.float32) for i in devices[1:])]
        by_hand = (lambda: np.add(*others, out=mine)) if reduces else (lambda: np.stack(others, out=mine))
        by_hand()
        found["raw"] = by_hand if engine.rank == 0 else lambda: None
    for name, f in found.items():                          # time only functions with the same result
        y = f()
        if y is not None and name != "raw" and (engine.name == "mpi" or engine.rank == 0):
            y = y.to_local().numpy() if name == "to_global" else y
            np.testing.assert_allclose(np.asarray(y).reshape(-1), mine.reshape(-1), rtol=1e-5, atol=1e-6)
    return found


def main() -> None:
    kind, nbytes, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    found = ways(kind, nbytes)
    engine = current()
    comm = engine.comm(engine.rank)
    times: dict[str, list[float]] = {name: [] for name in found}
    gc.disable()
    for _ in range(rounds):
        for name, f in found.items():
            times[name].append(timed(f, calls_of(nbytes), comm.barrier))
    if comm.rank == 0:
        print(json.dumps(times))
    comm.barrier()


main()
