"""Dataset files: download from the first available server, and extraction from archives."""
from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from flowedu.errors import DataError
from flowedu.errors.files import replacing
from flowedu.utils.download import fetch

LARGEST = 1 << 29           # bytes of one file in an archive: three times the largest file of these datasets


def fetch_first(urls: Iterable[str], path: Path, sha256: str | None, instead: str) -> Path:
    """Download `path` from the first of `urls` that has the right content; show a progress bar.

    Raises:
        DataError: none is available; `instead` names data that need no network.
    """
    last: DataError                     # urls is not empty
    for url in urls:
        try:
            return fetch(url, path, sha256)
        except DataError as e:
            last = e
    raise last.with_texts(fix=f"{last.fix}; or without a network {instead}")


def extract(archive: Path, names: Iterable[str], folder: Path) -> None:
    """Extract the files with these names from a .tar.gz into `folder`, without their folders.

    A file has a temporary name until it is complete. Raises DataError.
    """
    import shutil
    import tarfile

    missing = set(names)
    remove = f"remove {archive} and fetch it again with download=True"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tarfile.open(archive, "r|gz") as tar:
            for member in tar:
                name = member.name.rsplit("/", 1)[-1]
                if name not in missing or not member.isfile():
                    continue
                if member.size > LARGEST:
                    raise DataError(f"extract: {name} in {archive} is too large",
                                    expected=f"at most {LARGEST:,} bytes",
                                    got=f"{member.size:,} bytes", fix=remove)
                source = tar.extractfile(member)
                assert source is not None           # because member is a file
                with source, replacing(folder / name) as out:
                    shutil.copyfileobj(source, out, 1 << 20)
                missing.discard(name)
                if not missing:
                    return
    except DataError:
        raise
    except Exception as e:              # for damaged files, tarfile also raises TypeError and ValueError
        raise DataError(f"extract: cannot read {archive}", got=f"{type(e).__name__}: {e}", fix=remove) from e
    raise DataError(f"extract: {archive} does not have all files", expected=", ".join(sorted(names)),
                    got="not there: " + ", ".join(sorted(missing)), fix=remove)
