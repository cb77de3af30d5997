"""Module: a part of a network, made of parameters, buffers and other modules.

Assigning a Parameter or a Module as an attribute registers it; everything else is an ordinary attribute. The order of
parameters(), buffers() and state_dict() is: a module's own, in the order they were assigned, then those of its children.
State dicts, conversions, hooks and registration by name are nn/methods.
"""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from flowedu.core.eager.tensor import Tensor
from flowedu.core.extensions import extension
from flowedu.core.layers.parameter import Parameter
from flowedu.core.values import thread_state as ambient
from flowedu.errors import CallError, DTypeError, MissingAttributeError, NameKeyError, UnsupportedError
from flowedu.errors.nearest import UnknownNameError

ambient.register_fields(tracer=None)                     # chapter 5: the nn.Graph being built
_set = object.__setattr__


class Module:
    """Base class of all modules.

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 2)

            def forward(self, x):
                return self.fc(x).relu()

    Attributes: training (see train and eval).
    """

    training: bool
    _hooks = None                                        # functions called around forward, if any (nn/methods/hooks.py)

    def __init__(self):
        _set(self, "training", True)
        for name in ("_parameters", "_buffers", "_modules"):
            _set(self, name, OrderedDict())
        _set(self, "_non_persistent_buffers_set", set())

    # ---- calling
    def forward(self, *args, **kwargs):
        """What the module computes; subclasses define it."""
        raise UnsupportedError(f'Module [{type(self).__name__}] is missing the required "forward" function',
                               expected="def forward(self, x): ... in the class", fix="define it", got=type(self).__name__)

    def __call__(self, *args, **kwargs):
        if ambient.building and ambient.thread_state.tracer is not None:      # nn.Graph is being built
            return ambient.thread_state.tracer.call_module(self, args, kwargs)
        if self._hooks is not None:
            return self._hooks.call(self, args, kwargs)
        try:
            return self.forward(*args, **kwargs)
        except TypeError as e:
            say_misfit(self, args, kwargs, e)
            raise

    # ---- registration
    def __setattr__(self, name: str, value) -> None:
        own = self.__dict__
        if isinstance(value, (Parameter, Module)):
            kind, table = ("parameters", "_parameters") if isinstance(value, Parameter) else ("module", "_modules")
            self._need_init(kind)
            _forget(self, name, table)
            own[table][name] = value
        elif name in own.get("_parameters", ()):
            if value is not None:
                raise DTypeError(f"cannot assign '{name_of(value)}' as parameter '{name}' (nn.Parameter or None expected)",
                                 expected="an nn.Parameter or None", got=name_of(value),
                                 fix=f"self.{name} = nn.Parameter(value); to change its values: "
                                     f"with flow.no_grad(): self.{name}.copy_(value)")
            own["_parameters"][name] = None
        elif name in own.get("_modules", ()):
            if value is not None:
                raise DTypeError(f"cannot assign '{name_of(value)}' as child module '{name}' (nn.Module or None expected)",
                                 expected="an nn.Module or None", got=name_of(value), fix=f"del self.{name} first")
            own["_modules"][name] = None
        elif name in own.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise DTypeError(f"cannot assign '{name_of(value)}' as buffer '{name}' (flowedu.Tensor or None expected)",
                                 expected="a tensor or None", got=name_of(value), fix=f"del self.{name} first")
            own["_buffers"][name] = value
        else:
            _set(self, name, value)
        ambient.changes += 1

    def __getattr__(self, name: str):
        own = self.__dict__                              # only called for names that are no ordinary attributes
        if "_modules" in own:
            for table in ("_parameters", "_modules", "_buffers"):
                if name in own[table]:
                    return own[table][name]
        raise UnknownNameError(f"'{type(self).__name__}' object", name, lambda: dir(self), "x.")

    def __delattr__(self, name: str) -> None:
        ambient.changes += 1
        for table in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        own = self.__dict__
        return sorted({*dir(type(self)), *own, *own.get("_parameters", ()), *own.get("_buffers", ()),
                       *own.get("_modules", ())})

    def _need_init(self, what: str) -> None:
        if "_modules" not in self.__dict__:
            raise MissingAttributeError(f"cannot assign {what} before Module.__init__() call",
                                        expected="super().__init__() "
                                        f"as the first line of {type(self).__name__}.__init__", fix="add that line",
                                        got=type(self).__name__)

    # ---- its parts; a shared one counts once, at its first place
    def named_modules(self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True
                      ) -> Iterator[tuple[str, Module]]:
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

    def modules(self) -> Iterator[Module]:
        """This module and all below it, each once."""
        return (m for _, m in self.named_modules())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """(name, module) of the direct children, each once."""
        seen = set()
        for name, child in self._modules.items():
            if child is not None and child not in seen:
                seen.add(child)
                yield name, child

    def children(self) -> Iterator[Module]:
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

    # ---- changing all
    def train(self, mode: bool = True) -> Module:
        """Say that this is training (or not): dropout and batch norm behave accordingly. The children's own `train` is
        called, which may do more. Returns self."""
        if not isinstance(mode, bool):
            raise CallError("train: mode is not a bool", expected="True or False", got=repr(mode),
                            fix="model.train() or model.eval()")
        self.training = mode
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Module:
        """train(False)."""
        return self.train(False)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients (set_to_none=False: fill them with zeros, as OneFlow 0.9 does by default)."""
        for p in self.parameters():
            if p.grad is None:
                continue
            p.grad = None if set_to_none else p.grad.detach() * 0

    # ---- printing
    def extra_repr(self) -> str:
        """The text between the parentheses when the module is printed."""
        return ""

    def _get_name(self) -> str:
        return self.__class__.__name__

    def _shallow_repr(self) -> str:
        """The module without its children: `Linear(in_features=4, out_features=3, bias=True)`, `Sequential()`."""
        return f"{self._get_name()}({self.extra_repr()})"

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + repr(child).replace("\n", "\n  ") for name, child in self._modules.items()]
        if lines and not children and len(lines) == 1:
            return f"{self._get_name()}({lines[0]})"
        body = [*lines, *children]
        return f"{self._get_name()}(" + ("\n  " + "\n  ".join(body) + "\n" if body else "") + ")"


def say_misfit(module, args: tuple, kwargs: dict, error: TypeError) -> None:
    """Raise an error that says why a call does not fit module.forward, where `error`, met in the caller, was that."""
    if error.__traceback__.tb_next is None:              # no line of forward ran
        explain = extension("why a call does not fit", lambda *call: None)
        better = explain(f"{type(module).__name__}.forward", module.forward, args, kwargs)
        if better is not None:
            raise better


def _forget(module: Module, name: str, keep: str) -> None:
    """Before `name` goes into the table `keep`, remove it from the others and from the ordinary attributes."""
    own = module.__dict__
    if isinstance(getattr(type(module), name, None), property):
        raise NameKeyError(f"attribute '{name}' already exists", expected="a name that is no property of the class",
                           got=name, fix="another name, or remove_parametrizations(module, name) first")
    for table in ("_parameters", "_buffers", "_modules"):
        if table != keep:
            own[table].pop(name, None)
    own.pop(name, None)
    own["_non_persistent_buffers_set"].discard(name)


def name_of(value) -> str:
    return f"{type(value).__module__.split('.')[0]}.{type(value).__name__}" if type(value).__module__ != "builtins" \
        else type(value).__name__
