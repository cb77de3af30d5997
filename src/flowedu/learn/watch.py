"""`make watch`: an exercise is checked whenever its file is saved, and keys ask for hints and the next one."""
from __future__ import annotations

import contextlib
import os
import select
import sys
import time
from collections.abc import Iterator

POLL = 0.5                                         # seconds
HELP = "n next  e exercise  h hint  l list  x reset  s solution  q quit"


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


def watch(runner, hole=None) -> int:
    """Until q, Ctrl-C, or the last exercise is right; begins with `hole`, or the first that is not right. What is saved is
    checked, whichever exercise it is. Returns the exit status."""
    from flowedu.learn.runner import told_of
    hole = hole or runner.current()
    if hole is None:
        print("all exercises are right")
        return 0
    if not runner.file(hole).exists():
        print("\n".join(runner.start(hole.chapter)))
    seen = {h.id: saved(runner.file(h)) for h in runner.holes if h.id != hole.id}
    with keys(), contextlib.suppress(KeyboardInterrupt):
        while True:
            changed = [h for h in runner.holes if saved(runner.file(h)) != seen.get(h.id)]
            if changed:
                hole = hole if hole in changed else changed[0]
                seen[hole.id] = settled(runner.file(hole))
                try:
                    right, lines = runner.check(hole)
                except OSError as error:           # a folder of that name, a full disk: until the next save
                    right, lines = False, [told_of(error, runner.work)]
                if right and runner.current() is None:
                    show(runner, hole, [*lines, "that was the last one"])
                    return 0
                show(runner, hole, [*lines, *(["n: the next exercise"] if right else [])])
            pressed = key(POLL)
            if pressed == "q":
                return 0
            if pressed in ("n", "e"):
                hole = (runner.after(hole) if pressed == "n" else _asked(runner)) or hole
                _begin(runner, hole, seen)
            elif pressed == "h":
                show(runner, hole, runner.hint(hole))
            elif pressed == "l":
                show(runner, hole, runner.list())
            elif pressed == "s":
                show(runner, hole, runner.solution(hole))
            elif pressed == "x":
                file = runner.file(hole)
                file.rename(file.with_suffix(f".{int(time.time())}.old"))
                _begin(runner, hole, seen)
    return 0


def saved(file) -> tuple[int, int] | None:
    """When, and its size; None: it is not there."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def settled(file, patience: float = 1.0) -> tuple[int, int] | None:
    """When a file was saved, and its size; None: it is not there. An editor may empty, write and exchange it in several
    steps: what counts is when it is there, has something in it and stays the same."""
    end, before = time.monotonic() + patience, False
    while True:
        now = saved(file)
        if (now == before and now is not None and now[1]) or time.monotonic() > end:
            return now
        if before is False and now is not None and now[1] and time.time() - now[0] / 1e9 > 1:
            return now                             # not saved just now
        before = now
        time.sleep(0.05)


def _asked(runner):
    """The exercise whose number is typed; None: there is none."""
    print("exercise (4.3, say; then Enter): ", end="", flush=True)
    typed = ""
    while (pressed := key(POLL)) not in ("\n", "\r", "\x1b", "q"):
        typed = typed[:-1] if pressed in ("\x7f", "\b") else typed + pressed
        print(pressed, end="", flush=True)
    return next((h for h in runner.holes if h.id == typed.strip()), None)


def _begin(runner, hole, seen: dict) -> None:
    """It is to be shown next. Files that are made for it were not saved by anybody."""
    if not runner.file(hole).exists():
        runner.start(hole.chapter)
        seen.update({h.id: saved(runner.file(h)) for h in runner.holes if seen.get(h.id) is None})
    seen.pop(hole.id, None)
