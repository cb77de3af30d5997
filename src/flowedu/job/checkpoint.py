"""flow.checkpoint: save and get the session's variables. The files are job/checkpoint_files.py's."""
from __future__ import annotations

from flowedu.job import checkpoint_files
from flowedu.job.session import default_session, get_all_variables


def save(path: str, var_dict: dict | None = None) -> None:
    """Write variables (default: all, with optimizer state and train steps) into the new or empty directory `path`."""
    values = get_all_variables() if var_dict is None else var_dict
    checkpoint_files.write(path, values)


def get(path: str):
    """{name: variable on disk} of a checkpoint, for flow.load_variables. Starts the session."""
    default_session().start()
    return checkpoint_files.read(path)
