"""`launch --engine threads`: a script on k threads of one process, each a rank with its own `__main__`."""
from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

from flowedu.core.sbp.ranks import use
from flowedu.distributed import script
from flowedu.distributed.mpi.process import report
from flowedu.distributed.ranks.meet import World
from flowedu.distributed.ranks.workers import Ended, ThreadEngine, Workers
from flowedu.errors import CommError
from flowedu.tensor.construction.generator import own_generator


class Lines:
    """A stream to which each thread writes whole lines."""

    def __init__(self, stream):
        self.stream, self.here = stream, threading.local()

    def write(self, text: str) -> int:
        text = getattr(self.here, "text", "") + text
        whole, end, self.here.text = text.rpartition("\n")
        if end:
            self.stream.write(whole + end)
            self.stream.flush()
        return len(text)

    def flush(self) -> None:
        text, self.here.text = getattr(self.here, "text", ""), ""
        self.stream.write(text)
        self.stream.flush()

    def __getattr__(self, name: str):
        return getattr(self.stream, name)


def run(k: int, name: str, module: bool, args: list[str]) -> int:
    """Run the script on `k` ranks and return the exit code."""
    script.arguments(name, module, args)
    code, start_with = script.load(name, module)
    world = World(k)
    os.environ.update(WORLD_SIZE=str(k))
    modules = [script.main_module(start_with) for _ in range(k)]
    sys.modules["__main__"] = modules[0]
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(Lines, streams)

    def program(rank: int) -> Callable[[], None]:
        def work() -> None:
            with use(ThreadEngine(world, rank)), own_generator():
                try:
                    exec(code, modules[rank].__dict__)
                except Ended:
                    raise
                except SystemExit as error:
                    if number := script.exit_code(error):
                        print(f"[rank {rank}] exited with code {number}", file=sys.stderr)
                        raise SystemExit(number) from None
                except BaseException as error:
                    if not (isinstance(error, CommError) and world.mark_reported()):
                        report(rank, error, script.user_traceback(error.__traceback__))
                    raise
                finally:
                    sys.stdout.flush()
        return work

    try:
        Workers(k).run(world, {r: program(r) for r in range(k)})
    except SystemExit as error:
        return script.exit_code(error)
    except KeyboardInterrupt:
        return 130
    except BaseException:
        return 1
    finally:
        sys.stdout, sys.stderr = streams
    return 0
