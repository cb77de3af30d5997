"""utils.data: names of PyTorch that flow.utils.data does not have."""
from __future__ import annotations

from flowedu.errors import ArgumentError
from flowedu.utils.data import Dataset


class StackDataset(Dataset):
    """Data set of tuples (or dicts, with keyword arguments) of the items of several data sets."""

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ArgumentError("StackDataset: data sets in order, or by name",
                                expected="StackDataset(a, b) or StackDataset(x=a, y=b)", got="both" if args
                                else "none", fix="StackDataset(a, b)")
        self.datasets = args or kwargs
        lengths = {len(d) for d in (args or kwargs.values())}
        if len(lengths) > 1:
            raise ArgumentError("StackDataset: data sets of several lengths", expected="one length",
                                got=str(sorted(lengths)), fix="utils.data.Subset of the longer ones")
        self._length = lengths.pop()

    def __getitem__(self, index):
        if isinstance(self.datasets, dict):
            return {name: d[index] for name, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __len__(self) -> int:
        return self._length
