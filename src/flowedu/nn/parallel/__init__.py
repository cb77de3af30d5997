"""flow.nn.parallel: training one model on several ranks."""
from flowedu.diagnostics.lazy_imports import imported
from flowedu.nn.parallel.distributed import DistributedDataParallel

imported(__name__)
