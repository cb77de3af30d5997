"""Module: a part of a network, made of parameters, buffers and other modules.

Assigning a Parameter or a Module as an attribute registers it; everything else is an ordinary attribute. The order of
parameters(), buffers() and state_dict() is: a module's own, in the order they were assigned, then those of its children.
"""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from flowedu.core.layers import trace
from flowedu.nn.methods import hooks
from flowedu.nn.methods.conversion import Convertible
from flowedu.nn.methods.hooks import Hooks, RemovableHandle
from flowedu.core.layers.members import Members
from flowedu.core.layers.parameter import Parameter
from flowedu.nn.methods.state import Stateful
from flowedu.core.ops.tensor import Tensor
from flowedu.errors import CallError, DTypeError, MissingAttributeError, NameKeyError, UnsupportedError
from flowedu.errors.nearest import UnknownNameError

_set = object.__setattr__


class Module(Members, Convertible, Stateful):
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
    _hooks: Hooks | None = None

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
        if trace.current is not None:                    # nn.Graph is being built: it gives ops the module's name
            return trace.current.call_module(self, args, kwargs)
        if self._hooks is not None:
            return hooks.call(self, args, kwargs)
        try:
            return self.forward(*args, **kwargs)
        except TypeError as e:
            hooks.say_misfit(self, args, kwargs, e)
            raise

    # ---- registration
    def __setattr__(self, name: str, value) -> None:
        own = self.__dict__
        if isinstance(value, Parameter):
            self._need_init("parameters")
            _forget(own, name, "_parameters")
            own["_parameters"][name] = value
        elif isinstance(value, Module):
            self._need_init("module")
            _forget(own, name, "_modules")
            own["_modules"][name] = value
        elif name in own.get("_parameters", ()):
            if value is not None:
                raise DTypeError(f"cannot assign '{_name_of(value)}' as parameter '{name}' (nn.Parameter or None expected)",
                                 expected="an nn.Parameter or None", got=_name_of(value),
                                 fix=f"self.{name} = nn.Parameter(value); to change its values: "
                                     f"with flow.no_grad(): self.{name}.copy_(value)")
            own["_parameters"][name] = None
        elif name in own.get("_modules", ()):
            if value is not None:
                raise DTypeError(f"cannot assign '{_name_of(value)}' as child module '{name}' (nn.Module or None expected)",
                                 expected="an nn.Module or None", got=_name_of(value), fix=f"del self.{name} first")
            own["_modules"][name] = None
        elif name in own.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise DTypeError(f"cannot assign '{_name_of(value)}' as buffer '{name}' (flowedu.Tensor or None expected)",
                                 expected="a tensor or None", got=_name_of(value), fix=f"del self.{name} first")
            own["_buffers"][name] = value
        else:
            _set(self, name, value)

    def __getattr__(self, name: str):
        own = self.__dict__                              # only asked for what is no ordinary attribute
        if "_modules" in own:
            for table in ("_parameters", "_modules", "_buffers"):
                if name in own[table]:
                    return own[table][name]
        raise UnknownNameError(f"'{type(self).__name__}' object", name, lambda: dir(self), "x.")

    def __delattr__(self, name: str) -> None:
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

    def _check_name(self, what: str, kind: str, name, table: dict) -> None:
        self._need_init(what)
        if not isinstance(name, str):
            raise DTypeError(f"{kind} name should be a string. Got {type(name).__name__}", expected="a str",
                             got=repr(name), fix="str(name)")
        if "." in name:
            raise NameKeyError(f'{kind} name can\'t contain ".", got: {name!r}', expected="a name without dots",
                               fix=f"{name.replace('.', '_')!r}", got=name)
        if not name:
            raise NameKeyError(f'{kind} name can\'t be empty string ""', expected="a name",
                               got="an empty string", fix="a name such as 'weight'")
        if name not in table and (hasattr(type(self), name) or name in self.__dict__ or any(
                name in self.__dict__[t] for t in ("_parameters", "_buffers", "_modules"))):
            raise NameKeyError(f"attribute '{name}' already exists", expected="a name that is not in use", got=name,
                               fix="another name, or del the attribute first")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or None as a place for one. Raises NameKeyError (a KeyError), DTypeError (a TypeError)."""
        self._check_name("parameters", "parameter", name, self.__dict__.get("_parameters", {}))
        if param is not None and not isinstance(param, Parameter):
            raise DTypeError(f"cannot assign '{_name_of(param)}' object to parameter '{name}' (nn.Parameter or None "
                             "required)", expected="an nn.Parameter or None", got=_name_of(param),
                             fix="nn.Parameter(tensor)")
        if param is not None and not param.is_leaf:
            raise DTypeError(f"cannot assign a non-leaf Tensor to parameter '{name}': model parameters must be created "
                             "explicitly", expected="a leaf", fix=f"compute '{name}' in forward from another parameter",
                             got=f"a result of {param.grad_fn}")
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but not learnt. persistent: whether state_dict has it."""
        self._check_name("buffers", "buffer", name, self.__dict__.get("_buffers", {}))
        if tensor is not None and not isinstance(tensor, Tensor):
            raise DTypeError(f"cannot assign '{_name_of(tensor)}' object to buffer '{name}' (flowedu.Tensor or None "
                             "required)", expected="a tensor or None", got=_name_of(tensor), fix="flow.tensor(value)")
        self._buffers[name] = tensor
        (self._non_persistent_buffers_set.discard if persistent else self._non_persistent_buffers_set.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a child under a name. Raises NameKeyError (a KeyError), DTypeError (a TypeError)."""
        if module is not None and not isinstance(module, Module):
            raise DTypeError(f"{_name_of(module)} is not a Module subclass", expected="an nn.Module or None",
                             got=repr(module)[:60], fix="pass an instance, such as nn.ReLU()")
        self._check_name("module", "module", name, self.__dict__.get("_modules", {}))
        self._modules[name] = module

    register_module = add_module

    # ---- changing all
    def apply(self, fn: Callable[[Module], None]) -> Module:
        """fn(module) for every module below this one and then for itself. Returns self."""
        for child in self.children():
            child.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Module:
        """Say that this is training (or not): dropout and batch norm behave accordingly. The children are told by their own
        `train`, which may do more. Returns self."""
        if not isinstance(mode, bool):
            raise CallError("train: mode is not a bool", expected="True or False", got=repr(mode),
                            fix="model.train() or model.eval()")
        _set(self, "training", mode)
        for child in self.children():
            child.train(mode)
        return self

    def eval(self) -> Module:
        """train(False)."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Let all parameters be learnt, or none. Returns self."""
        for p in self.parameters():
            p.requires_grad = requires_grad
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients (set_to_none=False: fill them with zeros, as OneFlow 0.9 does by default)."""
        for p in self.parameters():
            if p.grad is None:
                continue
            p.grad = None if set_to_none else p.grad.detach() * 0

    # ---- hooks
    def _hook(self, kind: str, hook: Callable, **options) -> RemovableHandle:
        if not callable(hook):
            raise CallError("a hook is not callable", expected="a function", got=repr(hook)[:60],
                            fix="pass the function itself, without ()")
        if self._hooks is None:
            _set(self, "_hooks", Hooks())
        return self._hooks.add(kind, hook, **options)

    def register_forward_pre_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
                                  ) -> RemovableHandle:
        """hook(module, args) before forward; what it returns takes the place of args. with_kwargs: hook(module, args,
        kwargs), which may return (args, kwargs)."""
        return self._hook("pre", hook, prepend=prepend, with_kwargs=with_kwargs)

    def register_forward_hook(self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """hook(module, args, output) after forward; what it returns takes the place of the output. with_kwargs:
        hook(module, args, kwargs, output). always_call: also when forward raises, with output None."""
        return self._hook("post", hook, prepend=prepend, with_kwargs=with_kwargs, always=always_call)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_output) before backward goes through the module; it may return another grad_output."""
        return self._hook("backward_pre", hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_input, grad_output) when the gradients of the module's inputs are there; it may return other
        ones. Both are tuples."""
        return self._hook("backward", hook, prepend=prepend)

    register_backward_hook = register_full_backward_hook

    # ---- printing
    def extra_repr(self) -> str:
        """What stands between the parentheses when the module is printed."""
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


def _forget(own: dict, name: str, keep: str) -> None:
    """Before `name` goes into the table `keep`: take it out of the others and of the ordinary attributes."""
    for table in ("_parameters", "_buffers", "_modules"):
        if table != keep:
            own[table].pop(name, None)
    own.pop(name, None)
    own["_non_persistent_buffers_set"].discard(name)


def _name_of(value) -> str:
    return f"{type(value).__module__.split('.')[0]}.{type(value).__name__}" if type(value).__module__ != "builtins" \
        else type(value).__name__
