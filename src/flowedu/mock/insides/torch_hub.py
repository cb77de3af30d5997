"""hub: functions that raise an error, because flowedu does not download models."""
from __future__ import annotations

import os
import re
from typing import NoReturn
from urllib.parse import urlparse  # noqa: F401  (libraries import it from torch.hub)

from flowedu.errors import ArgumentError, left_out

HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")         # hash in a file name, such as resnet18-f37072fd.pth


def _refuse(what: str, request: object) -> NoReturn:
    raise ArgumentError(f"hub.{what}: flowedu fetches nothing from a network",
                        expected="a file on this machine",
                        got=repr(request)[:80], fix=left_out.NAMED["hub"].format_fix())


def load(repo_or_dir, model=None, *args, **kwargs) -> NoReturn:
    """Raise ArgumentError: flowedu opens no connections and does not run a hubconf.py."""
    _refuse("load", repo_or_dir)


def help(github, model=None, *args, **kwargs) -> NoReturn:  # noqa: A001
    """Raise ArgumentError, like `load`."""
    _refuse("help", github)


def list(github, *args, **kwargs) -> NoReturn:  # noqa: A001
    """Raise ArgumentError, like `load`."""
    _refuse("list", github)


def load_state_dict_from_url(url: str, model_dir=None, map_location=None, **options) -> NoReturn:
    """Raise ArgumentError, like `load`."""
    _refuse("load_state_dict_from_url", url)


def download_url_to_file(url: str, dst: str, hash_prefix=None, progress: bool = True) -> NoReturn:
    """Raise ArgumentError, like `load`."""
    _refuse("download_url_to_file", url)


_folder = os.path.join(os.path.expanduser(os.environ.get("TORCH_HOME", "~/.cache/torch")), "hub")


def get_dir() -> str:
    """Return the folder where PyTorch would store downloads."""
    return _folder


def set_dir(d: str) -> None:
    """Set the folder, which has no effect."""
    global _folder
    _folder = d
