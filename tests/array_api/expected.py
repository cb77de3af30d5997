"""Expected failures of the suite data-apis/array-api-tests: reading xfails.txt."""
import fnmatch
from pathlib import Path


def read_xfails(path: Path) -> dict[str, tuple[str, bool]]:
    """Return {pattern of test ids: (reason, True if every case must fail)} from a file of expected failures.

    A line is `pattern  # reason`; in a pattern only `*` is special. A line that begins with `~` names cases
    that fail only for some random inputs, so they may also pass.
    """
    rows = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, _, reason = line.partition("  # ")
            rows[pattern.removeprefix("~").strip()] = (reason.strip(), not line.startswith("~"))
    return rows


def matches(test_id: str, pattern: str) -> bool:
    """Return True if `pattern` describes the test; `*` stands for any characters."""
    return fnmatch.fnmatchcase(test_id, pattern.replace("[", "[[]").replace("?", "[?]"))
