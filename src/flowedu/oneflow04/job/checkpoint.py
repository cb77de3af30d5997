"""flow.checkpoint: save and load the variables of the session."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowedu.core.job.session import default_session
from flowedu.errors.nearest import similar
from flowedu.oneflow04.job import checkpoint_files
from flowedu.oneflow04.job.checkpoint_files import FileBackendVariableBlob
from flowedu.oneflow04.job.session04 import get_all_variables


def save(path: str, var_dict: Mapping[str, Any] | None = None) -> None:
    """Write variables into the new or empty directory `path`: either all of them, or none. Start the session.

    Args:
        path: the directory.
        var_dict: {name: array, tensor, live variable, or variable of another checkpoint}. None saves all
            variables of the session, including the state of optimizers and the train steps.

    Raises:
        CheckpointFileError: `path` is a file or a directory that is not empty. The error is an
            AssertionError.
    """
    variables = get_all_variables()
    with default_session().lock:                  # no other thread trains meanwhile
        checkpoint_files.write(path, variables if var_dict is None else var_dict)


def get(path: str) -> dict[str, FileBackendVariableBlob] | FileBackendVariableBlob:
    """Return the variables of a checkpoint, for flow.load_variables. Start the session.

    Args:
        path: the directory of a checkpoint, or of one variable.

    Returns: {name: variable on disk}, or one variable.

    Raises:
        CheckpointFileError: `path` is not a checkpoint. The error is an AssertionError.
    """
    default_session().start()
    return checkpoint_files.read(path)


def compare(value_dict: Mapping[str, Any]) -> str:
    """Describe the effect of flow.load_variables(value_dict) as text. Start the session.

    The text lists the variables that fit and the variables that do not. It also lists names that only one
    side has, each with the most similar name of the other side.

        flow.checkpoint.compare(flow.checkpoint.get("./snapshot"))

    Args:
        value_dict: {name: array or variable}.
    """
    variables = get_all_variables()
    fits = [n for n, v in value_dict.items() if n in variables and tuple(v.shape or ()) == variables[n].shape]
    lines = [f"{len(fits)} of {len(variables)} variables are loaded"]
    for name in sorted({*variables, *value_dict}.difference(fits)):
        if name in variables and name in value_dict:
            lines.append(f"  {name}: the shape is {value_dict[name].shape}, not {variables[name].shape}: "
                         f"refused")
        elif name in variables:
            lines.append(f"  {name}: keeps its "
                         f"value{_describe_nearest(name, value_dict, variables, 'there is')}")
        else:
            remark = _describe_nearest(name, variables, value_dict, "the session has")
            lines.append(f"  {name}: no such variable, ignored{remark}")
    return "\n".join(lines)


def _describe_nearest(name: str, others: Mapping, own: Mapping, words: str) -> str:
    """Return a remark with the most similar name that only the other side has, or ""."""
    close = similar(name, [n for n in others if n not in own])
    return f" ({words} {close!r})" if close else ""
