"""Names that do not exist: what the user may have meant."""
from __future__ import annotations

from collections.abc import Callable, Iterable

from flowedu.errors import MissingAttributeError, told_line, user_place

# Names of NumPy, TensorFlow and other habits, and what they are called here.
ALIASES = {"axis": ("dim",), "axes": ("dim", "dims", "axis", "perm"), "dims": ("dim",), "dim": ("axis", "dims"),
           "keepdims": ("keepdim",), "keepdim": ("keepdims",), "x": ("input",), "y": ("other", "target"), "a": ("input",),
           "lr": ("learning_rate",), "learning_rate": ("lr",), "in_channel": ("in_channels",), "p": ("rate",),
           "filters": ("out_channels",), "units": ("out_features",), "use_bias": ("bias",), "strides": ("stride",),
           "activation": ("nonlinearity",), "weights": ("weight",), "label": ("target",), "labels": ("target",),
           "bs": ("batch_size",), "workers": ("num_workers",), "decay": ("weight_decay",), "rate": ("p",)}

# What is not here on purpose, and what there is for it.
ELSEWHERE = {
    "amp": "everything is computed in the dtype its tensors have: model.half() or model.double() changes that",
    "autocast": "everything is computed in the dtype its tensors have: model.half() or model.double() changes that",
    "autocast_mode": "everything is computed in the dtype its tensors have",
    "quantization": "there are no quantized kernels; train and run in float32, or export to ONNX and quantize there",
    "distributions":
        "draw with flow.randn, flow.rand, flow.normal, flow.bernoulli, flow.multinomial and flow.poisson",
    "profiler":
        "graph.profile(x), of an nn.Graph or a job, prints where a compiled step spends its time; cProfile shows the rest",
    "jit": "a compiled network is an nn.Graph: subclass flow.nn.Graph and define build()",
    "compile": "a compiled network is an nn.Graph: subclass flow.nn.Graph and define build()",
    "fx": "an nn.Graph records what a module computes: print(graph)",
    "sparse": "tensors are dense; nn.Embedding has a dense gradient",
    "fft": "NumPy has one: flow.tensor(np.fft.fft(x.numpy()).real)",
    "hub": "models are in flow.vision.models and flow.models; flow.load reads weights",
    "one_embedding": "nn.Embedding, spread over devices by to_global",
    "multiprocessing": "flow.utils.data.DataLoader(num_workers=2) and python -m flowedu.distributed.launch start them",
    "checkpoint": "keep what backward needs, or accumulate gradients over smaller batches",
    "tensorboard": "write the numbers with any logger of your own: loss.item() is one",
    "mps": "this build computes on the CPU",
    "xpu": "this build computes on the CPU",
    "complex64": "there are no complex dtypes: keep real and imaginary parts as two tensors",
    "complex128": "there are no complex dtypes: keep real and imaginary parts as two tensors",
    "int16": "there is no int16: flow.int32 holds its numbers",
    "set_default_tensor_type": "flow.set_default_dtype(flow.float64)",
    "DataParallel": "nn.parallel.DistributedDataParallel, or global tensors: model.to_global(placement, sbp)",
}


def nearest(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The most similar of `names`; None: nothing is similar."""
    import difflib
    names = list(names)
    for other in ALIASES.get(name, ()):
        if other in names:
            return other
    plain = {n.lower().replace("_", ""): n for n in reversed(names)}
    if name.lower().replace("_", "") in plain:
        return plain[name.lower().replace("_", "")]
    close = difflib.get_close_matches(name, names, 1, cutoff)
    return close[0] if close else None


class UnknownNameError(MissingAttributeError):
    """A name that a module or an object does not have. The text is made when it is read: `hasattr` stays cheap."""

    def __init__(self, owner: str, name: str, names: Callable[[], Iterable[str]], prefix: str = ""):
        """owner: of what, in words; prefix: what stands before the name in a program: "flow."."""
        Exception.__init__(self)
        self.missing, self._owner, self._names, self._prefix, self._place = name, owner, names, prefix, user_place()

    def __getattr__(self, attribute: str):
        if attribute not in ("problem", "expected", "got", "fix", "at"):
            raise AttributeError(attribute)
        name, prefix = self.missing, self._prefix
        close = nearest(name, [n for n in self._names() if not n.startswith("_")])
        elsewhere = ELSEWHERE.get(name)
        self.problem = f"{self._owner} has no attribute {name!r}"
        self.expected = "a name that is there" if close is None or elsewhere else f"perhaps {close!r}"
        self.got, self.at = repr(name), told_line(self._place)
        self.fix = elsewhere or (f"{prefix}{close}" if close else f"dir({prefix.rstrip('.') or 'x'}) lists the names")
        return vars(self)[attribute]

    def __str__(self) -> str:
        return self._text()

    def __reduce__(self):
        from flowedu.errors import _rebuilt
        return _rebuilt, (MissingAttributeError, (str(self),), {k: getattr(self, k) for k in (
            "problem", "expected", "got", "fix", "at")})
