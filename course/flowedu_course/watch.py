"""`make watch`: check each work file when it is saved, with keys for hints and other exercises.

Every screen names the current exercise and the next one. Without a terminal, output is plain text and keys
are read from stdin; the end of stdin ends the program.
"""
from __future__ import annotations

import contextlib
import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Iterator

from flowedu_course import limits
from flowedu_course.language import cut, describe_system_error, padded, short, tr

POLL = 0.5                                         # seconds
HELP = "n next  h hint  l list  e exercise  d debug  x reset  s solution  q quit"
CHOOSE = "up down: move  Enter: select  Esc: back  q quit"
ARROWS = {"\x1b[A": "k", "\x1b[B": "j", "\x1bOA": "k", "\x1bOB": "j"}


@contextlib.contextmanager
def keys() -> Iterator[None]:
    """Read single keys without Enter inside the context, if stdin is a terminal."""
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
    """Return the key pressed within `seconds`, or "". Arrows are k and j, the end of input is q."""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    if not ready:
        return ""
    pressed = os.read(sys.stdin.fileno(), 1).decode(errors="replace")
    if pressed == "\x1b" and select.select([sys.stdin], [], [], 0.05)[0]:
        pressed += os.read(sys.stdin.fileno(), 2).decode(errors="replace")
    return ARROWS.get(pressed, pressed) or "q"


class Watch:
    """The current exercise, and the time at which each work file was last saved."""

    def __init__(self, runner, hole):
        self.runner, self.hole = runner, hole
        self.seen = {h.id: saved(runner.file(h)) for h in runner.holes if h.id != hole.id}
        self.keys: dict[str, Callable[[], None]] = {
            "n": lambda: self.begin(runner.after(self.hole)), "e": lambda: self.begin(self.ask_number()),
            "l": lambda: self.begin(self.picked()), "x": self.reset, "d": self.debug,
            "h": lambda: self.show(runner.hint(self.hole)),
            "s": lambda: self.show(runner.solution(self.hole))}

    def run(self) -> int:
        """Run until q, Ctrl-C, or the last exercise is right. Return the exit status."""
        while True:
            changed = [h for h in self.runner.holes if saved(self.runner.file(h)) != self.seen.get(h.id)]
            if changed and self.check(changed):
                return 0
            pressed = key(POLL)
            if pressed == "q":
                return 0
            if pressed in self.keys:
                try:
                    self.keys[pressed]()
                except OSError as error:           # such as a full disk
                    self.show([describe_system_error(error, self.runner.work)])

    def check(self, changed: list) -> bool:
        """Judge a saved file, preferably the current exercise. Return True if all exercises are right."""
        runner = self.runner
        if self.hole not in changed:
            self.hole = changed[0]
        self.seen[self.hole.id] = settled(runner.file(self.hole))
        try:
            right, lines = runner.check(self.hole)
        except OSError as error:                   # tried again at the next save
            right, lines = False, [describe_system_error(error, runner.work)]
        if right and runner.current() is None:
            self.show([*lines, tr("that was the last one")])
            return True
        self.show([*lines, *([*self.reached(), tr("n: the next exercise")] if right else [])])
        return False

    def reached(self) -> list[str]:
        """Return a line about the milestone if the whole chapter is right."""
        chapter = next(c for c in self.runner.chapters if c.number == self.hole.chapter)
        done = all(self.runner.progress.row(h.id)["state"] == "right" for h in chapter.exercises)
        return [tr("all of chapter {number}: `make milestone-{number}`", number=chapter.number)] \
            if done and chapter.milestone else []

    def show(self, lines: list[str], keys: str = HELP, at_hand: bool = True) -> None:
        clear()
        stands = ["", *standing(self.runner, self.hole)] if at_hand else []
        print(self.runner.bar(self.hole.chapter), "", *lines, *stands, "", tr(keys) if sys.stdin.isatty()
              else "", sep="\n", flush=True)

    def begin(self, hole) -> None:
        """Make an exercise current (None: no change). Work files created for it do not count as saved."""
        self.hole = hole or self.hole
        if not self.runner.file(self.hole).exists():
            self.runner.start(self.hole.chapter)
            self.seen.update({h.id: saved(self.runner.file(h)) for h in self.runner.holes
                              if self.seen.get(h.id) is None})
        self.seen.pop(self.hole.id, None)

    def reset(self) -> None:
        """Start the exercise again; the old file is kept under another name."""
        file = self.runner.file(self.hole)
        if file.exists():
            file.rename(file.with_suffix(f".{int(time.time())}.old"))
        self.begin(self.hole)

    def debug(self) -> None:
        self.show(limits.details(self.runner, self.hole))

    def ask_number(self):
        """Return the exercise whose number is typed, or None if it does not exist."""
        print(tr("exercise (for example 4.3, then Enter):"), "", end="", flush=True)
        typed = ""
        while (pressed := key(POLL)) not in ("\n", "\r", "\x1b", "q"):
            typed = typed[:-1] if pressed in ("\x7f", "\b") else typed + pressed
            print(pressed, end="", flush=True)
        return next((h for h in self.runner.holes if h.id == typed.strip()), None)

    def picked(self):
        """Return the exercise chosen from the list, or None. Without a terminal, only print the list."""
        if not sys.stdin.isatty():
            self.show(self.runner.list())
            return None
        holes, at, pressed = self.runner.holes, self.runner.holes.index(self.hole), "l"
        while True:
            if pressed:                            # redraw
                self.show(window(self.runner, holes[at]), CHOOSE, at_hand=False)
            pressed = key(POLL)
            if pressed in ("j", "k"):
                at = (at + (1 if pressed == "j" else -1)) % len(holes)
            elif pressed in ("\n", "\r"):
                return holes[at]
            elif pressed in ("\x1b", "l"):
                return None
            elif pressed == "q":
                raise KeyboardInterrupt


def watch(runner, hole=None) -> int:
    """Watch work files, starting with `hole` or the first that is not right. Return the exit status."""
    hole = hole or runner.current()
    if hole is None:
        print(tr("all exercises are right"))
        return 0
    if not runner.file(hole).exists():
        print("\n".join(runner.start(hole.chapter)))
    with keys(), contextlib.suppress(KeyboardInterrupt):
        return Watch(runner, hole).run()
    return 0


def clear() -> None:
    if sys.stdout.isatty() and not os.environ.get("NO_COLOR"):
        print("\033[2J\033[H", end="")


def standing(runner, hole) -> list[str]:
    """Return lines with the current exercise and the next that is not right."""
    after = runner.after(hole)
    rows = [(tr("current"), hole), *([(tr("next"), after)] if after is not None else [])]
    return [cut(tr("{word} {short} {minutes} min   {file}", word=padded(word, 8),
                   short=padded(cut(short(h), 44), 44),
                   minutes=f"{h.minutes:3d}", file=runner.file(h))).rstrip() for word, h in rows]


def window(runner, chosen) -> list[str]:
    """Return the list with a mark at the chosen exercise, or the part around it that fits on the screen."""
    rows = [t.replace("  [", "> [", 1) if t.split("] ")[-1].split()[:1] == [chosen.id] else t
            for t in runner.list()]
    at = next((i for i, t in enumerate(rows) if t.startswith("> ")), 0)
    room = max(5, shutil.get_terminal_size().lines - 6)
    first = max(0, min(at - room // 2, len(rows) - room))
    return rows[first:first + room]


def saved(file) -> tuple[int, int] | None:
    """Return (time in ns, size) of a file's last save, or None if it does not exist."""
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def settled(file, patience: float = 1.0) -> tuple[int, int] | None:
    """Return saved(file) once the file is stable.

    Editors save in several steps, so wait until the file exists, is not empty, and stays unchanged.
    """
    end, before = time.monotonic() + patience, False
    while True:
        now = saved(file)
        if (now == before and now is not None and now[1]) or time.monotonic() > end:
            return now
        if before is False and now is not None and now[1] and time.time() - now[0] / 1e9 > 1:
            return now                             # saved over a second ago
        before = now
        time.sleep(0.05)
