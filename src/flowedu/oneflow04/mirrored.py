"""Definitions of job arguments that have one value per device, called mirrored in OneFlow 0.2 to 0.4.

    MirroredTensorDef      tp.ListNumpy      one array per device, each at most as large as `shape`
    MirroredTensorListDef  tp.ListListNumpy  one list of arrays per device, in total at most as large as
                                             `shape`
"""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from flowedu.core.values.placeholder import ArgBlobDef, cast
from flowedu.errors import CheckError, format_value


class MirroredTensorDef(ArgBlobDef):
    """An argument with one array per device.

    Args:
        shape: the largest shape. An array may be smaller, but has the same rank.
        dtype: the dtype of the arrays.
    """

    is_dynamic = True

    def check(self, value: Any, where: str, devices: int = 1) -> list[np.ndarray]:
        _check_per_device(value, where, devices, f"a list of {devices} {self.dtype.name} array(s) of rank "
                                                 f"{len(self.shape)}, one per device, each at most "
                          f"{self.shape}")
        return [self._one(v, f"{where}, device {i}") for i, v in enumerate(value)]

    def _one(self, value: Any, where: str) -> np.ndarray:
        _check_piece(value, self, where)
        if value.size > prod(self.shape):
            raise CheckError(f"{where}: the array is larger than the placeholder",
                             expected=f"at most {prod(self.shape)} elements, {self.shape}",
                             got=format_value(value),
                             fix="the placeholder's shape is the largest a device may get: raise it, or "
                             "feed less")
        return cast(value, self, where)


class MirroredTensorListDef(ArgBlobDef):
    """An argument with one list of arrays per device.

    Args:
        shape: the rank of the arrays, and the largest number of elements of all arrays of a device together.
        dtype: the dtype of the arrays.
    """

    is_dynamic = True
    is_tensor_list = True

    def check(self, value: Any, where: str, devices: int = 1) -> list[list[np.ndarray]]:
        _check_per_device(value, where, devices, f"a list of {devices} list(s) of {self.dtype.name} arrays, "
                                                 f"one list per device")
        return [self._one_list(v, f"{where}, device {i}") for i, v in enumerate(value)]

    def _one_list(self, value: Any, where: str) -> list[np.ndarray]:
        if type(value) is not list:
            raise CheckError(f"{where}: not a list", expected=f"a list of {self.dtype.name} arrays",
                             got=format_value(value),
                             fix="one list per device: job([[a, b, c]]) for one device")
        for i, v in enumerate(value):
            _check_piece(v, self, f"{where}, array {i}")
        if sum(v.size for v in value) > prod(self.shape):
            raise CheckError(f"{where}: the arrays are together larger than the placeholder",
                             expected=f"at most {prod(self.shape)} elements, {self.shape}",
                             got=f"{sum(v.size for v in value)} elements in {len(value)} arrays",
                             fix="the placeholder's shape is the largest a device may get: raise it, or "
                             "feed less")
        return [cast(v, self, f"{where}, array {i}") for i, v in enumerate(value)]


def _check_per_device(value: Any, where: str, devices: int, wanted: str) -> None:
    if not isinstance(value, (list, tuple)) or len(value) != devices:
        raise CheckError(f"{where}: one entry per device is needed", expected=wanted, got=format_value(value),
                         fix="put the array into a list: job([x])" if devices == 1 else
                             f"split the batch: job(np.array_split(x, {devices}))")


def _check_piece(value: Any, defn: ArgBlobDef, where: str) -> None:
    wanted = f"a {defn.dtype.name} array of rank {len(defn.shape)}"
    if type(value) is not np.ndarray:
        raise CheckError(f"{where}: not a NumPy array", expected=wanted, got=format_value(value),
                         fix=advise_conversion(value))
    if value.ndim != len(defn.shape):
        raise CheckError(f"{where}: the rank does not fit", expected=f"{wanted}, at most {defn.shape}",
                         got=format_value(value),
                         fix="reshape it; sizes may vary from call to call, the rank may not")


def advise_conversion(value: Any) -> str:
    """Return advice for converting a value to a plain array."""
    if isinstance(value, np.ndarray):
        return "np.asarray(x) makes a plain array of it"
    if hasattr(value, "numpy"):
        return "pass x.numpy()"
    return "np.array(x) makes an array of it"
