"""Module paths of OneFlow that scripts import: flow.core.record.record_pb2."""
from flowedu.core import record
