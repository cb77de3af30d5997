"""flow.nn: modules and `functional` of chapter 5. oneflow04/nn/public.py adds the functions of chapter 3."""
from flowedu.nn import methods
from flowedu.nn import functional, init, modules, utils
from flowedu.nn.containers import ModuleDict, ModuleList, Sequential
from flowedu.core.layers.module import Module
from flowedu.nn.modules import *
from flowedu.core.layers.parameter import Parameter
from flowedu.nn.parameter_lists import ParameterDict, ParameterList
from flowedu.diagnostics.lazy_imports import lazy_import

__getattr__, __dir__ = lazy_import(__name__, {"Graph": "flowedu.nn.graph", "graph": "flowedu.nn.graph",
                                              "parallel": "flowedu.nn.parallel"})
