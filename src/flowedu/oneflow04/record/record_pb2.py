"""The messages in OFRecord files (oneflow.core.record.record_pb2): OFRecord, Feature, five kinds of lists.

    import flowedu.oneflow04.record.record_pb2 as ofrecord

    label = ofrecord.Feature(int32_list=ofrecord.Int32List(value=[7]))
    data = ofrecord.OFRecord(feature={"class/label": label}).SerializeToString()
    ofrecord.OFRecord.FromString(data).feature["class/label"].int32_list.value[0]     # 7

The classes are those of the `protobuf` package. They are created on first use, from the description in this
file instead of a generated file. The wire format is OneFlow's record.proto:

    message BytesList { repeated bytes value = 1; }                   // the other lists: [packed = true]
    message Feature { oneof kind { BytesList bytes_list = 1; FloatList float_list = 2;
                                   DoubleList double_list = 3; Int32List int32_list = 4;
                                   Int64List int64_list = 5; } }
    message OFRecord { map<string, Feature> feature = 1; }
"""
from __future__ import annotations

import functools

from flowedu.errors import DataError
from flowedu.errors.extras import install

# (field of Feature, message, protobuf's name of the element type), numbered from 1.
KINDS = (("bytes_list", "BytesList", "BYTES"), ("float_list", "FloatList", "FLOAT"),
         ("double_list", "DoubleList", "DOUBLE"), ("int32_list", "Int32List", "INT32"),
         ("int64_list", "Int64List", "INT64"))
__all__ = ["BytesList", "FloatList", "DoubleList", "Int32List", "Int64List", "Feature",  # noqa: F822
           "OFRecord"]


@functools.cache
def _messages() -> dict[str, object]:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError as e:
        raise DataError("OFRecord: the protobuf package is not installed", expected="protobuf 4.22 or newer",
                        got=str(e), fix=install("record")) from e
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="oneflow/core/record/record.proto", package="oneflow",
                                              syntax="proto2")

    for _, name, kind in KINDS:
        value = file.message_type.add(name=name).field.add(
            name="value", number=1, label=field.LABEL_REPEATED, type=getattr(field, f"TYPE_{kind}"))
        if kind != "BYTES":
            value.options.packed = True

    def add(message, name, number, label, type_name):
        return message.field.add(name=name, number=number, label=label, type=field.TYPE_MESSAGE,
                                 type_name=f".oneflow.{type_name}")

    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (name, message, _) in enumerate(KINDS, 1):
        add(feature, name, number, field.LABEL_OPTIONAL, message).oneof_index = 0
    record = file.message_type.add(name="OFRecord")
    add(record, "feature", 1, field.LABEL_REPEATED, "OFRecord.FeatureEntry")
    entry = record.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, label=field.LABEL_OPTIONAL, type=field.TYPE_STRING)
    add(entry, "value", 2, field.LABEL_OPTIONAL, "Feature")

    # A pool of its own: OneFlow itself may be loaded in the same process and know the same names.
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    found = {n: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"oneflow.{n}")) for n in __all__}
    for cls in found.values():
        cls.__module__ = __name__                       # where pickle finds it
    return {**found, "DESCRIPTOR": pool.FindFileByName(file.name)}


def __getattr__(name: str):
    if name in __all__ or name == "DESCRIPTOR":
        return _messages()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
