"""utils.data: names that PyTorch has in addition to flowedu's."""
from __future__ import annotations

from flowedu.errors import ArgumentError
from flowedu.utils.data import Dataset


class StackDataset(Dataset):
    """Item i is the tuple, or with names the dict, of the items i of several data sets of one length."""

    def __init__(self, *args, **kwargs):
        if bool(args) == bool(kwargs):
            raise ArgumentError("StackDataset: data sets in order, or by name", expected="StackDataset(a, b) or "
                                "StackDataset(x=a, y=b)", got="both" if args else "none", fix="StackDataset(a, b)")
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
