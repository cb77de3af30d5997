"""A checkpoint directory in one file: a zip of what flow.save writes, for io.BytesIO, open(path, "wb"), and torch.save.

    pack(lambda folder: flow.save(state, folder), stream)
    pack_file(lambda stream: flow.save(state, stream), path)
    with unpacked(stream or path) as folder: ...             # the directory again, for as long as that takes

Nothing in it is compressed, so that what is read is never larger than the file; the same state gives the same bytes.
"""
from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from flowedu.errors.files import replacing
from flowedu.saving.folder import CheckpointFileError

MARK = "state.json"


def is_stream(f: Any) -> bool:
    """Return True for an open file, False for a path."""
    return not isinstance(f, (str, bytes, os.PathLike)) and callable(getattr(f, "write", None) or getattr(f, "read", None))


def pack(write: Callable[[Path], None], f: IO[bytes]) -> None:
    """What write(directory) leaves in a new directory, as one zip, at the end of the stream f. Nothing where it leaves
    nothing (a rank that does not write). CheckpointFileError: f takes text."""
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryFile() as whole:
        folder = Path(place, "state")
        write(folder)
        if not folder.exists():
            return
        with zipfile.ZipFile(whole, "w") as z:
            for file in sorted(p for p in folder.rglob("*") if p.is_file()):
                entry = zipfile.ZipInfo(file.relative_to(folder).as_posix(), (1980, 1, 1, 0, 0, 0))
                with file.open("rb") as source, z.open(entry, "w", force_zip64=True) as target:
                    shutil.copyfileobj(source, target)
        whole.seek(0)
        try:
            shutil.copyfileobj(whole, f)
        except TypeError:
            raise CheckpointFileError("flow.save: the file takes text", expected="a file of bytes", got=repr(f)[:80],
                                      fix='open(path, "wb"), or io.BytesIO()') from None


def pack_file(write: Callable[[IO[bytes]], None], path: str | os.PathLike) -> None:
    """The file at `path` that write(stream) fills; until it is whole what was there stays. Parents are made. Where
    nothing is written nothing is changed."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise CheckpointFileError(f"{path} is a directory", expected="the path of a file", got="a directory",
                                  fix="another path, or remove it")
    with replacing(path, keep_empty=False) as f:
        write(f)


def rest(f: IO[bytes]) -> io.BytesIO:
    """Return the remaining bytes of the stream. CheckpointFileError: none, or text."""
    data = f.read()
    if not data or not isinstance(data, bytes):
        raise CheckpointFileError(f"flow.load: {name_of(f)} has nothing to read", expected="the bytes of flow.save",
                                  got="text" if data else "its end", fix='f.seek(0) before, of a file opened with "rb"')
    return io.BytesIO(data)


def is_packed(f: Any) -> bool:
    """Whether the file at this path, or in these bytes, is what `pack` writes."""
    try:
        with zipfile.ZipFile(f) as z:
            return MARK in z.namelist()
    except Exception:                                # damaged bytes make zipfile raise many classes
        return False


@contextlib.contextmanager
def unpacked(f: Any) -> Iterator[Path]:
    """Yield a temporary directory with the contents of the file. CheckpointFileError: it is damaged."""
    with tempfile.TemporaryDirectory() as place:
        try:
            with zipfile.ZipFile(f) as z:
                entries = z.infolist()
                for e in entries:
                    if e.compress_type != zipfile.ZIP_STORED or e.header_offset and e is entries[0] or e.is_dir():
                        raise ValueError(f"entry {e.filename!r} is not as flow.save writes it")
                z.extractall(place)
        except Exception as e:                       # damaged bytes make zipfile raise many classes
            raise CheckpointFileError(f"flow.load: {name_of(f)} cannot be read", expected="one whole file of flow.save",
                                      got=f"{type(e).__name__}: {e}"[:200],
                                      fix="it is damaged: take another copy; several states go into one dict") from None
        yield Path(place)


def name_of(f: Any) -> str:
    """Return a name for messages."""
    return f"the {type(f).__name__}" if is_stream(f) else os.fspath(f)
