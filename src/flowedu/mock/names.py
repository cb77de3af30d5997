"""Tables of paths in torch and oneflow whose modules in flowedu have other paths."""
from __future__ import annotations

# {mocked package: path of its names in flowedu}, and {argument of `enable`: packages that it mocks}
ROOTS = {"torch": "", "oneflow": "", "torchvision": "vision", "flowvision": "vision"}
COMPANIONS = ("torchvision", "flowvision")           # a package on the path precedes flowedu.vision
WITH = {"torch": ("torch", "torchvision"), "oneflow": ("oneflow", "flowvision")}

# the versions that flowedu resembles most, for programs that compare versions
VERSIONS = {"torch": "2.5.0+flowedu", "torchvision": "0.20.0+flowedu", "oneflow": "1.0.0+flowedu",
            "flowvision": "0.2.0+flowedu"}

# internal packages, hidden because torch.ops, torch.fft, oneflow.core, ... have other meanings
HOUSE = {"array_api", "diagnostics", "core", "errors", "aliases", "fast", "fft", "mock", "oneflow04", "ops",
         "saving", "show", "swap"}

_HERE = "flowedu.mock.insides"
_TABLES = f"{_HERE}.tables"
_LAYERS = "flowedu.nn.modules"

# {path in torch or oneflow: module with its names, or a table of insides/tables.py}, searched before
# flowedu's module of the same path
INSIDES = {
    "": f"{_HERE}.top",
    "vision.transforms.transforms": "flowedu.vision.transforms",
    **dict.fromkeys(("vision.ops.boxes", "vision.ops.misc"), "flowedu.vision.ops"),
    "vision.io.image": "flowedu.vision.io",
    **dict.fromkeys(("vision.models", "vision.models.resnet", "vision.models.vgg"), f"{_HERE}.model_weights"),
    "vision.transforms.v2": f"{_HERE}.transforms_v2",
    "vision.transforms.v2.functional": "flowedu.vision.transforms.functional",
    "_C": f"{_HERE}.functionals",
    "_utils": f"{_HERE}.flat",
    "_oneflow_internal": f"{_HERE}.top",
    "accelerator": f"{_HERE}.accelerator",
    **dict.fromkeys(("amp", "amp.autocast_mode", "amp.grad_scaler"), f"{_HERE}.amp"),
    **dict.fromkeys(("cuda.amp", "cuda.amp.autocast_mode", "cuda.amp.grad_scaler"), f"{_HERE}.cuda_amp"),
    "backends.cudnn": f"{_TABLES}:cudnn",
    "backends.mps": f"{_TABLES}:absent",
    **dict.fromkeys((f"backends.{name}" for name in ("mkl", "mkldnn", "openmp", "opt_einsum")),
                    f"{_TABLES}:absent_library"),
    **dict.fromkeys(("compiler", "_dynamo"), f"{_TABLES}:compiler"),
    "cpu": f"{_TABLES}:cpu",
    **dict.fromkeys(("cpu.amp", "cpu.amp.autocast_mode", "cpu.amp.grad_scaler"), f"{_HERE}.cpu_amp"),
    "autograd.anomaly_mode": "flowedu.autograd.anomaly",
    "autograd.grad_mode": "flowedu.tensor.gradients.grad_mode",
    "nn.utils.clip_grad": "flowedu.nn.utils",
    "utils.data._utils.collate": "flowedu.utils.data.collate",
    "boxing.nccl": f"{_TABLES}:nccl",
    "compatible": f"{_TABLES}:compatible",
    **dict.fromkeys((f"distributions.{name}" for name in (
        "bernoulli beta binomial categorical cauchy chi2 dirichlet distribution exponential gamma geometric "
        "gumbel half_cauchy half_normal independent kl laplace log_normal mixture_same_family multinomial "
        "multivariate_normal normal one_hot_categorical pareto poisson relaxed_bernoulli relaxed_categorical "
        "studentT transformed_distribution uniform weibull").split()), "flowedu.distributions"),
    "framework.dtype": "flowedu",
    "framework.tensor": f"{_HERE}.top",
    "fx": f"{_TABLES}:fx",
    "jit": f"{_HERE}.jit",
    "mps": f"{_TABLES}:absent",
    "xpu": f"{_TABLES}:absent",
    "nn.attention": f"{_HERE}.attention",
    "nn.common_types": f"{_HERE}.common_types",
    "nn.modules.module": "flowedu.nn",
    "nn.modules.utils": f"{_HERE}.tuples",
    "nn.optimizer.lr_scheduler": "flowedu.optim.lr_scheduler",
    "nn.optimizer.optimizer": "flowedu.optim",
    "nn.parameter": "flowedu.nn",
    **{f"nn.modules.{torchs}": f"{_LAYERS}.{ours}" for torchs, ours in {
        "batchnorm": "norm", "instancenorm": "norm", "normalization": "norm", "adaptive": "loss",
        "pooling": "pool", "rnn": "rnn", "flatten": "linear", "upsampling": "upsampling"}.items()},
    "nn.modules.container": "flowedu.nn",
    "nn.modules.sparse": "flowedu.nn",
    "nn.modules.transformer": "flowedu.nn",
    "nn.modules.activation": "flowedu.nn",
    "optim.optimizer": "flowedu.optim",
    **dict.fromkeys(("profiler", "profiler.profiler", "autograd.profiler"), "flowedu.utils.profiler"),
    "utils.data.dataloader": "flowedu.utils.data",
    "utils.tensorboard.writer": "flowedu.utils.tensorboard",
    "utils.hooks": "flowedu.nn",
    "utils._pytree": f"{_HERE}.pytree",
    "utils.model_zoo": f"{_HERE}.model_zoo",
    "version": f"{_TABLES}:version",
}

# the same for torch only, searched first: names with OneFlow's arguments in flowedu
TORCHS = {
    "": f"{_HERE}.torch_top",
    "backends.cuda": f"{_TABLES}:torch_cuda_backend",
    "cuda": f"{_HERE}.torch_cuda",
    **dict.fromkeys(("distributed.algorithms", "distributed.algorithms.join",
                     "distributed.algorithms.ddp_comm_hooks"),
                    f"{_HERE}.torch_join"),
    **dict.fromkeys((f"distributed.algorithms.ddp_comm_hooks.{n}" for n in ("default_hooks",
                                                                            "powerSGD_hook")),
                    f"{_HERE}.torch_comm_hooks"),
    "functional": "flowedu",
    "hub": f"{_HERE}.torch_hub",
    "_C": f"{_TABLES}:torch_internals",
    "_inductor": f"{_TABLES}:inductor",
    "_inductor.config": f"{_TABLES}:inductor_config",
    "multiprocessing": f"{_HERE}.torch_spawn",
    "nn.modules.conv": f"{_HERE}.torch_conv",
    "random": f"{_HERE}.torch_random",
    "special": f"{_HERE}.torch_special",
    "testing": f"{_HERE}.torch_testing",
    "types": f"{_HERE}.torch_types",
    "utils.checkpoint": f"{_HERE}.torch_checkpoint",
    "utils.data": f"{_HERE}.torch_data",
    "linalg": "flowedu.tensor.linalg.inverse_and_norms",
    "nn": f"{_HERE}.torch_nn",
    "nn.init": f"{_HERE}.torch_init",
    "nn.functional": f"{_HERE}.torch_functional",
    "nn.parallel": f"{_HERE}.torch_parallel",
    "nn.parallel.data_parallel": f"{_HERE}.torch_nn",
    "nn.parallel.distributed": f"{_HERE}.torch_parallel",
    "onnx": f"{_HERE}.torch_onnx",
    "optim": f"{_HERE}.torch_optimizers",
    **{f"optim.{n}": f"{_HERE}.torch_optimizers" for n in (
        "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "optimizer", "radam", "rmsprop",
        "rprop", "sgd")},
    "optim.lr_scheduler": f"{_HERE}.torch_schedules",
    "serialization": f"{_HERE}.torch_top",
}

# the same for oneflow only
ONEFLOWS = {
    "core.record": "flowedu.oneflow04.record",
    "core.record.record_pb2": "flowedu.oneflow04.record.record_pb2",
    "mock_torch": f"{_HERE}.oneflow_mock_torch",
    **dict.fromkeys(("nn", "nn.functional", "nn.modules.loss"), f"{_HERE}.oneflow_losses"),
}

# {mocked package: tables of its modules, in order of precedence}
TABLES = {"torch": (TORCHS, INSIDES), "oneflow": (ONEFLOWS, INSIDES)}
