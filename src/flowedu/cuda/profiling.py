"""flow.cuda.profile: counts what kernels do while it is open, and prints it as a table. In the simulator only."""
from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from flowedu.cuda.machine import machine
from flowedu.errors import UnsupportedError


class Profile:
    """What was counted. `kernels` has a dict for each kernel: launches; global_loads, global_stores, shared_loads,
    shared_stores (of warps: one instruction of up to 32 threads); the bytes that threads asked for (global_bytes,
    shared_bytes); sectors (pieces of 32 bytes that a warp's global accesses touch); conflicts (further turns that shared
    accesses take because words lie in one bank); barriers (of blocks); atomics (of threads); divergent (branches at which
    threads of a warp part)."""

    def __init__(self):
        self.kernels: dict[str, dict[str, int]] = {}

    def __getitem__(self, kernel: str) -> dict[str, int]:
        return self.kernels[kernel]

    def __str__(self) -> str:
        head = ("kernel", "launches", "loads", "stores", "sectors/access", "shared loads", "shared stores", "conflicts",
                "barriers", "atomics", "divergent")
        rows = [head]
        for name, c in self.kernels.items():
            accesses = c["global_loads"] + c["global_stores"]
            rows.append((name, c["launches"], c["global_loads"], c["global_stores"],
                         f"{c['sectors'] / accesses:.2f}" if accesses else "-", c["shared_loads"], c["shared_stores"],
                         c["conflicts"], c["barriers"], c["atomics"], c["divergent"]))
        widths = [max(len(str(r[i])) for r in rows) for i in range(len(head))]
        return "\n".join("  ".join(f"{x!s:>{w}}" if i else f"{x!s:<{w}}" for i, (x, w) in enumerate(zip(r, widths)))
                         for r in rows)


@contextmanager
def profile(file=None) -> Iterator[Profile]:
    """Counts the loads, stores, sectors, bank conflicts, barriers, atomics and divergent branches of all kernels launched
    inside. At the end the table is printed (to `file`; default: standard output), and the numbers are in the Profile.

    Kernels run with every check while they are counted. Raises UnsupportedError: on a GPU (`ncu` counts there)."""
    m = machine()
    if m.library is None:
        raise UnsupportedError("profile: only the simulator counts", expected="FLOWEDU_CUDA=sim", got="a GPU",
                               fix="Nsight Compute counts on a GPU: ncu python script.py")
    found = Profile()
    m.library.cudasim_profile_start()
    try:
        yield found
    finally:
        for line in m.library.cudasim_profile_stop().decode().splitlines():
            name, *counts = line.split("\t")
            found.kernels[name] = {k: int(v) for k, v in (c.split("=") for c in counts)}
    print(found, file=file or sys.stdout)
