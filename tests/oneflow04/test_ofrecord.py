"""OFRecord files: messages on the wire, features from Python values, parts on the disk."""
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flowedu as flow
import flowedu.core.record.record_pb2 as pb
from common import refused, write_numbered_records
from flowedu.data.ofrecord import feature, part_paths, read_part
from flowedu.errors import ArgumentError, DataError, DTypeError
from flowedu.errors.extras import install

in_tmp_path = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None,
                       max_examples=40)


def int32s(*values):
    return pb.Feature(int32_list=pb.Int32List(value=values))


# ---- messages
# ------------------------------------------------------------------------------------------------------

def test_wire_bytes_follow_record_proto():
    record = pb.OFRecord(feature={"k": int32s(1, 300)})
    #      Int32List: field 1, packed         Feature: field 4            map entry: 1 = key, 2 = value
    # OFRecord: field 1
    values = b"\x0a\x03\x01\xac\x02"
    kind = b"\x22" + bytes([len(values)]) + values
    entry = b"\x0a\x01k\x12" + bytes([len(kind)]) + kind
    assert record.SerializeToString() == b"\x0a" + bytes([len(entry)]) + entry
    assert record.ByteSize() == len(record.SerializeToString())


@pytest.mark.parametrize("kind, lists, value, wire", [
    ("bytes_list", "BytesList", [b"ab", b""], b"\x0a\x06\x0a\x02ab\x0a\x00"),
    ("float_list", "FloatList", [1.5], b"\x12\x06\x0a\x04" + struct.pack("<f", 1.5)),
    ("double_list", "DoubleList", [1.5], b"\x1a\x0a\x0a\x08" + struct.pack("<d", 1.5)),
    ("int32_list", "Int32List", [-1], b"\x22\x0c\x0a\x0a" + b"\xff" * 9 + b"\x01"),
    ("int64_list", "Int64List", [1 << 40], b"\x2a\x08\x0a\x06\x80\x80\x80\x80\x80\x20")])
def test_each_kind_of_list_has_its_field_and_is_packed(kind, lists, value, wire):
    f = pb.Feature(**{kind: getattr(pb, lists)(value=value)})
    assert f.SerializeToString() == wire
    assert pb.Feature.FromString(wire) == f and f.WhichOneof("kind") == kind


def test_a_feature_is_one_of_the_kinds():
    f = int32s(1)
    f.float_list.value.append(2.0)
    assert f.WhichOneof("kind") == "float_list" and not f.HasField("int32_list")


def test_the_module_path_is_oneflows():
    assert flow.core.record.record_pb2 is pb
    from flowedu.core.record.record_pb2 import OFRecord
    assert OFRecord is pb.OFRecord and OFRecord.DESCRIPTOR.full_name == "oneflow.OFRecord"
    with pytest.raises(AttributeError, match="OFRecord"):
        pb.Record  # noqa: B018


def test_without_protobuf_the_error_names_the_package():
    code = ("import sys; sys.modules['google.protobuf'] = None\n"
            "import flowedu as flow, flowedu.core.record.record_pb2 as pb\n"
            "try: pb.OFRecord\nexcept flow.errors.DataError as e: print(e)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8",
                         check=True).stdout
    assert install("record") in out


# ---- features
# ------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("value, kind, back", [
    (b"\x00\xff", "bytes_list", [b"\x00\xff"]), ("é", "bytes_list", ["é".encode()]),
    ([b"a", b""], "bytes_list", [b"a", b""]),
    (7, "int64_list", [7]), (True, "int32_list", [1]), (0.5, "float_list", [0.5]),
    ([1, 2], "int64_list", [1, 2]),
    (np.float64(0.1), "double_list", [0.1]), (np.float16(0.5), "float_list", [0.5]),
    (np.int32(3), "int32_list", [3]),
    (np.uint32(1 << 31), "int64_list", [1 << 31]), (np.array([[1, 2], [3, 4]], np.uint8), "int32_list",
                                                    [1, 2, 3, 4]),
    (np.zeros((0,), np.float32), "float_list", [])])
def test_the_feature_kind_follows_the_type_of_the_value(value, kind, back):
    f = feature(value)
    assert f.WhichOneof("kind") == kind and list(getattr(f, kind).value) == back


@pytest.mark.parametrize("value", [1 + 2j, None, {"a": 1}, np.array([1 << 63], np.uint64), [b"a", 1]])
def test_unsupported_feature_values_are_refused(value):
    with refused(DTypeError, "ofrecord", "tobytes"):
        feature(value)


# ---- files
# ---------------------------------------------------------------------------------------------------------

values = st.one_of(
    st.lists(st.binary(max_size=300), max_size=4).map(lambda v: pb.Feature(bytes_list=pb.BytesList(value=v))),
    st.lists(st.floats(width=32), max_size=40).map(lambda v: pb.Feature(float_list=pb.FloatList(value=v))),
    st.lists(st.floats(), max_size=40).map(lambda v: pb.Feature(double_list=pb.DoubleList(value=v))),
    st.lists(st.integers(-2**31, 2**31 - 1),
             max_size=40).map(lambda v: pb.Feature(int32_list=pb.Int32List(value=v))),
    st.lists(st.integers(-2**63, 2**63 - 1),
             max_size=40).map(lambda v: pb.Feature(int64_list=pb.Int64List(value=v))))
records = st.dictionaries(st.text(max_size=20), values, min_size=1,
                          max_size=5).map(lambda d: pb.OFRecord(feature=d))


@in_tmp_path
@given(st.lists(records, max_size=12), st.integers(1, 3))
def test_records_round_trip_through_files(tmp_path, messages, parts):
    with flow.data.ofrecord_writer(tmp_path, parts) as w:
        for m in messages:
            w.write(m)
    found = [list(flow.data.ofrecord_records(p)) for p in part_paths(tmp_path, parts)]
    # Compare serialized messages, because NaNs are not equal to themselves.
    assert [[m.SerializeToString(deterministic=True) for m in part] for part in found] == \
        [[m.SerializeToString(deterministic=True) for m in messages[i::parts]] for i in range(parts)]


def test_a_file_is_lengths_and_messages(tmp_path):
    one, two = (pb.OFRecord(feature={"i": int32s(i)}).SerializeToString() for i in (1, 2))
    by_hand = struct.pack("<q", len(one)) + one + struct.pack("<q", len(two)) + two
    with flow.data.ofrecord_writer(tmp_path) as w:
        w.write(one)
        w.write({"i": np.int32(2)})
    assert (tmp_path / "part-0").read_bytes() == by_hand
    assert [(r.data, r.offset) for r in read_part(tmp_path / "part-0")] == [(one, 0), (two, 8 + len(one))]


@pytest.mark.parametrize("prefix, digits, names", [
    ("part-", -1, ["part-0", "part-10"]), ("part-", 5, ["part-00000", "part-00010"]),
    ("x", 1, ["x0", "x10"])])
def test_names_of_parts(tmp_path, prefix, digits, names):
    write_numbered_records(tmp_path, 22, 11, part_name_prefix=prefix, part_name_suffix_length=digits)
    assert ({names[0], names[1]} <= {p.name for p in tmp_path.iterdir()}
            and len(list(tmp_path.iterdir())) == 11)
    batch = flow.data.ofrecord_reader(tmp_path, 22, 11, prefix, digits)
    found = flow.data.OFRecordRawDecoder(batch, "i", (), flow.int32)
    assert found.tolist() == [i for part in range(11) for i in (part, part + 11)]


def test_a_failed_writer_leaves_no_files(tmp_path):
    write_numbered_records(tmp_path, 3)
    before = (tmp_path / "part-0").read_bytes()
    with pytest.raises(ZeroDivisionError), flow.data.ofrecord_writer(tmp_path) as w:
        w.write({"i": 1})
        raise ZeroDivisionError
    assert [p.name for p in tmp_path.iterdir()] == ["part-0"] and (tmp_path / "part-0").read_bytes() == before


def test_parts_appear_when_the_writer_is_closed(tmp_path):
    w = flow.data.ofrecord_writer(tmp_path)
    w.write({"i": 1})
    assert not (tmp_path / "part-0").exists()
    w.close()
    w.close()
    assert [p.name for p in tmp_path.iterdir()] == ["part-0"]
    with refused(DataError, "closed"):
        w.write({"i": 1})


FULL = """
import os, resource, signal, sys
import flowedu as flow

def attempt(how):
    w = flow.data.ofrecord_writer(sys.argv[1], 3)
    small = [{"a": b"x" * 6000}] * 12                  # fits into the buffers
    try:
        if how == "with":
            with w:
                [w.write(r) for r in small]
        elif how == "write":
            while True:
                w.write({"a": b"x" * 60000})
        else:
            [w.write(r) for r in small]
            if how == "close":
                w.close()
    except flow.errors.DataError as e:
        assert "File too large" in str(e) and "ofrecord: cannot write in" in str(e), e
        w.close()
    else:
        assert how == "dropped"

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
before = sorted(os.listdir(sys.argv[1]))
for how in ("close", "with", "write", "dropped"):
    attempt(how)
    assert sorted(os.listdir(sys.argv[1])) == before, how
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="limits of POSIX")
@pytest.mark.parametrize("old", [False, True])
def test_a_full_disk_leaves_no_files(tmp_path, old):
    """A limit on the file size stands in for a full disk; buffered writes exceed it when they are flushed."""
    if old:
        write_numbered_records(tmp_path, 3)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    done = subprocess.run([sys.executable, "-W", "error", "-c", FULL, str(tmp_path)], capture_output=True,
                          encoding="utf-8")
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_invalid_arguments_of_the_writer_are_refused(tmp_path):
    with refused(ArgumentError, "data_part_num"):
        flow.data.ofrecord_writer(tmp_path, 0)
    with flow.data.ofrecord_writer(tmp_path) as w:
        with refused(DataError, "empty"):
            w.write({})
        with refused(ArgumentError, "part"):
            w.write({"i": 1}, part=1)
    (tmp_path / "file").touch()
    with refused(DataError, "cannot write"):
        flow.data.ofrecord_writer(tmp_path / "file")


@in_tmp_path
@given(st.integers(1, 10_000))
def test_a_file_that_is_cut_off_anywhere(tmp_path, cut):
    path = Path(write_numbered_records(tmp_path, 5)) / "part-0"
    whole = path.read_bytes()
    cut %= len(whole)
    path.write_bytes(whole[:cut])
    starts = [r.offset for r in list(_good(path))]
    if cut in [0, *(o for o in range(0, len(whole), len(whole) // 5))]:
        assert len(starts) == cut // (len(whole) // 5)
    else:
        with refused(DataError, "part-0", f"byte {len(starts) * (len(whole) // 5)}", "cut off"):
            list(read_part(path))


def _good(path):
    """Yield the records before the damaged one."""
    try:
        yield from read_part(path)
    except DataError:
        return


@pytest.mark.parametrize("content, words", [
    (struct.pack("<q", -1) + b"abc", ("does not start a record", "length -1")),
    (struct.pack("<q", 0), ("length 0",)), (b"a text file, not records", ("byte 0",
                                                                          "is it an OFRecord file?")),
    (struct.pack("<q", 1 << 30) + b"abc", ("cut off", "1073741824 bytes"))])
def test_files_that_are_not_ofrecords(tmp_path, content, words):
    (tmp_path / "part-0").write_bytes(content)
    with refused(DataError, "part-0", *words):
        list(flow.data.ofrecord_records(tmp_path / "part-0"))


def test_a_record_that_is_not_a_message(tmp_path):
    (tmp_path / "part-0").write_bytes(struct.pack("<q", 3) + b"\x0a\xff\xff")
    with refused(DataError, "byte 0 of", "damaged"):
        list(flow.data.ofrecord_records(tmp_path / "part-0"))


@pytest.mark.parametrize("value", [1e300, -1e300, [1.0, 4e38], (0.5, -3.5e38)])
def test_floats_beyond_float32_are_refused(value):
    """A Python float is stored as float32 and must fit; infinities and NaNs are accepted, and a NumPy float64
    stays float64.
    """
    with pytest.raises(DataError, match="does not fit float32"):
        feature(value)
    assert list(feature(np.asarray(value)).double_list.value) == np.asarray(value).reshape(-1).tolist()
    assert list(feature([float("inf"), float("-inf"), 3.4e38, 0.0]).float_list.value)[:2] == [np.inf, -np.inf]
