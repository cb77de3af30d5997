"""Atomic download of one file, and the folder of downloaded files.

The bytes are written to a temporary file in the same folder, checked, and then renamed to the final name. A
rename is atomic, so a reader sees either no file or the whole file. If two processes download the same file,
each writes its own temporary file, and the second rename replaces equal bytes.
"""
from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from flowedu.errors import DataError
from flowedu.errors.files import replacing

CHUNK = 1 << 18
TIMEOUT = 30  # seconds without data before the download fails


def cache_dir() -> Path:
    """Return the download folder: `$FLOWEDU_CACHE`, or `flowedu` in the user's cache folder (XDG)."""
    folder = os.environ.get("FLOWEDU_CACHE")
    if folder:
        return Path(folder).expanduser()
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg) if xdg else Path("~/.cache").expanduser()) / "flowedu"


def sha256_of(path: str | os.PathLike) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    import hashlib
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def fetch(url: str, path: str | os.PathLike, sha256: str | None = None) -> Path:
    """Download `url` to `path` with a progress bar. With `sha256=None` the content is not checked.

    Raise DataError if the network fails, the transfer is incomplete, or the checksum differs. In this case
    neither `path` nor a temporary file remains.
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
    """Copy the response of `url` into `out` and return its SHA-256."""
    import hashlib
    import http.client
    import urllib.request

    from tqdm.auto import tqdm

    digest, came = hashlib.sha256(), 0
    try:
        # `disable=None` shows the bar only on a terminal, so that logs stay readable.
        with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:
            length = answer.headers.get("Content-Length")
            total = int(length) if length and length.isdigit() else None
            with tqdm(total=total, unit="B", unit_scale=True, unit_divisor=1024, desc=label,
                      disable=None) as bar:
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
