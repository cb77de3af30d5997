"""Fetch one file and never leave half of it behind; where fetched files live.

The bytes go to a temporary name in the same folder, are checked, and only then renamed to the final name. A rename
is atomic, so a reader sees no file or the whole file, also when two processes fetch it at the same moment: each
writes its own temporary file and the second rename replaces equal bytes.
"""
from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from flowedu.errors import DataError
from flowedu.errors.files import replacing

CHUNK = 1 << 18
TIMEOUT = 30  # seconds without a single byte before we give up


def cache_dir() -> Path:
    """The folder for fetched files: `$FLOWEDU_CACHE`, else `flowedu` in the user's cache folder (XDG)."""
    own = os.environ.get("FLOWEDU_CACHE")
    if own:
        return Path(own).expanduser()
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path("~/.cache").expanduser()) / "flowedu"


def sha256_of(path: str | os.PathLike) -> str:
    """SHA-256 of a file, in hexadecimal."""
    import hashlib
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def fetch(url: str, path: str | os.PathLike, sha256: str | None = None) -> Path:
    """Download `url` to `path` with a progress bar; `sha256=None` skips the check of the content.

    Raises DataError, and leaves neither `path` nor a temporary file, when the network fails, the transfer stops
    early or the content is not the expected one.
    """
    path = Path(path)
    by_hand = f"with a browser or on another machine, download {url} and put it at {path}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise DataError(f"download: cannot create the folder {path.parent}", got=str(e),
                        fix="choose a folder you can write to") from e
    with replacing(path, sync=True) as out:
        got = _transfer(url, out, path.name, by_hand)
        if sha256 is not None and got != sha256:
            raise DataError(f"download: sha256 verification failed for {url}; nothing was kept",
                            expected=sha256, got=got,
                            fix="the server sent another file (a login page?): try again, or " + by_hand)
    return path


def _transfer(url: str, out: IO[bytes], label: str, by_hand: str) -> str:
    """Copy the answer of `url` into `out`; returns the SHA-256 of what came."""
    import hashlib
    import http.client
    import urllib.request

    from tqdm.auto import tqdm

    digest, came = hashlib.sha256(), 0
    try:
        # `disable=None`: the bar shows on a terminal only, so logs stay readable.
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            length = answer.headers.get("Content-Length")
            total = int(length) if length and length.isdigit() else None
            with tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024, desc=label, disable=None) as bar:
                while chunk := answer.read(CHUNK):
                    out.write(chunk)
                    digest.update(chunk)
                    came += len(chunk)
                    bar.update(len(chunk))
    except (OSError, http.client.HTTPException, ValueError) as e:   # URLError and timeouts are OSError
        reason = getattr(e, "reason", None) or e
        raise DataError(f"download: could not fetch {url}", got=f"{type(e).__name__}: {reason}",
                        fix="check the network and try again, or " + by_hand) from e
    if total is not None and came != total:
        raise DataError(f"download: the transfer of {url} stopped early; nothing was kept",
                        expected=f"{total:,} bytes", got=f"{came:,} bytes", fix="try again, or " + by_hand)
    return digest.hexdigest()
