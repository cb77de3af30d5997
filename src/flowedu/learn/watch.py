"""`make watch`: the current exercise is checked whenever its file is saved, and keys ask for hints and the next one."""
from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Iterator

POLL = 0.5                                         # seconds
HELP = "n next  h hint  l list  x reset  s solution  q quit"


@contextlib.contextmanager
def keys() -> Iterator[None]:
    """Single keys without Enter, where this is a terminal."""
    if not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    old = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, old)


def key(seconds: float) -> str:
    """The key pressed within so many seconds, or "". The end of the input is q."""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    if not ready:
        return ""
    found = os.read(sys.stdin.fileno(), 1).decode(errors="replace")
    return found or "q"


def show(runner, hole, lines: list[str]) -> None:
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        print("\033[2J\033[H", end="")
    print(runner.bar(hole.chapter), "", *lines, "", HELP if sys.stdin.isatty() else "", sep="\n", flush=True)


def watch(runner) -> int:
    """Until q, Ctrl-C, or the last exercise is right. Returns the exit status."""
    hole = runner.current()
    if hole is None:
        print("all exercises are right")
        return 0
    if not runner.file(hole).exists():
        print("\n".join(runner.start(hole.chapter)))
    seen = None
    with keys(), contextlib.suppress(KeyboardInterrupt):
        while True:
            now = settled(runner.file(hole))
            if now != seen:
                seen = now
                try:
                    right, lines = runner.check(hole)
                except OSError as error:           # a folder of that name, a full disk: until the next save
                    right, lines = False, [f"{error.strerror}: {error.filename}; nothing was lost"]
                if right and runner.current() is None:
                    show(runner, hole, [*lines, "that was the last one"])
                    return 0
                show(runner, hole, [*lines, *(["n: the next exercise"] if right else [])])
            pressed = key(POLL)
            if pressed == "q":
                return 0
            if pressed == "n":
                hole, seen = _next(runner, hole), None
            elif pressed == "h":
                show(runner, hole, runner.hint(hole))
            elif pressed == "l":
                show(runner, hole, runner.list())
            elif pressed == "s":
                show(runner, hole, runner.solution(hole))
            elif pressed == "x":
                file = runner.file(hole)
                file.rename(file.with_suffix(f".{int(time.time())}.old"))
                runner.start(hole.chapter)
                seen = None
    return 0


def settled(file, patience: float = 1.0) -> tuple[int, int] | None:
    """When a file was saved, and its size; None: it is not there. An editor may empty, write and exchange it in several
    steps: what counts is when it is there, has something in it and stays the same."""
    end, before = time.monotonic() + patience, False
    while True:
        try:
            stat = file.stat()
            now = stat.st_mtime_ns, stat.st_size
        except OSError:
            now = None
        if (now == before and now is not None and now[1]) or time.monotonic() > end:
            return now
        if before is False and now is not None and now[1] and time.time() - stat.st_mtime > 1:
            return now                             # not saved just now
        before = now
        time.sleep(0.05)


def _next(runner, hole):
    found = runner.after(hole) or hole
    if not runner.file(found).exists():
        runner.start(found.chapter)
    return found
