"""Data sets and loaders: `flow.data.load_mnist` and OFRecord files.

`python -m flowedu.data` lists the data sets stored on this machine and downloads the others.
"""
from flowedu.oneflow04.data.mnist import load_mnist
from flowedu.oneflow04.data.ofrecord import ofrecord_records, ofrecord_writer
from flowedu.oneflow04.data.prefetch import Prefetcher
from flowedu.oneflow04.data.reader import RecordBatch, ofrecord_loader, ofrecord_reader
from flowedu.oneflow04.data.decoders import (
    ImageDecoderRandomCropResize, OFRecordBytesDecoder, OFRecordImageDecoder, OFRecordImageDecoderRandomCrop,
    OFRecordRawDecoder, image_decoder_random_crop_resize, ofrecord_bytes_decoder,
    ofrecord_image_classification_reader, ofrecord_image_decoder, ofrecord_image_decoder_random_crop,
    ofrecord_raw_decoder
)
from flowedu.oneflow04.data.legacy import (
    BlobConf, BytesListCodec, COCOReader, ImageCodec, ImagePreprocessor, ImageResizePreprocessor,
    MegatronGPTMMapDataLoader, NormByChannelPreprocessor, OneRecDecoder, RawCodec, coco_reader,
    decode_ofrecord, decode_random, megatron_gpt_mmap_data_loader, onerec_decoder, onerec_reader
)
