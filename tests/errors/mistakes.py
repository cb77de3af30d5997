"""Typical mistakes: (program, class of the error, words in its text: the function or argument, the received
value, and the fix). Programs start with SETUP; their last statement fails.
"""
SETUP = """
import numpy as np
import flowedu as flow
import flowedu.typing as tp
from flowedu import nn
import flowedu.nn.functional as F
x = flow.ones(2, 3)
i = flow.tensor([0, 1])
w = flow.ones(3, requires_grad=True)
net = nn.Linear(3, 4)
sgd = flow.optim.SGD(net.parameters(), lr=0.1)
"""


def graph_program(body: str, init: str = "", call: str = "x") -> str:
    """Return a program that calls an nn.Graph whose build is `body`."""
    lines = ["class G(nn.Graph):", "    def __init__(self):", "        super().__init__()",
             "        self.net = net"]
    lines += [f"        {line}" for line in init.split("; ") if line]
    return "\n".join([*lines, "    def build(self, x):", *(f"        {line}" for line in body.split("; ")),
                      f"G()({call})"])


def job(body: str, argument: str = "a: tp.Numpy.Placeholder((2, 3))",
        call: str | None = "np.ones((2, 3), np.float32)", kind: str = "", gives: str = "tp.Numpy") -> str:
    """Return a program that calls a job whose function is `body`; call=None only defines it."""
    head = f"@flow.global_function({kind})\ndef step({argument}) -> {gives}:\n"
    return head + "\n".join(f"    {line}" for line in body.split("; ")) + ("" if call is None
                                                                           else f"\nstep({call})")


CALLS = [
    ("F.relu(x, inplce=True)", "CallError", "relu 'inplce' inplace=..."),
    ("nn.Linear(2, 3, bais=False)", "CallError", "Linear 'bais' bias=..."),
    ("x.sum(axes=0)", "CallError", "Tensor.sum 'axes' dim=..."),
    ("nn.Linear(2)", "CallError", "Linear 'out_features' missing"),
    ("nn.ReLU(True, 1, 2)", "CallError", "ReLU 3 arguments leave"),
    ("flow.add(x, input=x)", "CallError", "add 'input' twice"),
    ("flow.onnx.export(net, x, 'm.onnx', opset=3)", "CallError", "export 3 arguments by name"),
    ("flow.relux(x)", "UnknownNameError", "relux perhaps 'relu' flow.relu"),
    ("nn.Lineer(2, 3)", "UnknownNameError", "Lineer nn.Linear"),
    ("flow.GradScaler", "UnknownNameError", "GradScaler flow.amp.GradScaler"),
    ("net(x, foo=1)", "CallError", "Linear.forward 'foo' forward(input)"),
    ("net(x, imput=x)", "CallError", "Linear.forward 'imput' input"),
    ("net()", "CallError", "Linear.forward 'input' missing"),
    ("net(x, x)", "CallError", "Linear.forward 2 arguments"),
]

TENSORS = [
    ("x + 'a'", "DTypeError", "add 'a'"),
    ("x < 'a'", "DTypeError", "lt 'a'"),
    ("x @ [1, 2]", "DTypeError", "matmul list flow.tensor"),
    ("flow.zeros(-1, 2)", "ShapeError", "zeros -1"),
    ("flow.tensor('abc')", "DTypeError", "tensor 'abc'"),
    ("flow.tensor([[1, 2], [3]])", "ShapeError", "tensor"),
    ("flow.tensor([1, None])", "DTypeError", "tensor list objects"),
    ("flow.ones(2, 3, dtype='float33')", "DTypeError", "float33"),
    ("flow.ones(2, 3, dtype=float, device='cdua')", "DeviceError", "cdua"),
    ("flow.ones(2, device='cuda:99')", "DeviceError", "cuda"),
    ("x.to('gpu9')", "DeviceError", "gpu9"),
    ("x.item()", "FlowError", "item 6"),
    ("bool(x)", "FlowError", "bool (2, 3) x.any()"),
    ("float(flow.ones(2))", "FlowError", "2"),
    ("x.half() @ x.double().T", "DTypeError", "matmul float16 float64"),
    ("flow.arange(0, 5, 0)", "ArgumentError", "arange step"),
    ("flow.eye(-2)", "FlowError", "eye -2"),
    ("x.numpy(foo=1)", "CallError", "numpy 'foo'"),
    ("flow.from_numpy([1, 2])", "FlowError", "from_numpy list"),
    ("list(flow.tensor(1))", "DTypeError", "0-d item()"),
    ("len(flow.tensor(1.0))", "FlowError", "0"),
    ("x.repeat('a')", "CallError", "repeat 'a'"),
    ("flow.full((2,), 'a')", "CallError", "full 'a'"),
    ("flow.arange('a')", "CallError", "arange 'a'"),
    ("flow.one_hot(i)", "CallError", "one_hot missing"),
    ("flow.cat([])", "FlowError", "cat"),
    ("x & 'a'", "DTypeError", "bitwise_and 'a'"),
]

SHAPES = [
    ("x + flow.ones(4)", "ShapeError", "add (2, 3) (4,)"),
    ("x @ x", "ShapeError", "matmul (2, 3)"),
    ("x.reshape(4, 2)", "ShapeError", "reshape 6 8"),
    ("x.view(-1, -1)", "ShapeError", "-1"),
    ("x.sum(dim=2)", "AxisError", "sum [-2, 1] 2 axis"),
    ("x.reshape('a')", "CallError", "reshape 'a'"),
    ("x.sum(dim='a')", "CallError", "Tensor.sum dim 'a'"),
    ("x.sum(dim=0.5)", "CallError", "Tensor.sum dim 0.5"),
    ("x.transpose(0, 5)", "AxisError", "transpose 5"),
    ("x.permute(0, 0)", "ShapeError", "permute (0, 0)"),
    ("flow.cat([x, flow.ones(2, 4)], 0)", "ShapeError", "cat 3 4"),
    ("flow.stack([x, flow.ones(3)])", "ShapeError", "stack"),
    ("x.expand(2, 4)", "ShapeError", "expand"),
    ("x.squeeze(3)", "AxisError", "squeeze 3"),
    ("flow.split(x, [1, 3], dim=1)", "ShapeError", "split"),
    ("flow.einsum('ij,jk->ik', x, x)", "ShapeError", "einsum j"),
    ("flow.bmm(x, x)", "ShapeError", "bmm (2, 3)"),
    ("F.pad(x, (1, 1, 1))", "FlowError", "pad (1, 1, 1)"),
]

INDEXING = [
    ("x[5]", "AxisError", "5 dimension 0 size 2"),
    ("x[0, 3]", "AxisError", "3 dimension 1 size 3"),
    ("x[0, 0, 0]", "FlowError", "3"),
    ("x['a']", "FlowError", "'a'"),
    ("x[1.5]", "FlowError", "1.5"),
    ("x[flow.tensor([0, 7])]", "FlowError", "7 dimension 0 size 2"),
    ("x[flow.ones(2, 2, dtype=flow.bool)]", "FlowError", "(2, 3)"),
    ("x[0] = flow.ones(4)", "ShapeError", "(4,)"),
    ("flow.gather(x, 1, flow.tensor([[0, 9], [0, 0]]))", "FlowError", "gather 9"),
    ("flow.index_select(x, 2, i)", "AxisError", "index_select 2"),
    ("F.embedding(flow.tensor([12]), flow.ones(10, 4))", "FlowError", "embedding 12"),
    ("F.one_hot(flow.tensor([3]), 2)", "FlowError", "one_hot 3"),
]

MODULES = [
    ("net(flow.ones(2, 5))", "ShapeError", "linear 3 5"),
    ("net(x.int())", "DTypeError", "linear int32 float32"),
    ("net(x.numpy())", "NotATensorError", "linear NumPy flow.tensor"),
    ("nn.Conv2d(3, 8, 3)(flow.ones(1, 4, 8, 8))", "ShapeError", "conv2d 3 4"),
    ("nn.Conv2d(3, 8, 3, groups=2)", "FlowError", "groups in_channels"),
    ("nn.Conv2d(1, 1, 9)(flow.ones(1, 1, 4, 4))", "ShapeError", "conv2d 9 4"),
    ("nn.BatchNorm2d(3)(flow.ones(2, 4, 5, 5))", "ShapeError", "3 4"),
    ("nn.BatchNorm1d(3)(flow.ones(1, 3))", "FlowError", "1 (1, 3) eval()"),
    ("nn.LayerNorm(5)(x)", "ShapeError", "layer_norm 5 (2, 3)"),
    ("nn.Embedding(4, 2)(flow.ones(3))", "DTypeError", "embedding float32"),
    ("nn.Dropout(1.5)", "ArgumentError", "1.5"),
    ("nn.LSTM(3, 4)(flow.ones(2, 5, 6))", "ShapeError", "3 6"),
    ("nn.MultiheadAttention(10, 3)", "FlowError", "embed_dim num_heads"),
    ("nn.Sequential(3)", "FlowError", "3"),
    ("nn.Module()(x)", "UnsupportedError", "forward"),
    ("class M(nn.Module):\n    def __init__(self):\n        self.a = net\nM()", "FlowError",
     "super().__init__()"),
    ("net.weight = flow.ones(4, 3)", "DTypeError", "weight nn.Parameter"),
    ("net.wieght", "UnknownNameError", "Linear wieght weight"),
    ("net.load_state_dict({'weight': net.weight})", "CheckpointError", "bias strict=False"),
    ("net.load_state_dict(nn.Linear(3, 5).state_dict())", "CheckpointError", "weight (5, 3) (4, 3)"),
    ("net.register_buffer('a.b', x)", "FlowError", "a.b"),
]

LOSSES = [
    ("nn.CrossEntropyLoss()(x, flow.tensor([0, 3]))", "FlowError", "3"),
    ("nn.CrossEntropyLoss()(x, flow.tensor([0, 1, 2]))", "ShapeError", "2 3"),
    ("nn.CrossEntropyLoss()(x, flow.tensor([0.0, 1.0]))", "FlowError", "cross_entropy"),
    ("nn.CrossEntropyLoss(reduction='avg')(x, i)", "ArgumentError", "reduction avg mean"),
    ("F.nll_loss(x, flow.tensor([0, -1]))", "FlowError", "nll_loss -1"),
    ("F.binary_cross_entropy(x, flow.ones(2, 4))", "ShapeError", "binary_cross_entropy (2, 3) (2, 4)"),
    ("F.mse_loss(x, 'a')", "FlowError", "mse_loss 'a'"),
]

TRAINING = [
    ("flow.optim.SGD(net.parameters(), lr='0.1')", "CallError", "SGD lr '0.1' lr=0.1"),
    ("flow.optim.SGD(net.parameters(), lr=-1)", "HyperparameterError", "SGD rate: -1 0"),
    ("flow.optim.SGD()", "CallError", "SGD 'params' missing"),
    ("flow.optim.SGD(net.weight, lr=0.1)", "FlowError", "[ parameters"),
    ("flow.optim.SGD([x * w], lr=0.1)", "FlowError", "leaf"),
    ("flow.optim.Adam(net.parameters(), betas=(0.9, 1.5))", "HyperparameterError", "1.5"),
    ("flow.optim.Adam(net.parameters(), leraning_rate=0.1)", "CallError", "Adam 'leraning_rate' lr"),
    ("flow.optim.lr_scheduler.StepLR(net, 2)", "FlowError", "StepLR optimizer Linear"),
    ("flow.optim.lr_scheduler.StepLR(sgd, 0)", "FlowError", "step_size 0"),
    ("flow.optim.lr_scheduler.CosineAnnealingLR(sgd)", "CallError", "CosineAnnealingLR 'T_max'"),
    ("sgd.load_state_dict({})", "FlowError", "param_groups"),
    ("x.backward()", "GradientError", "requires_grad=True float32[2, 3]"),
    ("(w * 2).backward()", "GradientError", "scalar .sum() (3,)"),
    ("y = (w * w).sum()\ny.backward()\ny.backward()", "GradientError", "second retain_graph=True"),
    ("w.add_(1)", "FlowError", "leaf no_grad()"),
    ("y = w.exp()\nz = y.sum()\ny.add_(1)\nz.backward()", "GradientError", "exp in place"),
    ("flow.autograd.grad(w.sum(), x)", "GradientError", "requires_grad"),
    ("flow.autograd.grad(w.sum(), 'a')", "CallError", "grad str requires_grad"),
    ("w.backward('a')", "CallError", "backward gradient str flow.ones_like"),
    ("w.grad = 3", "DTypeError", "grad int"),
    ("w.grad = flow.ones(4)", "ShapeError", "grad (4,) (3,)"),
    ("i.requires_grad_()", "FlowError", "int64 float"),
]

JOBS = [
    (job("return flow.math.relu(a)", call="np.ones((2, 4), np.float32)"), "FlowError", "a (2, 3) (2, 4)"),
    (job("return flow.math.relu(a)", call=""), "FlowError", "a step"),
    (job("return flow.math.relu(a)", call="[1, 2]"), "FlowError", "a list"),
    (job("return flow.math.relu(a)", argument="a"), "FlowError", "a Placeholder"),
    (job("return flow.math.relu(a)", argument="a: int", call=None), "FlowError", "a int Placeholder"),
    (job("return np.sin(a)"), "FlowError", "sin flow.math"),
    (job("return a.numpy()"), "FlowError", "numpy"),
    (job("return 3"), "FlowError", "step 3"),
    (job("return a + flow.get_variable('v', (4,), initializer=flow.zeros_initializer())"), "FlowError",
     "(2, 3) (4,)"),
    (job("return a", kind="type='train'"), "FlowError", "minimize"),
    (job("if a > 0: return a; return a"), "FlowError", "truth flow.where"),
    (job("return flow.get_variable('v', (3,))"), "FlowError", "v initializer"),
    ("flow.config.gpu_device_nmu(1)", "FlowError", "gpu_device_nmu gpu_device_num"),
    (job("return a", argument="a: tp.Numpy.Placeholder((2, 'a'))"), "FlowError", "'a' int"),
    ("tp.Numpy.Placeholder((2, 3), dtype='x')", "FlowError", "dtype 'x'"),
]

GRAPHS = [
    ("class G(nn.Graph):\n    def __init__(self):\n        self.net = net\nG()", "FlowError",
     "super().__init__()"),
    ("class G(nn.Graph):\n    pass\nG()(x)", "FlowError", "build"),
    (graph_program("return self.net(x)", call="flow.ones(2, 5)"), "ShapeError", "linear 3 5"),
    ("class G(nn.Graph):\n    def build(self, x):\n        return x * 2\ng = G()\ng(x)\ng(x.double())",
     "FlowError", "float32 float64"),
    ("class G(nn.Graph):\n    def build(self, x):\n        return x * 2\ng = G()\ng(x)\ng(flow.ones(5, 3))",
     "FlowError", "(2, 3) (5, 3)"),
    (graph_program("return 3"), "FlowError", "build int flow.tensor(value)"),
    (graph_program("return self.net(x).sum()", "self.add_optimizer(sgd)"), "FlowError", "backward()"),
    (graph_program("y = self.net(x).sum(); y.backward(); return y"), "FlowError", "add_optimizer"),
    (graph_program("y = self.net(x); y.backward(); return y", "self.add_optimizer(sgd)"), "FlowError",
     "scalar .sum()"),
    (graph_program("return self.net(x).item()"), "LazyTensorError", "item"),
    (graph_program("print(x.numpy()); return x"), "LazyTensorError", "numpy"),
    ("nn.Graph()(x)", "FlowError", "build"),
    (graph_program("return x", "self.add_optimizer(net)"), "FlowError", "optimizer"),
]

GLOBAL = [
    ("flow.ones(2, placement=flow.placement('cpu', [9]), sbp=flow.sbp.broadcast)", "FlowError", "9"),
    ("flow.placement('cup', [0])", "FlowError", "cup"),
    ("x.to_global(flow.placement('cpu', [0]))", "FlowError", "to_global sbp"),
    ("x.to_global(flow.placement('cpu', [0]), sbp='split')", "FlowError", "sbp 'split'"),
    ("x.to_global(flow.placement('cpu', [0]), sbp=flow.sbp.split(2))", "FlowError", "2 (2, 3) split(0)"),
    ("flow.sbp.spilt(0)", "FlowError", "spilt split"),
    ("x.to_local()", "FlowError", "to_local"),
    ("x.placement", "FlowError", "placement to_global"),
]

DATA = [
    ("flow.utils.data.DataLoader([1, 2], batch_size=0)", "FlowError", "batch_size 0"),
    ("flow.utils.data.DataLoader([1, 2], shufle=True)", "CallError", "DataLoader 'shufle' shuffle"),
    ("flow.utils.data.DataLoader([1, 2], num_workers=-1)", "FlowError", "num_workers -1"),
    ("list(flow.utils.data.DataLoader([np.ones(2), np.ones(3)], batch_size=2))", "FlowError",
     "[2] [3] collate_fn"),
    ("list(flow.utils.data.DataLoader([object(), object()], batch_size=2))", "FlowError",
     "object collate_fn"),
    ("flow.utils.data.TensorDataset(x, flow.ones(3))", "FlowError", "2 3"),
    ("flow.utils.data.random_split([1, 2, 3], [1, 1])", "FlowError", "3 2"),
    ("flow.utils.data.DataLoader([1, 2], shuffle=True, sampler=[0, 1])", "FlowError", "sampler shuffle"),
    ("flow.load('/no/such/file')", "CheckpointError", "/no/such/file"),
    ("flow.save(lambda: 1, '/tmp/never_written')", "FlowError", "save function"),
    ("flow.TensorBuffer(3)", "FlowError", "TensorBuffer 3"),
    ("flow.TensorBuffer(['a'])", "FlowError", "TensorBuffer <U1"),
    ("flow.tensor_buffer_to_tensor(x, flow.float32, (3,))", "FlowError", "tensor_buffer_to_tensor"),
]

ROWS = CALLS + TENSORS + SHAPES + INDEXING + MODULES + LOSSES + TRAINING + JOBS + GRAPHS + GLOBAL + DATA
