"""Records which methods of a layer or an optimizer PyTorch, or flowedu as torch, calls on a subclass."""
import copy
import sys

# {layer: (arguments, shape of each input)}. A shape of words is made in `make_layer_inputs`.
LAYERS = {
    "Conv1d": ("2, 3, 3, padding=1, padding_mode='circular'", [(2, 2, 5)]),
    "Conv2d": ("2, 3, 3", [(1, 2, 5, 5)]),
    "Conv3d": ("2, 3, 3", [(1, 2, 4, 4, 4)]),
    "ConvTranspose1d": ("2, 3, 3, stride=2", [(1, 2, 5)]),
    "ConvTranspose2d": ("2, 3, 3, stride=2", [(1, 2, 5, 5)]),
    "ConvTranspose3d": ("2, 3, 3, stride=2", [(1, 2, 3, 3, 3)]),
    "Linear": ("3, 4", [(2, 3)]),
    "Bilinear": ("3, 4, 5", [(2, 3), (2, 4)]),
    "BatchNorm1d": ("3", [(4, 3)]),
    "BatchNorm2d": ("3", [(4, 3, 2, 2)]),
    "BatchNorm3d": ("3", [(4, 3, 2, 2, 2)]),
    "SyncBatchNorm": ("3", None),
    "InstanceNorm1d": ("3, affine=True, track_running_stats=True", [(3, 5)]),
    "InstanceNorm2d": ("3, affine=True", [(2, 3, 4, 4)]),
    "InstanceNorm3d": ("3", [(2, 3, 2, 2, 2)]),
    "GroupNorm": ("2, 4", [(2, 4, 3)]),
    "LayerNorm": ("4", [(2, 4)]),
    "RMSNorm": ("4", [(2, 4)]),
    "LocalResponseNorm": ("2", [(2, 4, 3, 3)]),
    "LSTM": ("3, 4, 2", [(5, 2, 3)]),
    "GRU": ("3, 4", [(5, 2, 3)]),
    "RNN": ("3, 4", [(5, 3)]),
    "LSTMCell": ("3, 4", [(2, 3)]),
    "GRUCell": ("3, 4", [(2, 3)]),
    "RNNCell": ("3, 4", [(2, 3)]),
    "Embedding": ("5, 4, padding_idx=1", ["indices"]),
    "EmbeddingBag": ("5, 4", ["indices"]),
    "MultiheadAttention": ("4, 2", [(3, 2, 4)] * 3),
    "TransformerEncoderLayer": ("4, 2, 8", [(3, 2, 4)]),
    "TransformerDecoderLayer": ("4, 2, 8", [(3, 2, 4)] * 2),
    "TransformerEncoder": ("nn.TransformerEncoderLayer(4, 2, 8), 2", [(3, 2, 4)]),
    "TransformerDecoder": ("nn.TransformerDecoderLayer(4, 2, 8), 2", [(3, 2, 4)] * 2),
    "Transformer": ("4, 2, 1, 1, 8", [(3, 2, 4)] * 2),
    "Sequential": ("nn.Linear(3, 4), nn.ReLU()", [(2, 3)]),
    "ModuleList": ("[nn.Linear(3, 4)]", None),
    "ModuleDict": ("{'a': nn.Linear(3, 4)}", None),
    "ParameterList": ("[nn.Parameter(torch.ones(2))]", None),
    "ParameterDict": ("{'a': nn.Parameter(torch.ones(2))}", None),
    "MaxPool2d": ("2", [(1, 2, 4, 4)]),
    "AvgPool2d": ("2", [(1, 2, 4, 4)]),
    "AdaptiveAvgPool2d": ("2", [(1, 2, 4, 4)]),
    "Dropout": ("0.5", [(2, 3)]),
    "ReLU": ("", [(2, 3)]),
    "PReLU": ("", [(2, 3)]),
    "Softmax": ("-1", [(2, 3)]),
    "GELU": ("", [(2, 3)]),
    "LazyLinear": ("4", [(2, 3)]),
    "LazyConv2d": ("4, 3", [(1, 2, 5, 5)]),
    "LazyBatchNorm2d": ("", [(2, 2, 5, 5)]),
    "ConstantPad2d": ("1, 2.0", [(1, 2, 3, 3)]),
    "ReflectionPad2d": ("1", [(1, 2, 3, 3)]),
    "CircularPad2d": ("1", [(1, 2, 3, 3)]),
    "Upsample": ("scale_factor=2", [(1, 2, 3, 3)]),
    "PixelShuffle": ("2", [(1, 4, 3, 3)]),
    "Unfold": ("2", [(1, 2, 3, 3)]),
    "Flatten": ("", [(2, 3, 4)]),
    "CrossEntropyLoss": ("", ["scores", "classes"]),
    "MSELoss": ("", [(2, 3)] * 2),
    "CosineSimilarity": ("", [(2, 3)] * 2),
    "Module": ("", None)}
OPTIMIZERS = ("SGD", "Adam", "AdamW", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop",
              "ASGD", "LBFGS", "Optimizer")
# Not replaced: special methods that Python calls, and methods whose override changes what a module is.
UNTOUCHED = {"__call__", "__class_getitem__", "__init__", "__init_subclass__", "__new__", "__setattr__",
             "get_extra_state", "set_extra_state"}
NO_METHODS = (type, staticmethod, classmethod)
SPECIAL = {"__setstate__", "__iter__", "__repr__"}


def find_methods(cls) -> dict:
    """Return {name: function} of the methods of a class that a program may override."""
    methods = {}
    for base in cls.__mro__[:-1]:
        for name, value in vars(base).items():
            plain = not (name.startswith("__") and name not in SPECIAL or name in UNTOUCHED)
            if plain and callable(value) and not isinstance(value, NO_METHODS):
                methods.setdefault(name, value)
    return methods


def record_calls(cls, names, calls: set):
    """Return a subclass of `cls` whose methods `names` record calls by the package in `calls`."""
    package = {"torch", "flowedu"}

    def wrap(name, method):
        def call(*args, **kwargs):
            caller = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0]
            if caller in package:
                calls.add(name)
            return method(*args, **kwargs)
        return call

    methods = {name: wrap(name, method) for name, method in find_methods(cls).items() if name in names}
    return type(f"Traced{cls.__name__}", (cls,), methods)


def make_layer_inputs(torch, shapes) -> list:
    words = {"indices": lambda: torch.tensor([[1, 2], [3, 4]]), "scores": lambda: torch.randn(2, 4),
             "classes": lambda: torch.tensor([1, 3])}
    return [words[s]() if isinstance(s, str) else torch.randn(*s) for s in shapes]


def use_layer(torch, cls, name: str) -> None:
    """Construct a layer of class `cls` and use it, alone and as the child of another module."""
    nn = torch.nn
    arguments, shapes = LAYERS[name]
    layer = eval(f"cls({arguments})", {"cls": cls, "nn": nn, "torch": torch})
    for mode in (True, False) if shapes is not None else ():
        layer.train(mode)(*make_layer_inputs(torch, shapes))
        if name.startswith("ConvTranspose"):
            layer(*make_layer_inputs(torch, shapes), output_size=[(n - 1) * 2 + 4 for n in shapes[0][2:]])
    for m, path in ((layer, ""), (nn.Sequential(layer), "0")):
        repr(m)
        m.load_state_dict(m.state_dict())
        for convert in (m.double, m.float, lambda m=m: m.to(torch.float64), m.float, m.cpu):
            convert()
        for listed in (m.named_parameters, m.parameters, m.buffers, m.modules, m.children):
            list(listed())
        m.zero_grad()
        m.requires_grad_(False).requires_grad_(True)
        m.apply(lambda m: None)
        m.eval().train()
        m.get_submodule(path)
        copy.deepcopy(m)
    if name == "Module":
        layer.scale = nn.Parameter(torch.ones(2))
        layer.register_buffer("mean", torch.ones(2))
        layer.mean = torch.zeros(2)
        layer.register_module("part", nn.ReLU())


def use_optimizer(torch, cls) -> None:
    p = torch.nn.Parameter(torch.ones(3))
    if cls.__mro__[1].__name__ == "Optimizer":
        optimizer = cls([p], {})
    else:
        optimizer = cls([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    if cls.__mro__[1].__name__ != "Optimizer":
        optimizer.step(closure)
        optimizer.step(closure)
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.zero_grad()
    repr(optimizer)


def trace(torch, kind: str, name: str, names=None) -> set[str]:
    """Return the methods among `names` (default: all) of torch.nn.X or torch.optim.X that are called."""
    cls, calls = getattr(getattr(torch, kind), name), set()
    names = find_methods(cls) if names is None else names
    traced = record_calls(cls, names, calls)
    if kind == "nn":
        use_layer(torch, traced, name)
    else:
        use_optimizer(torch, traced)
    return calls


def make_table(torch) -> dict[str, str]:
    """Return {"nn.Conv1d": the methods that PyTorch calls}."""
    table = {f"nn.{name}": " ".join(sorted(trace(torch, "nn", name))) for name in LAYERS}
    for name in OPTIMIZERS:
        table[f"optim.{name}"] = " ".join(sorted(trace(torch, "optim", name)))
    return table
