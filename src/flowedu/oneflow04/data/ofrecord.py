"""OFRecord files: parts in one folder, each a sequence of [length: int64, little endian][OFRecord message].

    with flow.data.ofrecord_writer("digits", data_part_num=2) as w:
        w.write({"encoded": png_bytes, "class/label": 7})

    for record in flow.data.ofrecord_records("digits/part-0"):
        record.feature["class/label"].int64_list.value

`flow.data.ofrecord_reader` reads them in batches, in jobs. Messages: flowedu.oneflow04.record.record_pb2.
"""
from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from flowedu.errors import ArgumentError, DataError, DTypeError
from flowedu.errors.files import temporary_name
from flowedu.oneflow04.record import record_pb2

_LENGTH = struct.Struct("<q")
_BUFFER = 1 << 20


class RawRecord(NamedTuple):
    """One record of a file that is not parsed: its bytes and their position."""

    data: bytes
    path: str
    offset: int

    def parse(self):
        """Return the OFRecord message. Raise DataError if the bytes are not one."""
        try:
            return record_pb2.OFRecord.FromString(self.data)
        except DataError:
            raise
        # Protobuf's DecodeError, whose module is imported on first use only.
        except Exception as e:
            raise DataError(f"ofrecord: the record at {self.where} is damaged",
                            expected="an OFRecord message",
                            got=f"{len(self.data)} bytes: {e}",
                            fix="write the file again, or remove it and lower data_part_num") from e

    @property
    def where(self) -> str:
        return f"byte {self.offset} of {self.path}"


def part_paths(ofrecord_dir: str | os.PathLike, data_part_num: int = 1, part_name_prefix: str = "part-",
               part_name_suffix_length: int = -1) -> list[str]:
    """Return the paths of the parts: folder, prefix, and index, padded with zeros."""
    if (isinstance(data_part_num, bool) or not isinstance(data_part_num, (int, np.integer))
        or data_part_num < 1):
        raise ArgumentError("ofrecord: data_part_num is not a number of files",
                            expected="an int of 1 or more",
                            got=repr(data_part_num), fix="data_part_num=1 for a single file part-0")
    folder = os.path.abspath(os.fspath(ofrecord_dir))
    return [os.path.join(folder, part_name_prefix + str(i).zfill(max(part_name_suffix_length, 0)))
            for i in range(data_part_num)]


def check_parts(paths: list[str]) -> None:
    """Raise DataError for the first part that does not exist."""
    for path in paths:
        if not os.path.isfile(path):
            folder = os.path.dirname(path)
            found = sorted(os.listdir(folder)) if os.path.isdir(folder) else None
            if os.path.isdir(path):
                raise DataError(f"ofrecord: {path} is a folder", expected="files of OFRecords",
                                got="a folder", fix=f'ofrecord_dir="{path}", if its parts are in there')
            raise DataError(f"ofrecord: there is no file {path}",
                            expected=f"{len(paths)} part{'s' * (len(paths) > 1)}: "
                            f"{os.path.basename(paths[0])}" +
                            f" to {os.path.basename(paths[-1])}" * (len(paths) > 1),
                            got="no such folder" if found is None else "a folder with " + _abbreviate(found),
                            fix="check ofrecord_dir" if found is None
                            else "check data_part_num, part_name_prefix and part_name_suffix_length")


def _abbreviate(names: list[str]) -> str:
    return (", ".join(names[:6]) + ", ..." * (len(names) > 6)) or "no files"


def read_part(path: str | os.PathLike) -> Iterator[RawRecord]:
    """Return the records of one part, in order.

    Raise DataError if the file is missing, truncated, or not an OFRecord file.
    """
    path = os.fspath(path)
    check_parts([path])
    try:
        with open(path, "rb", buffering=_BUFFER) as f:
            size, offset = os.fstat(f.fileno()).st_size, 0
            while head := f.read(_LENGTH.size):
                if len(head) < _LENGTH.size:
                    raise _cut(path, offset, "8 bytes of length", len(head))
                length, = _LENGTH.unpack(head)
                left = size - offset - _LENGTH.size
                if length <= 0 or length >= 1 << 31:
                    raise DataError(f"ofrecord: byte {offset} of {path} does not start a record",
                                    expected="[length: int64, little endian][OFRecord message]",
                                    got=f"length {length}",
                                    fix="is it an OFRecord file? flow.data.ofrecord_writer makes them")
                data = f.read(length) if length <= left else b""
                if len(data) < length:
                    raise _cut(path, offset, f"{length} bytes of record", left)
                yield RawRecord(data, path, offset)
                offset += _LENGTH.size + length
    except OSError as e:
        raise DataError(f"ofrecord: cannot read {path}", expected="a readable file", got=str(e),
                        fix="check its permissions and the disk") from e


def _cut(path: str, offset: int, expected: str, got: int) -> DataError:
    return DataError(f"ofrecord: {path} ends within the record at byte {offset}", expected=expected,
                     got=f"{got} bytes",
                     fix="the file was cut off while it was written or copied: write or copy it again")


def ofrecord_records(path: str | os.PathLike) -> Iterator:
    """Return an iterator over the OFRecord messages of one part, in order.

    Args:
        path: the file.

    Raises:
        DataError: the file is missing, truncated, or not an OFRecord file.
    """
    return (raw.parse() for raw in read_part(path))


def _narrow(array: np.ndarray) -> np.ndarray:
    """Return Python's floats as float32; DataError for a finite number that becomes infinite."""
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    lost = np.isfinite(array) & ~np.isfinite(narrow)
    if lost.any():
        raise DataError("ofrecord: a float does not fit float32", expected="magnitudes up to 3.4028235e+38",
                        got=repr(float(array[lost][0])),
                        fix="np.float64(x), which is stored in a double_list")
    return narrow


def feature(value: Any):
    """Return `value` as a Feature message.

    bytes, a str (UTF-8), or a list of bytes become a bytes_list. Numbers and arrays become a list that
    depends on their dtype: float_list for float32, double_list for float64, int64_list for int64, and
    int32_list for smaller integers. A Python int is stored as int64, a Python float as float32. The shape of
    an array is not stored; decoders get it as an argument.
    """
    pb = record_pb2
    if isinstance(value, pb.Feature):
        return value
    items = [value] if isinstance(value, (bytes, bytearray, str)) else value
    if (isinstance(items, (list, tuple)) and items and all(isinstance(x, (bytes, bytearray, str))
                                                           for x in items)):
        return pb.Feature(bytes_list=pb.BytesList(value=[x.encode() if isinstance(x, str) else bytes(x)
                                                         for x in items]))
    array = np.asarray(value).reshape(-1)
    if array.dtype == np.float64 and not isinstance(value, (np.ndarray, np.generic)):
        array = _narrow(array)
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "f" and size <= 4:
        return pb.Feature(float_list=pb.FloatList(value=array.astype(np.float32)))
    if kind == "f" and size == 8:
        return pb.Feature(double_list=pb.DoubleList(value=array))
    if kind in "iub" and size + (kind == "u") <= 4:
        return pb.Feature(int32_list=pb.Int32List(value=array.astype(np.int32)))
    if kind in "iu" and size + (kind == "u") <= 8:
        return pb.Feature(int64_list=pb.Int64List(value=array.astype(np.int64)))
    raise DTypeError("ofrecord: a feature cannot hold this",
                     expected="bytes, str, a list of bytes, or numbers that fit float32, float64, int32 or "
                     "int64", got=f"{type(value).__name__} of {array.dtype}",
                     fix="for an image, write the bytes of its PNG or JPEG file, or array.tobytes()")


class ofrecord_writer:
    """A writer of the parts of a data set.

        with flow.data.ofrecord_writer("digits", data_part_num=2) as w:
            w.write({"class/label": 7})

    Each part is written under a temporary name and renamed when the writer is closed. An exception inside
    `with` removes all parts. Existing parts are replaced.

    Args:
        ofrecord_dir: the folder of the files, which is created if it does not exist.
        data_part_num: the number of files.
        part_name_prefix: the start of the names of the files.
        part_name_suffix_length: the number of digits in the names; -1 does not pad.
    """

    _files: Sequence = ()
    _temporary: Sequence = ()

    def __init__(self, ofrecord_dir: str | os.PathLike, data_part_num: int = 1,
                 part_name_prefix: str = "part-", part_name_suffix_length: int = -1):
        self.paths = part_paths(ofrecord_dir, data_part_num, part_name_prefix, part_name_suffix_length)
        self.count = 0
        self._files = []                    # open while records may be written
        self._temporary = [temporary_name(p) for p in self.paths]
        try:
            os.makedirs(os.path.dirname(self.paths[0]), exist_ok=True)
            for path in self._temporary:
                self._files.append(open(path, "xb", buffering=_BUFFER))     # noqa: SIM115
        except OSError as e:
            self.discard()
            raise DataError(f"ofrecord: cannot write in {os.path.dirname(self.paths[0])}",
                            expected="a folder to write in", got=str(e), fix="choose another folder") from e

    def write(self, record: Mapping[str, Any] | bytes | Any, part: int | None = None) -> None:
        """Add one record.

        Args:
            record: an OFRecord message, its serialized bytes, or {feature name: value}. Values are bytes,
                strings, numbers, arrays, or lists of bytes.
            part: the index of the part; None uses the parts in turn.
        """
        if not self._files:
            raise DataError("ofrecord: the writer is closed", expected="an open writer", got="a closed one",
                            fix="write inside the with block")
        part = self.count % len(self.paths) if part is None else part
        if not 0 <= part < len(self.paths):
            raise ArgumentError("ofrecord: there is no such part", expected=f"0 to {len(self.paths) - 1}",
                                got=str(part), fix="raise data_part_num")
        if isinstance(record, Mapping):
            record = record_pb2.OFRecord(feature={k: feature(v) for k, v in record.items()})
        data = record if isinstance(record, bytes) else record.SerializeToString()
        if not data:
            raise DataError("ofrecord: the record is empty", expected="at least one feature", got="none",
                            fix='write({"class/label": 7})')
        try:
            self._files[part].write(_LENGTH.pack(len(data)))
            self._files[part].write(data)
        except OSError as e:
            self.discard()
            raise self._not_written(e) from e
        self.count += 1

    def close(self) -> None:
        """Rename the parts to their final names. A second call does nothing."""
        if not self._files:
            return
        try:
            for f in self._files:
                f.flush()
                os.fsync(f.fileno())
                f.close()
            for temporary, path in zip(self._temporary, self.paths):
                os.replace(temporary, path)
            self._files = []
        except OSError as e:
            raise self._not_written(e) from e
        finally:
            self.discard()

    def _not_written(self, error: OSError) -> DataError:
        return DataError(f"ofrecord: cannot write in {os.path.dirname(self.paths[0])}",
                         expected="enough disk space",
                         got=str(error), fix="write to a disk with more free space; the partial files were "
                         "removed")

    def discard(self) -> None:
        """Close and remove the parts that were written so far."""
        files, self._files = self._files, []
        for f, path in zip(files, self._temporary):
            with contextlib.suppress(OSError):       # the buffered bytes may not fit on the disk
                f.close()
            Path(path).unlink(missing_ok=True)

    def __enter__(self) -> ofrecord_writer:
        return self

    def __exit__(self, kind, *exc) -> None:
        self.close() if kind is None else self.discard()

    def __del__(self):
        self.discard()
