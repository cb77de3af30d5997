"""Tables of the page "From PyTorch".

Their data is in flowedu/mock/differences.py, which answers the calls of programs, and in
flowedu/mock/differs_optim.py (optimizers and schedules).
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from flowedu.mock.differences import ANY, FACES, IDLE, OTHERS, PLACES, RENAMED, Other
from flowedu.mock.differs_optim import DIFFERS

EVERY = "every name that has it"


def filled(text: str) -> str:
    """The page with a table for each line `% name`."""
    for name, table in TABLES.items():
        text = text.replace(f"% {name}\n", table() + "\n")
    return text


def _renamed() -> str:
    """A row for each name of flowedu's: PyTorch may have several."""
    rows: dict[tuple, list[str]] = {}
    for names, pairs in RENAMED.items():
        for theirs, ours in pairs.items():
            rows.setdefault((names, ours), []).append(theirs)
    return _table(("in", "PyTorch's", "flowedu's"), (
        (_names(names), ", ".join(map(_code, theirs)), "by its place" if ours == "*" else _code(ours))
        for (names, ours), theirs in rows.items()))


def _idle() -> str:
    """A row for each reason and remedy: many functions lack the same arguments."""
    rows: dict[tuple, list[str]] = {}
    for row in IDLE:
        values = "any value" if row.values is ANY else ", ".join(_code(str(v)) for v in row.values)
        rows.setdefault((row.names, values, row.why, row.fix), []).append(row.argument)
    return _table(("in", "argument", "without effect", "because", "write instead"), (
        (_names(names), ", ".join(map(_code, arguments)), values, why, fix)
        for (names, values, why, fix), arguments in rows.items()))


def _places() -> str:
    rows = ((_names(names), _code(", ".join(places.split()))) for names, places in PLACES.items())
    return _table(("in", "the order"), rows)


def _others(rows: Sequence[Other], silent: bool) -> str:
    head = ("name", "argument", "flowedu", "PyTorch", "", "silent")
    lines = [(_names(r.names) if "," not in r.names else r.names, r.argument, r.ours, r.theirs, r.why,
              "yes" if r.silent else "no") for r in rows]
    columns = len(head) if silent else len(head) - 1
    return _table(head[:columns], (line[:columns] for line in lines))


def _optim() -> str:
    """A row for each difference: many optimizers and schedules share one."""
    rows: dict[tuple, list[str]] = {}
    for name, differences in DIFFERS.items():
        for row in differences:
            rows.setdefault(tuple(row), []).append(name)
    return _table(("in", "argument", "`flow`", "`torch`"), (
        (", ".join(map(_code, names)), _code(parameter) if parameter else "", ours or "not there",
         theirs or "not there")
        for (parameter, ours, theirs), names in rows.items()))


TABLES = {"renamed": _renamed, "idle": _idle, "places": _places, "faces": lambda: _others(FACES, True),
          "optim": _optim, "others": lambda: _others(OTHERS, False)}


def _names(text: str) -> str:
    return EVERY if text == "*" else ", ".join(map(_code, text.split()))


def _code(text: str) -> str:
    return f"`{text}`"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |"
                     for line in lines) + "\n"
