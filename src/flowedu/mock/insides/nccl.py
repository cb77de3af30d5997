"""boxing.nccl: switches of a library that flowedu does not use; they may be set, and change nothing."""


def _set(value=None) -> None:
    """Nothing."""


set_fusion_threshold_mbytes = set_fusion_max_ops_num = allow_fuse_all_reduce = allow_fuse_reduce = _set
allow_fuse_reduce_scatter = allow_fuse_broadcast = allow_fuse_mixed_ops = enable_use_buffer_to_fuse_all_reduce = _set
set_stream_num = enable_all_to_all = enable_use_compute_stream = disable_group_boxing_by_dst_parallel = _set
