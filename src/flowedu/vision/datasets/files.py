"""Files of datasets: fetched from the first server that answers, and taken out of archives one by one."""
from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from flowedu.errors import DataError
from flowedu.errors.files import replacing
from flowedu.oneflow04.data.download import fetch

LARGEST = 1 << 29           # bytes of one file in an archive: three times the largest that a dataset here has


def fetch_first(urls: Iterable[str], path: Path, sha256: str | None, instead: str) -> Path:
    """Fetch `path` from the first of `urls` that gives the right bytes, with a progress bar.

    Raises:
        DataError: none did; `instead` names the data that need no network.
    """
    last = None
    for url in urls:
        try:
            return fetch(url, path, sha256)
        except DataError as e:
            last = e
    raise last.told(fix=f"{last.fix}; or without a network {instead}")


def extract(archive: Path, names: Iterable[str], folder: Path) -> None:
    """Copy the files with these names (without their folders) out of a .tar.gz into `folder`; nothing else is written.

    Each gets a temporary name first, so that a file that is there is whole. Raises DataError.
    """
    import shutil
    import tarfile

    wanted = set(names)
    remove = f"remove {archive} and fetch it again with download=True"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(archive, "r|gz") as tar:
            for member in tar:
                name = member.name.rsplit("/", 1)[-1]
                if name not in wanted or not member.isfile():
                    continue
                if member.size > LARGEST:
                    raise DataError(f"extract: {name} in {archive} is too large", expected=f"at most {LARGEST:,} bytes",
                                    got=f"{member.size:,} bytes", fix=remove)
                with tar.extractfile(member) as source, replacing(folder / name) as out:
                    shutil.copyfileobj(source, out, 1 << 20)
                wanted.discard(name)
                if not wanted:
                    return
    except DataError:
        raise
    except Exception as e:              # of a damaged file tarfile raises TypeError and ValueError, too
        raise DataError(f"extract: cannot read {archive}", got=f"{type(e).__name__}: {e}", fix=remove) from e
    raise DataError(f"extract: {archive} does not have all files", expected=", ".join(sorted(names)),
                    got="not there: " + ", ".join(sorted(wanted)), fix=remove)
