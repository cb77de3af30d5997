"""Checkpoints with the API of OneFlow 0.2: flow.train.

New programs use flow.checkpoint, also with the manager.
"""
from __future__ import annotations

import os
from datetime import datetime, timedelta
from typing import Any

from flowedu.core.job.session import default_session
from flowedu.errors import CheckError
from flowedu.oneflow04.job import checkpoint
from flowedu.oneflow04.job.checkpoint_files import CheckpointFileError, is_complete
from flowedu.oneflow04.job.session04 import load_variables

_TIME = "%Y%m%d_%H%M%S_%f"


class CheckPoint:
    """Deprecated API for checkpoints; use flow.checkpoint.save, flow.checkpoint.get, and flow.load_variables.
    """

    def __init__(self):
        print("WARNING: flow.train.CheckPoint is deprecated. Please use the new checkpoint API: "
              "flow.checkpoint.save(path), flow.load_variables(flow.checkpoint.get(path))")

    def save(self, path: str) -> None:
        """Save all variables into the new or empty directory `path`. Start the session.

        Args:
            path: the directory.
        """
        checkpoint.save(_text("CheckPoint.save", path))

    def load(self, path: str) -> None:
        """Load the variables of a checkpoint. Start the session.

        Args:
            path: the directory.
        """
        values: Any = checkpoint.get(_text("CheckPoint.load", path))        # a dict, because path is a folder
        load_variables(values)

    def init(self) -> None:
        """Start the session, which gives all variables their initial values."""
        default_session().start()


class SimpleCheckPointManager:
    """A folder of checkpoints, each named by the time when it was saved.

        manager = flow.train.SimpleCheckPointManager("./snapshots")
        manager.initialize_or_restore()     # load the newest checkpoint, or save the initial values
        ...
        manager.save()

    Args:
        root_path: the folder, which is created if it does not exist.
        prefix: the start of the names of its checkpoints.

    An interrupted save is never listed. It leaves at most a hidden folder (see checkpoint_files.write).
    """

    def __init__(self, root_path: str, prefix: str = "snapshot_"):
        self.root_path, self.prefix = _text("SimpleCheckPointManager", root_path), prefix
        if not isinstance(prefix, str) or "/" in prefix or "\\" in prefix or prefix.startswith("."):
            raise CheckError("SimpleCheckPointManager: prefix does not suit the name of a folder",
                             got=repr(prefix),
                             expected='the beginning of a name, without "/" and no "." in front',
                             fix='prefix="snapshot_"')
        if os.path.exists(root_path) and not os.path.isdir(root_path):
            raise CheckpointFileError(f"SimpleCheckPointManager: {root_path} is a file", got="a file",
                                      expected="a folder, or a free path", fix="choose another path")
        os.makedirs(root_path, exist_ok=True)

    def list_checkpoints(self) -> list[str]:
        """Return the names of the complete checkpoints, the oldest first."""
        return sorted(name for name in os.listdir(self.root_path)
                      if name.startswith(self.prefix) and is_complete(os.path.join(self.root_path, name)))

    def latest_checkpoint(self) -> str | None:
        """Return the name of the newest checkpoint, or None."""
        return next(reversed(self.list_checkpoints()), None)

    def initialize_or_restore(self) -> None:
        """Load the newest checkpoint, or save one of the initial values. Start the session."""
        name = self.latest_checkpoint()
        if name is None:
            self.save()
        else:
            values: Any = checkpoint.get(os.path.join(self.root_path, name))    # a dict, for a folder
            load_variables(values)

    def save(self) -> None:
        """Save all variables into a new checkpoint. Start the session."""
        checkpoint.save(os.path.join(self.root_path, self._next_name()))

    def _next_name(self) -> str:
        """Return a name with the current time, or a later one if the clock is behind the newest checkpoint.
        """
        now, latest = datetime.now(), self.latest_checkpoint()
        try:
            newest = datetime.strptime((latest or "")[len(self.prefix):], _TIME)
        except ValueError:
            newest = datetime.min                      # no checkpoint, or one that the user named
        return self.prefix + max(now, newest + timedelta(microseconds=1)).strftime(_TIME)


def _text(what: str, path) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise CheckError(f"{what}: the path is not a text", expected="a str", got=repr(path),
                         fix=f'{what}("./snapshot")')
    return os.fspath(path)
