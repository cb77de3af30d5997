"""The message classes of OFRecord files."""
from flowedu.core.record import record_pb2
