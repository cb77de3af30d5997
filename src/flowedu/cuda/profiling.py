"""flow.cuda.profile: counts the work of kernels in the simulator, and prints a table."""
from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from flowedu.cuda.machine import machine
from flowedu.errors import UnsupportedError


class Profile:
    """Counters of kernels. `kernels` maps the name of a kernel to a dict.

    The keys launches, barriers (of blocks), and atomics (of threads) count events. global_loads,
    global_stores, shared_loads, and shared_stores count instructions of warps (up to 32 threads).
    global_bytes and shared_bytes are the bytes that threads request. sectors counts the pieces of 32 bytes
    that the global accesses of a warp touch. conflicts counts additional turns of shared accesses to words in
    one bank. divergent counts branches at which the threads of a warp diverge.
    """

    def __init__(self):
        self.kernels: dict[str, dict[str, int]] = {}

    def __getitem__(self, kernel: str) -> dict[str, int]:
        return self.kernels[kernel]

    def __str__(self) -> str:
        head = ("kernel", "launches", "loads", "stores", "sectors/access", "shared loads", "shared stores",
                "conflicts", "barriers", "atomics", "divergent")
        rows: list[tuple] = [head]
        for name, c in self.kernels.items():
            accesses = c["global_loads"] + c["global_stores"]
            rows.append((name, c["launches"], c["global_loads"], c["global_stores"],
                         f"{c['sectors'] / accesses:.2f}" if accesses else "-", c["shared_loads"],
                         c["shared_stores"], c["conflicts"], c["barriers"], c["atomics"], c["divergent"]))
        widths = [max(len(str(r[i])) for r in rows) for i in range(len(head))]
        return "\n".join("  ".join(f"{x!s:>{w}}" if i else f"{x!s:<{w}}"
                                   for i, (x, w) in enumerate(zip(r, widths)))
                         for r in rows)


@contextmanager
def profile(file=None) -> Iterator[Profile]:
    """Count the work of all kernels launched in the block, and print the table at the end.

    The counters are loads, stores, sectors, bank conflicts, barriers, atomics, and divergent branches. The
    context manager returns a Profile. Kernels run with all checks while they are counted.

    Args:
        file: text file for the table; default: standard output.

    Raises:
        UnsupportedError: kernels run on a GPU, where `ncu` counts.
    """
    m = machine()
    if m.library is None:
        raise UnsupportedError("profile: only the simulator counts", expected="FLOWEDU_CUDA=sim", got="a GPU",
                               fix="Nsight Compute counts on a GPU: ncu python script.py")
    counters = Profile()
    m.library.cudasim_profile_start()
    try:
        yield counters
    finally:
        for line in m.library.cudasim_profile_stop().decode().splitlines():
            name, *counts = line.split("\t")
            counters.kernels[name] = {k: int(v) for k, v in (c.split("=") for c in counts)}
    print(counters, file=file or sys.stdout)
