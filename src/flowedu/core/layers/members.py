"""Going through a module: its submodules, parameters and buffers, by order or by path. A base class of Module."""
from __future__ import annotations

from collections.abc import Iterator

from flowedu.core.layers.parameter import Parameter
from flowedu.core.ops.tensor import Tensor
from flowedu.errors import MissingAttributeError


class Members:
    """The part of Module that lists what it is made of. A thing that is shared counts once, at its first place."""

    def named_modules(self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
                      ) -> Iterator[tuple[str, Members]]:
        """(path, module) of this module and all below it, each once."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(memo, f"{prefix}{'.' if prefix else ''}{name}", remove_duplicate)

    def modules(self) -> Iterator[Members]:
        """This module and all below it, each once."""
        return (m for _, m in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Members]]:
        """(name, module) of the direct children, each once."""
        seen = set()
        for name, child in self._modules.items():
            if child is not None and child not in seen:
                seen.add(child)
                yield name, child

    def children(self) -> Iterator[Members]:
        """The direct children, each once."""
        return (m for _, m in self.named_children())

    def _named(self, table: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Tensor]]:
        seen = set()
        parts = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in parts:
            for name, t in module.__dict__[table].items():
                if t is None or id(t) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(t))
                yield (f"{path}.{name}" if path else name), t

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
                         ) -> Iterator[tuple[str, Parameter]]:
        """(path, parameter) of this module and, with recurse, of those below it. A shared one counts once."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters: what an optimizer gets."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
                      ) -> Iterator[tuple[str, Tensor]]:
        """(path, buffer), as named_parameters."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Members:
        """The module at a path such as "features.0"; "" is this one. Raises MissingAttributeError (an AttributeError)."""
        module = self
        for name in target.split(".") if target else ():
            child = module._modules.get(name) if isinstance(module, Members) else None
            if child is None:
                raise MissingAttributeError(f"{type(module).__name__} has no submodule '{name}'", expected="one of "
                                            + ", ".join(module._modules), got=target, fix="see dict(model.named_modules())")
            module = child
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path. Raises MissingAttributeError (an AttributeError)."""
        return self._get(target, "_parameters", "parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a path. Raises MissingAttributeError (an AttributeError)."""
        return self._get(target, "_buffers", "buffer")

    def _get(self, target: str, table: str, what: str):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        found = module.__dict__[table].get(name)
        if found is None:
            raise MissingAttributeError(f"{type(module).__name__} has no {what} '{name}'", got=target, expected="one of "
                                        + ", ".join(module.__dict__[table]),
                                        fix="see dict(model.named_parameters()) and named_buffers()")
        return found
