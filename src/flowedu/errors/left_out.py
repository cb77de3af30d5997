"""What flowedu leaves out, for good or for now: one table. README shows it, and who asks for a name of it is told its row
(elsewhere.py), under `flow` as under `torch` and `oneflow`: tests/errors/test_left_out.py.
"""
from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """names: by which programs ask for it, below `flow` or `torch`; empty for what has no name of its own."""

    what: str
    names: str
    why: str
    instead: str

    def told(self) -> str:
        """The remedy in a message."""
        return f"{self.instead} ({self.what}: {self.why})"


LEFT_OUT = (
    Row("complex numbers",
        "complex64 complex128 complex32 cfloat cdouble chalf complex view_as_complex view_as_real polar",
        "one more kind of number in every kernel",
        "keep real and imaginary parts as two tensors"),
    Row("Fourier transforms of complex numbers, and of several axes",
        "stft istft fft.ifft fft.hfft fft.ihfft fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.fftn fft.ifftn fft.rfftn "
        "fft.irfftn",
        "there are no complex numbers; real ones have pairs, (..., 2), for frequencies",
        "flow.fft.rfft, irfft and fft, along one axis; pairs are multiplied by flow.fft.mul"),
    Row("eigenvalues of matrices that are not symmetric",
        "linalg.eig linalg.eigvals",
        "their values are complex",
        "flow.linalg.eigh of symmetric ones; NumPy has np.linalg.eig, without a gradient"),
    Row("sparse tensors and gradients",
        "sparse sparse_coo_tensor sparse_csr_tensor sparse_coo optim.SparseAdam",
        "memory whose size only the numbers tell, which no plan can lay out",
        "tensors are dense, and so is the gradient of nn.Embedding; for a graph's edges, x.index_add or x.scatter_add"),
    Row("nested tensors",
        "nested jagged",
        "a second layout for every op",
        "nn.utils.rnn.pad_sequence and a mask; in jobs flow.TensorList"),
    Row("quantization",
        "ao quantize_per_tensor quantize_per_channel qint8 quint8 qint32 float8_e4m3fn float8_e5m2 "
        "nn.quantized nn.quantizable nn.qat nn.intrinsic",
        "its kernels would be another library",
        "train and run in float32 or bfloat16, or flow.onnx.export and quantize there"),
    Row("compilers of Python",
        "jit compile fx export library",
        "a network is recorded as it runs, not read from its source (under torch, jit.script gives what it is given)",
        "flow.nn.Graph compiles a network: subclass it and define build(); print(graph) shows what was recorded"),
    Row("derivatives forwards",
        "forward_ad",
        "one walk is taught, backwards",
        "flow.func: jvp, jacfwd, hessian"),
    Row("weights and programs from a network",
        "hub",
        "flowedu opens no connections and runs nobody's hubconf.py",
        "fetch the weights by hand, store them as .safetensors or .npz, and give that path to flow.load"),
    Row("pickled models",
        "",
        "reading a pickle runs what is in it",
        "flow.save and flow.load, .safetensors, .npz"),
    Row("other devices",
        "mps xpu mtia hpu",
        "devices are the CPU and CUDA",
        "flow.cuda.is_available() says whether there is a GPU"),
    Row("extensions in C++",
        "utils.cpp_extension",
        "nothing but CUDA C is compiled while a program runs",
        "flow.custom_op in NumPy, flow.cuda.kernel in CUDA C, or a kernel in Cython"),
    Row("other ways to spread a model",
        "distributed.rpc distributed.fsdp distributed.FullyShardedDataParallel distributed.tensor distributed.pipelining "
        "distributed.device_mesh distributed.elastic",
        "global tensors are the one way, and do all of it",
        "model.to_global(placement, sbp); python -m flowedu.distributed.launch starts ranks"),
    Row("newer optimizers",
        "optim.Adafactor optim.Muon",
        "no lesson needs them",
        "flow.optim.AdamW, flow.optim.LAMB"),
    Row("models of torchvision beyond ResNet, VGG and MobileNet, video",
        "vision.models.detection vision.models.segmentation vision.models.video vision.io.read_video",
        "models are programs that run here, not parts of a library",
        "their files as they are, with flowedu.mock"),
    Row("`one_embedding`",
        "one_embedding",
        "its tables lie on disks and remote machines",
        "nn.Embedding, spread by to_global"),
    Row("of the 645 names that OneFlow 0.4 exported some 60, such as `serving`, `saved_model`, `summary`, `tensorrt`",
        "",
        "`src/flowedu/errors/oneflow04.py` has a reason for each",
        "the message of such a name says it"),
    Row("unsigned integers of more than 8 bits",
        "",
        "a kernel for each op and each of them; PyTorch, too, neither adds nor compares them",
        "an error says which type holds their numbers"),
    Row("an `nn.Graph` over several GPUs",
        "",
        "its plan is one device's",
        "one GPU; or eager tensors and jobs on several"),
    Row("job functions on several machines",
        "",
        "their devices are simulated in one process",
        "tensors and graphs run on several machines"),
    Row("16-bit arithmetic of a processor",
        "",
        "ops read 16 bits, compute in float32 (slice by slice, in the cache) and round once",
        "the numbers are the same, or nearer"),
    Row("scaled losses in graphs of global tensors",
        "",
        "no rank sees all gradients",
        "bfloat16, which needs none"),
)

NAMED: dict[str, Row] = {name: row for row in LEFT_OUT for name in row.names.split()}


def left_out(path: str) -> Row | None:
    """The row of a name below flow or torch, or of what it is below: jit.save is of jit. Of torch.fft, which is another
    thing than flow.fft, that of names below it."""
    above = path
    while above and above not in NAMED:
        above = above.rpartition(".")[0]
    return NAMED.get(above) or next((row for name, row in NAMED.items() if name.startswith(path + ".")), None)


def table() -> str:
    """The table as README shows it."""
    lines = ["| out | names | why | what to use instead |", "|---|---|---|---|"]
    for row in LEFT_OUT:
        names = " ".join(f"`{name}`" for name in row.names.split())
        lines.append(f"| {row.what} | {names} | {row.why} | {row.instead} |")
    return "\n".join(lines) + "\n"
