"""Check the subject of a commit message: `area: imperative summary`, at most 72 characters.

    python tools/check_subject.py FILE       FILE: file with the message, as passed to git's hook commit-msg
"""
from __future__ import annotations

import re
import sys
from pathlib import Path

LONGEST = 72
FORM = re.compile(r"(?P<area>\w[\w./-]*(?:, [\w./-]+)*): (?P<verb>[\w`.-]+)(?: .*)?")
# Past tense without -ed.
IRREGULAR = {"added", "made", "built", "wrote", "kept", "took", "left", "gave"}
IMPERATIVE = {"embed", "feed", "need", "proceed", "shed", "speed", "bring", "string", "ring", "spring"}


def problems(message: str) -> list[str]:
    """Return the faults of a message's subject, or an empty list."""
    subject = next((line for line in message.splitlines() if line.strip() and not line.startswith("#")), "")
    found = []
    if len(subject) > LONGEST:
        found.append(f"the subject has {len(subject)} characters; expected: at most {LONGEST}")
    match = FORM.fullmatch(subject)
    if match is None:
        return [*found, f"the subject is {subject!r}; expected: 'area: imperative summary', as in 'conv: "
                f"fold batch norm'"]
    verb = match["verb"]
    if verb in IRREGULAR or verb not in IMPERATIVE and re.search(r"[a-z](?:ed|ing)$", verb):
        found.append(f"{verb!r} is not an imperative; expected: 'fix', not 'fixed' or 'fixing'")
    if subject.endswith("."):
        found.append("the subject ends with a period")
    return found


def main(arguments: list[str]) -> int:
    """Print the faults of the message in a file; return the exit status."""
    wrong = problems(Path(arguments[0]).read_text(encoding="utf-8"))
    print("\n".join(wrong), end="\n" if wrong else "")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
