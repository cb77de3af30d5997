"""flow.utils.data: data sets, samplers, and DataLoader, which can create batches in worker processes."""
from flowedu.utils.data.buckets import BucketSampler
from flowedu.utils.data.collate import default_collate, default_convert
from flowedu.utils.data.dataset import (
    ChainDataset, ConcatDataset, Dataset, IterableDataset, Subset, TensorDataset, random_split)
from flowedu.diagnostics.lazy_imports import imported
from flowedu.utils.data import distributed
from flowedu.utils.data.distributed import DistributedSampler
from flowedu.utils.data.loader import DataLoader
from flowedu.utils.data.sampler import (
    BatchSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler)
from flowedu.utils.data.worker import WorkerInfo, get_worker_info

__all__ = ["BatchSampler", "BucketSampler", "ChainDataset", "ConcatDataset", "DataLoader", "Dataset",
           "DistributedSampler", "IterableDataset", "RandomSampler", "Sampler", "SequentialSampler",
           "Subset", "SubsetRandomSampler", "TensorDataset", "WeightedRandomSampler", "WorkerInfo",
           "default_collate", "default_convert", "distributed", "get_worker_info", "random_split"]

imported(__name__)
