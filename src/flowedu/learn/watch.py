"""`make watch`: whatever work file is saved is checked, and keys ask for hints, the next exercise, or another.

Every screen names the exercise at hand and the next one. Without a terminal it is plain text, and keys come from what is
piped in; where that ends, so does watching.
"""
from __future__ import annotations

import contextlib
import os
import select
import shutil
import sys
import time
from collections.abc import Callable, Iterator

from flowedu.learn.language import cut, padded, short, tr
from flowedu.learn.progress import told_of

POLL = 0.5                                         # seconds
HELP = "n next  h hint  l list  e exercise  d debug  x reset  s solution  q quit"
CHOOSE = "up down: move  Enter: go on with it  Esc: back  q quit"
ARROWS = {"\x1b[A": "k", "\x1b[B": "j", "\x1bOA": "k", "\x1bOB": "j"}


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
    """The key pressed within so many seconds, or ""; arrows are k and j. The end of the input is q."""
    ready, _, _ = select.select([sys.stdin], [], [], seconds)
    if not ready:
        return ""
    found = os.read(sys.stdin.fileno(), 1).decode(errors="replace")
    if found == "\x1b" and select.select([sys.stdin], [], [], 0.05)[0]:
        found += os.read(sys.stdin.fileno(), 2).decode(errors="replace")
    return ARROWS.get(found, found) or "q"


class Watch:
    """The exercise at hand, and when each work file was last saved."""

    def __init__(self, runner, hole):
        self.runner, self.hole = runner, hole
        self.seen = {h.id: saved(runner.file(h)) for h in runner.holes if h.id != hole.id}
        self.keys: dict[str, Callable[[], None]] = {
            "n": lambda: self.begin(runner.after(self.hole)), "e": lambda: self.begin(self.asked()),
            "l": lambda: self.begin(self.picked()), "x": self.reset, "d": self.debug,
            "h": lambda: self.show(runner.hint(self.hole)), "s": lambda: self.show(runner.solution(self.hole))}

    def run(self) -> int:
        """Until q, Ctrl-C, or the last exercise is right. Returns the exit status."""
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
                except OSError as error:           # a full disk, a folder of that name
                    self.show([told_of(error, self.runner.work)])

    def check(self, changed: list) -> bool:
        """Judge one of those that were saved, the one at hand first; whether it was the last of all."""
        runner = self.runner
        if self.hole not in changed:
            self.hole = changed[0]
        self.seen[self.hole.id] = settled(runner.file(self.hole))
        try:
            right, lines = runner.check(self.hole)
        except OSError as error:                   # until the next save
            right, lines = False, [told_of(error, runner.work)]
        if right and runner.current() is None:
            self.show([*lines, tr("that was the last one")])
            return True
        self.show([*lines, *([*self.reached(), tr("n: the next exercise")] if right else [])])
        return False

    def reached(self) -> list[str]:
        """What a chapter ends with, when all of it is right."""
        chapter = next(c for c in self.runner.chapters if c.number == self.hole.chapter)
        done = all(self.runner.progress.row(h.id)["state"] == "right" for h in chapter.holes)
        return [tr("all of chapter {number}: `make milestone-{number}`", number=chapter.number)] \
            if done and chapter.milestone else []

    def show(self, lines: list[str], keys: str = HELP, at_hand: bool = True) -> None:
        clear()
        stands = ["", *standing(self.runner, self.hole)] if at_hand else []
        print(self.runner.bar(self.hole.chapter), "", *lines, *stands, "", tr(keys) if sys.stdin.isatty() else "", sep="\n",
              flush=True)

    def begin(self, hole) -> None:
        """It is to be shown next; None: the one at hand. Files that are made for it were not saved by anybody."""
        self.hole = hole or self.hole
        if not self.runner.file(self.hole).exists():
            self.runner.start(self.hole.chapter)
            self.seen.update({h.id: saved(self.runner.file(h)) for h in self.runner.holes if self.seen.get(h.id) is None})
        self.seen.pop(self.hole.id, None)

    def reset(self) -> None:
        """The task again; what was written stays beside it."""
        file = self.runner.file(self.hole)
        if file.exists():
            file.rename(file.with_suffix(f".{int(time.time())}.old"))
        self.begin(self.hole)

    def debug(self) -> None:
        from flowedu.learn.traced import whole
        self.show(whole(self.runner, self.hole))

    def asked(self):
        """The exercise whose number is typed; None: there is none."""
        print(tr("exercise (4.3, say; then Enter):"), "", end="", flush=True)
        typed = ""
        while (pressed := key(POLL)) not in ("\n", "\r", "\x1b", "q"):
            typed = typed[:-1] if pressed in ("\x7f", "\b") else typed + pressed
            print(pressed, end="", flush=True)
        return next((h for h in self.runner.holes if h.id == typed.strip()), None)

    def picked(self):
        """The exercise that is chosen from the list; None: none. Without a terminal the list is only printed."""
        if not sys.stdin.isatty():
            self.show(self.runner.list())
            return None
        holes, at, pressed = self.runner.holes, self.runner.holes.index(self.hole), "l"
        while True:
            if pressed:                            # draw again
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
    """Begins with `hole`, or the first that is not right. Returns the exit status."""
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
    """The exercise at hand and the next that is not right."""
    after = runner.after(hole)
    told = [(tr("at hand"), hole), *([(tr("next"), after)] if after is not None else [])]
    return [cut(tr("{word} {short} {minutes} min   {file}", word=padded(word, 8), short=padded(cut(short(h), 44), 44),
                   minutes=f"{h.minutes:3d}", file=runner.file(h))).rstrip() for word, h in told]


def window(runner, chosen) -> list[str]:
    """The list with a mark at the chosen one; of a list that is longer than the screen, what is around it."""
    rows = [t.replace("  [", "> [", 1) if t.split("] ")[-1].split()[:1] == [chosen.id] else t for t in runner.list()]
    at = next((i for i, t in enumerate(rows) if t.startswith("> ")), 0)
    room = max(5, shutil.get_terminal_size().lines - 6)
    first = max(0, min(at - room // 2, len(rows) - room))
    return rows[first:first + room]


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
