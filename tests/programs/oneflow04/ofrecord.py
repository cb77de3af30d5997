"""Write a dataset with the protobuf classes and read it in a job."""
# ruff: noqa: UP006, UP035  (as scripts of the time are written)
import os
import struct
from typing import Tuple

import oneflow as flow
import oneflow.core.record.record_pb2 as ofrecord
import oneflow.typing as tp

obserations = 8


def int32_feature(value):
    return ofrecord.Feature(int32_list=ofrecord.Int32List(value=value))


def float_feature(value):
    return ofrecord.Feature(float_list=ofrecord.FloatList(value=value))


os.mkdir("dataset")
with open("dataset/part-0", "wb") as f:
    for i in range(obserations):
        record = ofrecord.OFRecord(feature={
            "images": float_feature([float(i)] * 6),
            "labels": int32_feature([i]),
        })
        size = record.ByteSize()
        f.write(struct.pack("q", size))
        f.write(record.SerializeToString())


@flow.global_function(type="predict")
def job() -> Tuple[tp.Numpy, tp.Numpy]:
    batch_size = 4
    with flow.scope.placement("cpu", "0:0"):
        records = flow.data.ofrecord_reader("dataset", batch_size=batch_size, data_part_num=1)
        images = flow.data.OFRecordRawDecoder(records, "images", shape=(2, 3), dtype=flow.float)
        labels = flow.data.OFRecordRawDecoder(records, "labels", shape=(1,), dtype=flow.int32)
        images = flow.math.multiply(images, 2.0)
    return images, labels


if __name__ == "__main__":
    batches = [job() for _ in range(3)]
    print(batches[0][0].shape, batches[0][1].shape)
