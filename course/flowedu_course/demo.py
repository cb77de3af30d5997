"""Opening lines of a chapter's demo, and its ending if an exercise is open."""
from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path
from types import TracebackType


def opening(demo: str, quick: bool = False) -> None:
    """Print the duration of a demo and whose code it runs.

    Args:
        demo: `__file__` of the demo. Its chapter.toml has `demo_seconds`, the duration on two cores.
        quick: True for a short run of a few seconds.
    """
    about = Path(demo).with_name("chapter.toml")
    seconds = tomllib.loads(about.read_text(encoding="utf-8")).get("demo_seconds", 0) if about.exists() else 0
    if seconds and not quick:
        print(f"the demo takes about {lasting(seconds)} on two cores (`make` with LESSON=1 skips it)",
              flush=True)
    if os.environ.get("FLOWEDU_HOLES"):
        from flowedu_course.left_out import describe_code

        print("whose code runs:", describe_code(), flush=True)
    sys.excepthook = _ended


def _ended(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the open exercise (not a failure) or the wrong answer instead of a traceback."""
    from flowedu_course.left_out import opened, spoilt

    hole, line = opened(error), spoilt(error)
    if not (hole or line):
        return sys.__excepthook__(kind, error, trace)
    print(f"the demo ends here: it needs exercise {hole}, which is open" if hole else
          f"the demo ends here: {line}", flush=True)
    raise SystemExit(0 if hole else 1)


def lasting(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
