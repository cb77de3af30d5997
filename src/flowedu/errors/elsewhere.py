"""What is not here, and what there is for it. Each remedy is looked up by tests/errors: what it names exists."""
from __future__ import annotations

_GRAPH = "a compiled network is an nn.Graph: subclass flow.nn.Graph and define build()"
_DEVICES = "devices are the CPU and CUDA: flow.cuda.is_available() says whether there is one"
_REAL = "there are no complex dtypes: keep real and imaginary parts as two tensors"
_DERIVED = "there is flow.func: jvp, jacfwd, hessian"

# name, or path where the name alone is not enough ("x.": of a module's object): what to do
ON_DEVICE = {
    "autocast": "flow.amp.autocast", "autocast_mode": "flow.amp", "get_autocast_dtype": "flow.amp.get_autocast_dtype",
    "GradScaler": "flow.amp.GradScaler",
    "quantization": "there are no quantized kernels; train and run in float32, or export to ONNX and quantize there",
    "profiler":
        "graph.profile(x), of an nn.Graph or a job, prints where a compiled step spends its time; cProfile shows the rest",
    "jit": _GRAPH, "compile": _GRAPH,
    "fx": "an nn.Graph records what a module computes: print(graph)",
    "sparse": "tensors are dense; nn.Embedding has a dense gradient",
    "sparse_coo_tensor": "tensors are dense; nn.Embedding has a dense gradient",
    **dict.fromkeys(("eig", "eigvals"), "eigenvalues are complex in general, and there are no complex dtypes: "
                    "flow.linalg.eigh of a symmetric matrix; else np.linalg.eig(x.numpy()), without a gradient"),
    **dict.fromkeys(("ldl_factor", "ldl_solve"), "flow.linalg.lu_factor, which needs no symmetry; of a positive definite "
                    "matrix flow.linalg.cholesky"),
    **dict.fromkeys(("fft", "rfft", "ifft", "irfft", "stft", "istft"), "a spectrum is complex, and there are no complex "
                    "dtypes (pairs of real numbers would be multiplied wrongly): f = np.fft.fft(x.numpy()), then "
                    "flow.tensor(f.real) and flow.tensor(f.imag), without a gradient"),
    "forward_ad": _DERIVED,
    "hub": "models are in flow.vision.models and flow.models; flow.load reads weights",
    "one_embedding": "nn.Embedding, spread over devices by to_global",
    "multiprocessing": "flow.utils.data.DataLoader(num_workers=2) and python -m flowedu.distributed.launch start them",
    "tensorboard": "write the numbers with any logger of your own: loss.item() is one",
    "mps": _DEVICES, "xpu": _DEVICES,
    "complex64": _REAL, "complex128": _REAL,
    **{name: f"there is no {name}: flow.{there} holds its numbers" for name, there in (
        ("int16", "int32"), ("short", "int32"), ("ShortTensor", "int32"), ("uint16", "int32"), ("uint32", "int64"))},
    "uint64": "there is no uint64: flow.int64 holds its numbers up to 2**63 - 1",
    "set_default_tensor_type": "flow.set_default_dtype(flow.float64)",
    "DataParallel": "nn.parallel.DistributedDataParallel, or global tensors: model.to_global(placement, sbp)",
    "asarray": "flow.as_tensor(x)", "frombuffer": "flow.from_numpy(np.frombuffer(buffer, np.float32).copy())",
    "all_gather_into_tensor": "flow.distributed.all_gather(tensors, x)",
    "all_reduce_coalesced": "flow.distributed.all_reduce(x) for each",
    "trapz": "flow.trapezoid(y, x)", "vecdot": "(x * y).sum(-1)",
    "pdist": "flow.cdist(x, x), which has each distance twice",
    "memory_summary": "flow.cuda.memory_stats()",
    "flow.distributed.checkpoint": "flow.save(model.state_dict(), path), and flow.load",
    "x.module": "only a wrapper has one, and this is the module itself: model.state_dict()",
}


def elsewhere(prefix: str, name: str) -> str | None:
    """What there is for a name; prefix: what stands before it in a program ("flow.linalg.", "x.")."""
    import numpy as np

    found = ON_DEVICE.get(prefix + name) or ON_DEVICE.get(name)
    if found or prefix not in ("flow.", "flow.linalg."):
        return found
    home = np.linalg if prefix == "flow.linalg." else np
    there = name[0] != "_" and callable(getattr(home, name, None)) and not isinstance(getattr(home, name), type)
    home = "np.linalg" if home is np.linalg else "np"
    return f"NumPy has one, without a gradient: {home}.{name}, of x.numpy()" if there else None
