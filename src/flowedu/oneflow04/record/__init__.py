"""The message classes of OFRecord files."""
from flowedu.oneflow04.record import record_pb2
