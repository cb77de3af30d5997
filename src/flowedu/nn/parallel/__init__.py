"""flow.nn.parallel: training one model on several ranks."""
from flowedu.calls.later import imported
from flowedu.nn.parallel.distributed import DistributedDataParallel

imported(__name__)
