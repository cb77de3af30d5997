"""PyTorch's module methods other than the call. Importing this package adds them to core's Module."""
from flowedu.core.layers.module import Module
from flowedu.core.eager.tensor import attach
from flowedu.nn.methods.conversion import Convertible
from flowedu.nn.methods.hooks import Hooked
from flowedu.nn.methods.overrides import Overridable, prepare_subclass
from flowedu.nn.methods.registration import Registering
from flowedu.nn.methods.state import Stateful

for _part in (Registering, Hooked, Convertible, Stateful, Overridable):
    attach(Module, {name: value for name, value in vars(_part).items() if name not in vars(object)
                    and name not in (
                        "__module__", "__dict__", "__weakref__", "__annotations__")})
Module.__init_subclass__ = classmethod(prepare_subclass)  # type: ignore[assignment]
