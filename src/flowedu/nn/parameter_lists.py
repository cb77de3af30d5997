"""Modules that contain parameters: ParameterList and ParameterDict."""
from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Mapping

from flowedu.core.layers.module import Module
from flowedu.core.layers.parameter import Parameter
from flowedu.errors import AxisError, CallError, DTypeError
from flowedu.nn.containers import NamedMembers
from flowedu.tensor import Tensor


def _as_parameter(value) -> Parameter | None:
    if value is None or isinstance(value, Parameter):
        return value
    if isinstance(value, Tensor):
        return Parameter(value)
    raise DTypeError("a ParameterList or ParameterDict holds parameters", expected="nn.Parameter or a tensor",
                     got=type(value).__name__, fix="nn.Parameter(flow.tensor(value))")


class _Parameters(Module):
    """Base class that prints the named parameters."""

    _uncalled = ("_get_abs_string_index", "_key_to_attr")

    def extra_repr(self) -> str:
        return "\n".join(f"({name}): " + ("None" if p is None else "Parameter containing: [{} of size {}]"
                                          .format(repr(p.dtype), "x".join(map(str, p.shape))))
                         for name, p in self._parameters.items())

    def __repr__(self) -> str:
        lines = [f"  {line}" for line in self.extra_repr().splitlines()]
        lines += [f"  ({name}): " + repr(m).replace("\n", "\n  ") for name, m in self._modules.items()]
        return f"{self._get_name()}(" + ("\n" + "\n".join(lines) + "\n" if lines else "") + ")"


class ParameterList(_Parameters):
    """List of parameters that are registered; tensors put into it become parameters.

    It may also contain ParameterLists and ParameterDicts.

    Args:
        values: initial parameters or tensors; default: none.
    """

    def __init__(self, values: Iterable | None = None):
        super().__init__()
        if values is not None:
            self.extend(values)

    def __getitem__(self, index):
        listed = list(self)
        if isinstance(index, slice):
            return ParameterList(listed[index])
        n, i = len(listed), operator.index(index)
        if not -n <= i < n:
            raise AxisError(f"ParameterList: index {i} is out of range",
                            expected=f"an index in [{-n}, {n - 1}]", got=str(i), fix="-1 is the last one")
        return listed[i]

    def __setitem__(self, index: int, value) -> None:
        self[index]
        self._put(str(operator.index(index) % len(self)), value)

    def _put(self, name: str, value) -> None:
        value = value if isinstance(value, _Parameters) else _as_parameter(value)
        if isinstance(value, Module):
            self._parameters.pop(name, None)
            self.add_module(name, value)
        else:
            self._modules.pop(name, None)
            self.register_parameter(name, value)

    def __len__(self) -> int:
        return len(self._parameters) + len(self._modules)

    def __iter__(self) -> Iterator[Parameter | _Parameters]:
        both = {**self._parameters, **self._modules}
        return iter([both[str(i)] for i in range(len(both))])

    def append(self, value) -> ParameterList:
        """Append a parameter or tensor and return self."""
        self._put(str(len(self)), value)
        return self

    def extend(self, values: Iterable) -> ParameterList:
        """Append parameters or tensors and return self."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise CallError(f"ParameterList.extend should be called with an iterable, but got "
                            f"{type(values).__name__}",
                            expected="a list of parameters", got=repr(values)[:60], fix="append(p) adds one")
        for v in list(values):
            self.append(v)
        return self

    __iadd__ = extend


class ParameterDict(_Parameters, NamedMembers[Parameter]):
    """Dict of parameters that are registered; tensors put into it become parameters.

    Args:
        parameters: dict {name: parameter or tensor} or pairs; default: empty.
    """

    def __init__(self, parameters: Mapping | Iterable | None = None):
        super().__init__()
        if parameters is not None:
            self.update(parameters)

    @property
    def _members(self) -> dict[str, Parameter]:
        return self._parameters

    def __setitem__(self, key: str, value) -> None:
        self.register_parameter(key, _as_parameter(value))

    def get(self, key: str, default=None):
        """Return the parameter of a name, or `default`."""
        return self._parameters.get(key, default)

    def update(self, parameters: Mapping | Iterable) -> None:
        """Add the parameters of a dict, or of (name, parameter) pairs."""
        for key, p in parameters.items() if hasattr(parameters, "items") else parameters:
            self[key] = p
