"""flow.distributed.spawn: ranks that are threads of this process."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from flowedu.core.sbp.ranks import use
from flowedu.core.values.thread_state import during
from flowedu.distributed.ranks.meet import World
from flowedu.distributed.ranks.workers import ThreadEngine, Workers
from flowedu.errors import ArgumentError
from flowedu.tensor.construction.generator import own_generator


def spawn(fn: Callable, nprocs: int = 1, args: Sequence = ()) -> list:
    """Run `fn(*args)` on several ranks, each a thread, and return the list of results by rank.

    Inside, flow.env.get_rank() returns the rank. An exception of one rank ends the others and is raised here,
    with a note that names the rank. Deadlocked ranks end in a CommError that reports the call of each.

    Args:
        fn: the function.
        nprocs: the number of ranks.
        args: the arguments of `fn`.
    """
    if not isinstance(nprocs, int) or isinstance(nprocs, bool) or nprocs < 1:
        raise ArgumentError("spawn: not a number of ranks", expected="1 or more", got=repr(nprocs),
                            fix="nprocs=2")
    world = World(nprocs)

    def program(rank: int) -> Callable[[], object]:
        def run():
            # The thread keeps no GPU.
            with use(ThreadEngine(world, rank)), own_generator(), during(gpu=None):
                return fn(*args)
        return run

    results = Workers(nprocs).run(world, {r: program(r) for r in range(nprocs)})
    return [results[r] for r in range(nprocs)]
