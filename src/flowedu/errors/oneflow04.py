"""Names of OneFlow 0.4 that flowedu does not have, with the reasons.

The error for such a name quotes its reason (errors/elsewhere.py). tests/oneflow04/test_exports.py checks that
every name of 0.4 exists or is in this list.
"""
from __future__ import annotations

_SERVED = ("there is no server of models: flow.save(graph, path) writes a trained nn.Graph, "
           "flow.load_graph(path) runs it, and flow.onnx.export writes it for other runtimes")
_LOGGED = "no event files are written: hand the arrays that a job returns to any logger of your own"
_MODEL = "a model is an nn.Module, or a job function, and its loop is your own: chapters 3 to 5"
_INTERNAL = "it reached into OneFlow's own runtime, which is built otherwise here"
_CLUSTER = "machines are started with python -m flowedu.distributed.launch"
_PROFILED = "with flow.profiler.record_function(name), inside flow.profiler.profile()"
_IDS = "the table grew while the job ran: number the ids before it, np.unique(ids, return_inverse=True)"

# {path below flow, or path of a module whose names are all missing: the reason, or the replacement}
REASONS = {
    "InitEagerGlobalSession": _INTERNAL,
    "builtin_op": "flow.user_op_builder(name).Op(type_name) calls an op by its type",
    "categorical_ordinal_encode": _IDS,
    "deprecated.delete_worker_by_bootstrap": _CLUSTER,
    "deprecated.delete_worker_of_multi_process": _CLUSTER,
    "deprecated.nn": "flow.nn.Module",
    "distributed_partial_fc_sample": "all classes count: flow.layers.dense with "
    "model_distribute=flow.distribute.split(0) spreads them over devices, flow.gather takes a sample of them",
    "eager_nccl_all_reduce": "flow.comm.all_reduce(x), of tensors",
    "env.init_bootstrap_confs": _CLUSTER,
    "experimental.eager_assign_121": "flow.assign(ref, value)",
    "experimental.get_interface_blob_value": "flow.get_all_variables() gives variables; a job returns what "
    "it should", "experimental.get_job_set": _INTERNAL,
    "experimental.set_interface_blob_value": "flow.load_variables sets variables; a job's arguments are what "
    "it is fed", "experimental.ssp_variable_proxy": "a step always sees the weights of the step before",
    "find_or_create_module": "make the module once, and keep it: flow.nn.Module",
    "inter_job_reuse_mem_strategy": "jobs run one after the other, and each plans its memory for itself",
    "is_deprecated": "a deprecated name says so when it is called",
    "layers.categorical_ordinal_encoder": _IDS,
    "math.reduced_shape_elem_cnt": "np.prod(x.shape): shapes are known when the job is built",
    "Model": _MODEL,
    "model": _MODEL,
    **dict.fromkeys((f"profiler.{name}" for name in ("nvtx_end", "nvtx_start", "range_pop", "range_push")),
                    _PROFILED),
    "quantization": "there are no quantized kernels; train and run in float32, or export to ONNX and "
    "quantize there", "saved_model": _SERVED,
    "serving": _SERVED,
    "summary": _LOGGED,
    "system": "flow.assign(ref, value)",
    "tensorrt": "there is no TensorRT: flow.onnx.export writes what it reads",
    "tmp": "flow.nn.OFRecordReader, flow.nn.OFRecordRawDecoder; x[1:3] = value of tensors",
    "unittest.register_test_cases": "Python's unittest discovers tests: python -m unittest discover",
    "util": "names are made by flow itself; in a program: itertools.count()",
}


def reason(path: str) -> str | None:
    """Return the reason why a path below flow is missing: its own entry, or that of a parent module."""
    while path:
        if path in REASONS:
            return REASONS[path]
        path = path.rpartition(".")[0]
    return None
