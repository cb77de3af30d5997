"""flow.checkpoint: save and get the session's variables. The files are oneflow04/job/checkpoint_files.py's."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowedu.core.job.session import default_session
from flowedu.errors.nearest import similar
from flowedu.oneflow04.job import checkpoint_files
from flowedu.oneflow04.job.checkpoint_files import FileBackendVariableBlob
from flowedu.oneflow04.job.session import get_all_variables


def save(path: str, var_dict: Mapping[str, Any] | None = None) -> None:
    """Write variables into the new or empty directory `path`, all or nothing. Starts the session.

    Args:
        var_dict: {name: array, tensor, live variable or variable of another checkpoint}; default: all variables of the
            session, with optimizer state and train steps.

    Raises: CheckpointFileError (an AssertionError) when `path` is a file or a directory with something in it.
    """
    variables = get_all_variables()
    with default_session().lock:                  # no other thread trains meanwhile
        checkpoint_files.write(path, variables if var_dict is None else var_dict)


def get(path: str) -> dict[str, FileBackendVariableBlob] | FileBackendVariableBlob:
    """{name: variable on disk} of a checkpoint, for flow.load_variables; or one variable, when `path` is the directory
    of one. Starts the session. Raises CheckpointFileError (an AssertionError) when there is no checkpoint at `path`."""
    default_session().start()
    return checkpoint_files.read(path)


def compare(value_dict: Mapping[str, Any]) -> str:
    """What flow.load_variables(value_dict) would do, as text: variables that fit, those that do not, names that only one
    side has, with the nearest name of the other. Starts the session.

        flow.checkpoint.compare(flow.checkpoint.get("./snapshot"))
    """
    variables = get_all_variables()
    fits = [n for n, v in value_dict.items() if n in variables and tuple(v.shape or ()) == variables[n].shape]
    lines = [f"{len(fits)} of {len(variables)} variables are loaded"]
    for name in sorted({*variables, *value_dict}.difference(fits)):
        if name in variables and name in value_dict:
            lines.append(f"  {name}: the shape is {value_dict[name].shape}, not {variables[name].shape}: refused")
        elif name in variables:
            lines.append(f"  {name}: keeps its value{_near(name, value_dict, variables, 'there is')}")
        else:
            lines.append(f"  {name}: no such variable, ignored{_near(name, variables, value_dict, 'the session has')}")
    return "\n".join(lines)


def _near(name: str, others: Mapping, own: Mapping, words: str) -> str:
    """", there is 'x'" for the most similar name that only the other side has."""
    close = similar(name, [n for n in others if n not in own])
    return f" ({words} {close!r})" if close else ""
