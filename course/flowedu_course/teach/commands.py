"""Expected errors of the commands for instructors: one message on stderr, and exit status 2."""
from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence

from flowedu.errors import FlowError


def report_errors(main: Callable[[Sequence[str] | None], int]) -> Callable[[Sequence[str] | None], int]:
    """Make the main function of a command print a FlowError or an OSError, and return 2."""
    @functools.wraps(main)
    def run(arguments: Sequence[str] | None = None) -> int:
        try:
            return main(arguments)
        except FlowError as error:
            print(error, file=sys.stderr)
        except OSError as error:
            print(f"{error.strerror}: {error.filename}", file=sys.stderr)
        return 2
    return run
