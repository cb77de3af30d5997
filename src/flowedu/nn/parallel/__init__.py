"""flow.nn.parallel: training one model on several ranks."""
from flowedu.nn.parallel.distributed import DistributedDataParallel
