"""PyTorch's part of the rows of global tensors in dist_rows.py: redistribution of a DTensor.

It runs over gloo in two processes.

    python dist_torch.py all_reduce|all_gather BYTES ROUNDS [RANK FILE]

The DTensor goes from Partial or Shard(0) to Replicate. Rank 0 prints the seconds per call as JSON: {"torch":
[...]}. Without RANK, the program starts both ranks. Each has one thread, like flowedu's ranks. They
rendezvous by a temporary file.
"""
from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from launched import calls_of, timed

RANKS = 2


def rank(kind: str, nbytes: int, rounds: int, me: int, file: str) -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=me, world_size=RANKS)
    mesh = dist.init_device_mesh("cpu", (RANKS,))
    a = torch.full((nbytes // 4,), me + 1.0)
    x = DTensor.from_local(a, mesh, [Partial() if kind == "all_reduce" else Shard(0)], run_check=False)

    def f():
        y = x.redistribute(placements=[Replicate()]).to_local()
        return y.wait() if hasattr(y, "wait") else y

    both = [torch.full_like(a, i + 1.0) for i in range(RANKS)]
    assert torch.equal(f(), sum(both) if kind == "all_reduce" else torch.cat(both))
    gc.disable()
    times = [timed(f, calls_of(nbytes), dist.barrier) for _ in range(rounds)]
    if me == 0:
        print(json.dumps({"torch": times}))
    dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    kind, nbytes, rounds, *me = sys.argv[1:]
    if me:
        rank(kind, int(nbytes), int(rounds), int(me[0]), me[1])
        return
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, kind, nbytes, rounds]
        both = [subprocess.Popen([*command, str(i), str(Path(folder) / "meet")]) for i in range(RANKS)]
        try:
            codes = [p.wait(300) for p in both]
        finally:
            for p in both:
                p.kill()
    sys.exit(max(map(abs, codes)))


main()
