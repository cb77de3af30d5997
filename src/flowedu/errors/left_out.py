"""Table of the features that flowedu does not have.

docs/missing.md shows it, and the error for a missing name of `flow`, `torch`, or `oneflow` quotes its row
(elsewhere.py).
"""
from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """One missing feature. names: its names below `flow` or `torch`; empty for a feature without a name."""

    what: str
    names: str
    why: str
    instead: str

    def format_fix(self) -> str:
        """Return the fix that an error message shows."""
        return f"{self.instead} ({self.what}: {self.why})"


LEFT_OUT = (
    Row("complex numbers",
        "complex64 complex128 complex32 cfloat cdouble chalf complex view_as_complex view_as_real polar",
        "every kernel would need another dtype",
        "keep real and imaginary parts as two tensors"),
    Row("complex Fourier transforms, and transforms of several axes",
        "stft istft fft.ifft fft.hfft fft.ihfft fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.fftn fft.ifftn "
        "fft.rfftn fft.irfftn",
        "flowedu has no complex numbers; frequencies are stored as pairs of shape (..., 2)",
        "flow.fft.rfft, irfft, and fft along one axis; flow.fft.mul multiplies pairs"),
    Row("eigenvalues of nonsymmetric matrices",
        "linalg.eig linalg.eigvals",
        "the eigenvalues are complex",
        "flow.linalg.eigh for symmetric matrices; np.linalg.eig, which has no gradient"),
    Row("sparse tensors and gradients",
        "sparse sparse_coo_tensor sparse_csr_tensor sparse_coo optim.SparseAdam",
        "the size of their memory depends on the data, so no memory plan can place them",
        "dense tensors (the gradient of nn.Embedding is dense); for the edges of a graph, x.index_add or "
        "x.scatter_add"),
    Row("nested tensors",
        "nested jagged",
        "every op would need a second layout",
        "nn.utils.rnn.pad_sequence and a mask; in jobs, flow.TensorList"),
    Row("quantization",
        "ao quantize_per_tensor quantize_per_channel qint8 quint8 qint32 float8_e4m3fn float8_e5m2 "
        "nn.quantized nn.quantizable nn.qat nn.intrinsic",
        "its kernels would be a library of their own",
        "float32 or bfloat16; or flow.onnx.export, and quantize the ONNX file"),
    Row("compilers of Python",
        "jit compile fx export library",
        "flowedu records a network while it runs and never reads its source "
        "(in flowedu.mock, torch.jit.script returns its argument)",
        "flow.nn.Graph compiles a network: subclass it and define build(); print(graph) shows the "
        "recorded ops"),
    Row("forward-mode derivatives of torch.autograd",
        "forward_ad",
        "the course teaches reverse mode; flow.func has forward mode",
        "flow.func: jvp, jacfwd, hessian"),
    Row("downloads of weights and programs",
        "hub",
        "flowedu downloads only data sets, on request, and never executes a hubconf.py",
        "download the weights yourself, store them as .safetensors or .npz, and pass that path to flow.load"),
    Row("pickled models",
        "",
        "loading a pickle can execute code",
        "flow.save and flow.load, .safetensors, or .npz"),
    Row("other devices",
        "mps xpu mtia hpu",
        "flowedu supports the CPU and CUDA",
        "flow.cuda.is_available() returns True if a GPU can be used"),
    Row("extensions in C++",
        "utils.cpp_extension",
        "only CUDA C is compiled while a program runs",
        "flow.custom_op in NumPy, flow.cuda.kernel in CUDA C, or a Cython kernel"),
    Row("other interfaces for distributed models",
        "distributed.rpc distributed.fsdp distributed.FullyShardedDataParallel distributed.tensor "
        "distributed.pipelining distributed.device_mesh distributed.elastic",
        "global tensors cover these uses",
        "model.to_global(placement, sbp); python -m flowedu.distributed.launch starts ranks"),
    Row("newer optimizers",
        "optim.Adafactor optim.Muon",
        "no lesson needs them",
        "flow.optim.AdamW, flow.optim.LAMB"),
    Row("models of torchvision beyond ResNet, VGG and MobileNet, video",
        "vision.models.detection vision.models.segmentation vision.models.video vision.io.read_video",
        "models are programs, not parts of the library",
        "run their unchanged files with flowedu.mock"),
    Row("`one_embedding`",
        "one_embedding",
        "its tables are stored on disks and remote machines",
        "nn.Embedding, distributed with to_global"),
    Row("about 60 of the 645 names of OneFlow 0.4, for example `serving`, `saved_model`, `summary`, "
        "`tensorrt`", "",
        "`src/flowedu/errors/oneflow04.py` has a reason for each name",
        "the error for such a name names the substitute"),
    Row("unsigned integers of more than 8 bits",
        "",
        "every op would need a kernel for each of them; PyTorch does not add or compare them either",
        "the error names a dtype that holds the values"),
    Row("an `nn.Graph` on several GPUs",
        "",
        "a plan belongs to one device",
        "one GPU; or eager tensors and jobs on several GPUs"),
    Row("job functions on several machines",
        "",
        "a job simulates its devices in one process",
        "global tensors and graphs, which run on several machines"),
    Row("16-bit arithmetic instructions of a processor",
        "",
        "ops read 16-bit values, compute in float32, and round once",
        "the results are at least as precise"),
    Row("scaled losses in graphs of global tensors",
        "",
        "no rank has all gradients",
        "bfloat16, which needs no loss scale"),
)

NAMED: dict[str, Row] = {name: row for row in LEFT_OUT for name in row.names.split()}


def find_row(path: str) -> Row | None:
    """Return the row of a name of flow or torch, or the row of a parent: jit.save has the row of jit.

    torch.fft, which differs from flow.fft, has the row of the names below it.
    """
    above = path
    while above and above not in NAMED:
        above = above.rpartition(".")[0]
    return NAMED.get(above) or next((row for name, row in NAMED.items() if name.startswith(path + ".")), None)


def table() -> str:
    """Return the table in Markdown, as docs/missing.md shows it."""
    lines = ["| missing | names | reason | use instead |", "|---|---|---|---|"]
    for row in LEFT_OUT:
        names = " ".join(f"`{name}`" for name in row.names.split())
        lines.append(f"| {row.what} | {names} | {row.why} | {row.instead} |")
    return "\n".join(lines) + "\n"
