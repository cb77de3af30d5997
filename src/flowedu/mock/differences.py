"""Tables of differences between the signatures of flowedu and PyTorch.

mock/translate.py uses them to translate calls, mock/test_mock_signatures.py compares them with PyTorch's
signatures, and the page "From PyTorch" of the book lists them.

Names are relative to `torch`, and "Tensor.x" is a method. Only the last part of a called name is known
(`linalg.norm` is "norm"), so names with the same last part must have the same rows.
"""
from __future__ import annotations

from typing import Any, NamedTuple

ANY: Any = "any"


class Idle(NamedTuple):
    """PyTorch argument that flowedu's function does not have.

    values: values that do not affect results, so the argument is dropped (ANY: all values). fix: replacement
    for other values, for the error message.
    """

    names: str                       # "*": all functions without an argument of that name
    argument: str
    values: Any
    why: str
    fix: str = ""


class Other(NamedTuple):
    """Documented difference that remains.

    silent: True if results can differ without an error or a warning.
    """

    names: str
    argument: str
    ours: str
    theirs: str
    why: str
    silent: bool = False


# {names: {PyTorch's argument: flowedu's}}. The name "*" selects all functions with flowedu's argument but not
# PyTorch's. The argument "*" is positional.
RENAMED: dict[str, dict[str, str]] = {
    # NumPy's names
    "*": {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"},
    "max min Tensor.max Tensor.min": {"other": "dim"},
    "atleast_1d atleast_2d atleast_3d": {"input": "*"},
    "swapaxes Tensor.swapaxes": {"axis0": "dim0", "axis1": "dim1"},
    "det inverse": {"input": "A"},
    "linalg.norm linalg.matrix_norm linalg.cholesky_ex linalg.cond linalg.eigh linalg.eigvalsh "
    "linalg.matrix_rank linalg.pinv linalg.solve_triangular linalg.tensorinv": {"input": "A"},
    "linalg.lstsq": {"input": "A", "b": "B"},
    "linalg.tensorsolve": {"input": "A", "other": "B"},
    "linalg.vector_norm": {"input": "x"},
    "isin": {"test_element": "test_elements", "element": "elements"},
    "scatter Tensor.scatter": {"value": "src"},
    "split": {"tensor": "input"},
    "Tensor.split": {"split_size": "split_size_or_sections"},
    "tensor_split Tensor.tensor_split": {"sections": "indices_or_sections", "indices": "indices_or_sections",
                                         "tensor_indices_or_sections": "indices_or_sections"},
    "hsplit vsplit dsplit Tensor.hsplit Tensor.vsplit Tensor.dsplit": {"sections": "indices_or_sections",
                                                                       "indices": "indices_or_sections"},
    "vdot Tensor.vdot": {"other": "tensor"},
    "result_type": {"scalar": "*", "tensor": "*", "other": "*", "scalar1": "*", "scalar2": "*"},
    "zeros ones empty rand randn Tensor.new_empty Tensor.new_ones Tensor.new_zeros": {"size": "*"},
    "Tensor.view": {"size": "*", "dtype": "*"},
    "arange": {"end": "start"},                          # with one number, it is the end
    "randint randint_like": {"high": "low"},
    "repeat_interleave": {"repeats": "input"},
    "from_numpy": {"ndarray": "a"},
    "from_dlpack": {"ext_tensor": "x"},
    "set_num_threads": {"int": "n"},
    "Generator.set_state": {"new_state": "state"},
    "nn.Hardtanh": {"min_value": "min_val", "max_value": "max_val"},
    "nn.ModuleList.pop": {"key": "index"},
    "nn.Sequential.extend": {"sequential": "modules"},
    "autograd.backward": {"grad_variables": "grad_tensors"},
    "cuda.StreamContext cuda.set_stream cuda.stream": {"stream": "s"},
}

_SAME = "how it is computed, not what"
_CASTS = "bfloat16 bool byte char cpu cuda double float half int long short"
IDLE = (
    Idle("*", "layout", (None, "torch.strided"), "tensors are dense", "leave it out"),
    Idle("*", "pin_memory", ANY, "where memory lies"),
    Idle("*", "foreach", ANY, _SAME),
    Idle(" ".join(f"Tensor.{n}" for n in _CASTS.split()), "memory_format",
         (None, "torch.preserve_format", "torch.contiguous_format"),
         "an order of memory that there is anyway", ".contiguous(memory_format=...) behind it"),
    Idle("Tensor.expand", "implicit", ANY, _SAME),
    Idle("mm bmm addmm baddbmm Tensor.mm Tensor.bmm Tensor.addmm Tensor.baddbmm", "out_dtype", (None,),
         "the result has the type of the inputs", "convert: torch.mm(a.to(dtype), b.to(dtype))"),
    Idle("Tensor.numpy", "force", (False,), "a tensor that needs a gradient is refused",
         "x.detach().cpu().numpy()"),
    Idle("save", "_disable_byteorder_record", ANY, "nothing is pickled"),
    Idle("nn.Module.modules", "remove_duplicate", (True,), "each module is named once",
         "[m for _, m in net.named_modules(remove_duplicate=False)]"),
    Idle("nn.Embedding", "_freeze", (False,), "the weight is trained",
         "nn.Embedding.from_pretrained(weight, freeze=True)"),
    Idle("nn.SyncBatchNorm", "process_group", (None,), "statistics are those of all ranks", "leave it out"),
    Idle("nn.TransformerEncoder", "enable_nested_tensor", ANY, _SAME),
    Idle("nn.TransformerEncoder", "mask_check", ANY, _SAME),
    Idle("nn.functional.multi_head_attention_forward", "static_k", (None,), "keys are computed",
         "give them as key"),
    Idle("nn.functional.multi_head_attention_forward", "static_v", (None,), "values are computed",
         "give them as value"),
    Idle("nn.utils.rnn.pad_sequence", "padding_side", ("right",), "what is short is filled behind",
         "torch.nn.utils.rnn.pad_sequence([x.flip(0) for x in xs]).flip(0)"),
    *(Idle(" ".join(f"autograd.{n}" for n in names.split()), argument, values,
           "PyTorch's insides, or how it is checked", "leave it out") for names, argument, values in (
        ("gradcheck gradgradcheck", "check_undefined_grad", ANY), ("gradcheck gradgradcheck",
                                                                   "check_grad_dtypes", ANY),
        ("gradcheck gradgradcheck", "check_batched_grad", ANY), ("gradcheck gradgradcheck", "fast_mode", ANY),
        ("gradcheck gradgradcheck", "masked", (None, False)), ("gradcheck", "check_batched_forward_grad",
                                                               ANY),
        ("gradcheck", "check_forward_ad", (False,)), ("gradcheck", "check_backward_ad", (True,)),
        ("gradgradcheck", "check_fwd_over_rev", (False,)), ("gradgradcheck", "check_rev_over_rev", (True,)),
        ("gradgradcheck", "gen_non_contig_grad_outputs", ANY), ("gradgradcheck", "nondet_tol", ANY))),
    Idle("autograd.functional.jacobian autograd.functional.hessian", "vectorize", ANY, _SAME),
    Idle("autograd.functional.jacobian", "strategy", ANY, _SAME),
    Idle("autograd.functional.hessian", "outer_jacobian_strategy", ANY, _SAME),
    Idle("autograd.functional.hessian autograd.functional.jvp autograd.functional.vjp", "strict", (False,),
         "what does not depend has gradient 0", "leave it out"),
    Idle("distributions.Distribution.expand", "_instance", (None,), "PyTorch's insides", "leave it out"),
    Idle("cuda.CUDAGraph", "keep_graph", ANY, _SAME),
    Idle("cuda.CUDAGraph.capture_begin", "pool", (None,), "each graph has its own memory", "leave it out"),
    Idle("cuda.CUDAGraph.capture_begin cuda.graph", "capture_error_mode", ANY, _SAME),
    Idle("cuda.CUDAGraph.capture_begin cuda.graph", "check_input_liveness", ANY, _SAME),
    Idle("cuda.graph", "enable_annotations", ANY, _SAME),
    Idle("cuda.Event", "external", ANY, _SAME),
    Idle("distributed.barrier", "timeout", ANY, "a rank that is missing is noticed"),
    Idle("distributed.broadcast", "group_src", (None,), "src counts among all ranks", "src=..."),
    Idle("distributed.reduce", "group_dst", (None,), "dst counts among all ranks", "dst=..."),
)

# {names: PyTorch's positional arguments, in order}, where flowedu has fewer
PLACES: dict[str, str] = {
    "allclose isclose": "input other rtol atol equal_nan",                    # OneFlow: atol first
    "Tensor.allclose Tensor.isclose": "other rtol atol equal_nan",
    "nn.functional.gumbel_softmax": "logits tau hard eps dim",                # dim first
    "nn.functional.max_pool1d nn.functional.max_pool2d nn.functional.max_pool3d":  # return_indices first
        "input kernel_size stride padding dilation ceil_mode return_indices",
    "norm": "input p dim keepdim out dtype",
    "tensordot": "a b dims out",
    "nn.functional.normalize": "input p dim eps out",
    "nn.Embedding":
        "num_embeddings embedding_dim padding_idx max_norm norm_type scale_grad_by_freq sparse _weight "
        "_freeze device dtype",
    "nn.Embedding.from_pretrained":
        "embeddings freeze padding_idx max_norm norm_type scale_grad_by_freq sparse",
    "nn.SyncBatchNorm": "num_features eps momentum affine track_running_stats process_group device dtype",
    "nn.Hardtanh": "min_val max_val inplace min_value max_value",
    "nn.TransformerEncoder": "encoder_layer num_layers norm enable_nested_tensor mask_check",
    "nn.init.kaiming_normal_ nn.init.kaiming_uniform_": "tensor a mode nonlinearity generator",
    "nn.init.xavier_normal_ nn.init.xavier_uniform_": "tensor gain generator",
    "nn.utils.clip_grad_norm_": "parameters max_norm norm_type error_if_nonfinite foreach",
    "nn.utils.clip_grad_value_": "parameters clip_value foreach",
    "nn.utils.get_total_norm": "tensors norm_type error_if_nonfinite foreach",
    "nn.utils.rnn.pad_sequence": "sequences batch_first padding_value padding_side",
    "autograd.backward": "tensors grad_tensors retain_graph create_graph grad_variables inputs",
    "autograd.functional.jacobian": "func inputs create_graph strict vectorize strategy",
    "autograd.functional.hessian": "func inputs create_graph strict vectorize outer_jacobian_strategy",
    "autograd.functional.jvp autograd.functional.vjp": "func inputs v create_graph strict",
    "distributions.Distribution.expand": "batch_shape _instance",
}

# names that behave like PyTorch's under torch, in addition to the modules in mock/names.py
FACES = (
    Other("argsort argwhere clamp clip concat diag eye flatten gather masked_fill matmul linalg.matmul "
          "nonzero ones ones_like reshape sort squeeze stack swapaxes transpose tril triu where zeros "
          "zeros_like", "all",
          "OneFlow 0.4's function of blobs too, where the arguments are its", "tensors only",
          "one name, two meanings"),
    Other("tensor as_tensor", "dtype", "float32 of a list with NumPy's float64 in it", "float64", "OneFlow's",
          True),
    Other("range", "all", "OneFlow 0.4's, of blobs, without its end", "with its end, float32",
          "one name, two meanings"),
    Other("nn.functional losses", "size_average, reduce", "not there: reduction comes at once",
          "before reduction, the old words for it", "OneFlow 0.9 has left them out"),
    Other("nn.functional.softmax log_softmax softmin", "_stacklevel", "not there", "before dtype",
          "by place only"),
    Other("nn.RMSNorm", "eps", "1e-5", "None: the dtype's own", "OneFlow's", True),
    Other("nn.Module.state_dict", "keep_vars", "True: the parameters themselves",
          "False: detached tensors over their memory", "OneFlow's; `+=` into a parameter is an error"),
    Other("optim, optim.lr_scheduler", "defaults, places, clocks", "OneFlow's", "PyTorch's",
          "see the table below", True),
    Other("linalg.pinv", "hermitian", "the gradient of the symmetric matrix that is read",
          "mixed with the other triangle", "finite differences of symmetric changes agree", True),
    Other("cholesky_inverse cholesky_solve", "gradient", "0 of the triangle that is not read", "not 0",
          "finite differences agree", True),
    Other("linalg.svdvals linalg.matrix_rank linalg.cond linalg.pinv linalg.svd", "batches",
          "NaN of a matrix with infinities or NaNs, the others as alone",
          "may be an error for the whole batch", "matrices of a batch are independent"),
    Other("load save onnx.export nn.parallel.DistributedDataParallel", "all", "OneFlow's", "PyTorch's",
          "other things"),
    Other("distributions.Bernoulli distributions.Binomial distributions.Categorical distributions.Geometric "
          "distributions.Multinomial distributions.OneHotCategorical", "probs",
          "taken as they are: log(0) is -inf",
          "at least the dtype's eps: log(0) is -15.94", "log-densities of small probabilities are exact",
          True),
)

OTHERS = ((
     Other("nn.PoissonNLLLoss.forward", "log_input, places", "input", "log_input",
           "by place they are the same"),
     Other("nn.RMSNorm.forward", "x", "input", "x", "by place they are the same"),
     Other("std var std_mean var_mean Tensor.std Tensor.var", "places",
           "dim, unbiased; a bool in dim's place is unbiased", "two signatures", "each call means the same"),
     Other("hamming_window", "places", "window_length, periodic, alpha, beta",
           "alpha by name in one of its signatures", "each call means the same"),
     Other("randint", "places", "(low, high, size), or (high, size)", "two signatures",
           "each call means the same"),
     Other("nn.utils.rnn.PackedSequence", "batch_sizes", "must be given", "may be a pair's second",
           "pack_padded_sequence makes it"),
     Other("nn.functional.multi_head_attention_forward", "places",
           "no static_k, static_v before the last two", "static_k, static_v", "give the last two by name"),
     Other("backends.cudnn.flags", "places", "by name only", "by place",
           "settings of a library that is not used"),
     Other("distributed.init_process_group", "places", "store and what follows by name, not read", "by place",
           "ranks find each other as the launcher says"),
     Other("nn.parallel.DistributedDataParallel",
           "skip_all_reduce_unused_params, bucket_cap_mb_list, batched_grad_copy, forward_sync_buffers, "
           "places", "not there", "options of 2.13", "how it is computed, not what"),
 ))
