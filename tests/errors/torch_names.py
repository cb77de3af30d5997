"""Names used by programs for PyTorch and torchvision: {flowedu module where they are looked up: names}."""

NAMES = {
    "flow": """asarray get_default_device set_default_device stft istft ifft complex view_as_real
        view_as_complex real imag polar angle conj sparse_coo_tensor sparse quantize_per_tensor qint8
        quasirandom overrides package futures special monitor export library fx jit compile Storage
        UntypedStorage classes cond while_loop compiler is_complex is_conj resolve_conj lu eig symeig
        lstsq geqrf ormqr pca_lowrank svd_lowrank trapz cumulative_trapezoid gradient histogram
        histogramdd renorm vecdot lobpcg igamma igammac polygamma mvlgamma nextafter frexp gcd lcm i0
        index_reduce segment_reduce nanquantile nanmedian set_float32_matmul_precision
        use_deterministic_algorithms get_autocast_dtype amp set_flush_denormal get_num_interop_threads
        Event Stream mps hub from_file frombuffer empty_permuted empty_strided celu_ selu_ rrelu_
        alpha_dropout feature_dropout native_norm pdist pixel_shuffle bilinear""",
    "flow.fft": "ifft hfft ihfft fft2 ifft2 rfft2 irfft2 hfft2 fftn ifftn rfftn irfftn",
    "flow.nn": """FractionalMaxPool2d AdaptiveLogSoftmaxWithLoss RNNBase CrossMapLRN2d LPPool2d
        DataParallel Buffer quantized qat quantizable intrinsic ao attention""",
    "flow.optim": "SparseAdam Adafactor Muon swa_utils",
    "flow.optim.lr_scheduler": "OneCycleLR CyclicLR SWALR",
    "flow.nn.functional": """lp_pool2d fractional_max_pool2d pdist threshold_ native_channel_shuffle
        feature_alpha_dropout""",
    "flow.vision.transforms": """RandomErasing RandomAffine RandomPerspective RandomRotation RandomInvert
        RandomPosterize RandomSolarize RandomAdjustSharpness RandomAutocontrast RandomEqualize AutoAugment
        RandAugment TrivialAugmentWide AugMix ElasticTransform LinearTransformation FiveCrop TenCrop v2
        MixUp CutMix""",
    "flow.vision.datasets": """EMNIST QMNIST SVHN STL10 CelebA CocoDetection ImageNet VOCDetection Food101
        Flowers102 OxfordIIITPet LSUN Omniglot Cityscapes USPS SEMEION Caltech101""",
    "flow.vision.models": """densenet121 efficientnet_b0 googlenet inception_v3 mobilenet_v3_small
        mobilenet_v3_large regnet_y_400mf shufflenet_v2_x1_0 squeezenet1_0 swin_t vit_b_16 convnext_tiny
        wide_resnet50_2 resnext50_32x4d detection segmentation video get_model list_models
        ResNet50_Weights maxvit_t mnasnet1_0""",
    "flow.linalg": "eig eigvals householder_product ldl_factor ldl_solve solve_ex",
    "flow.utils": """checkpoint cpp_extension bottleneck collect_env model_zoo benchmark mobile_optimizer
        dlpack""",
    "flow.nn.utils": "prune stateless fusion clip_grads_with_norm_ skip_init",
    "flow.nn.init": "kaiming_uniform xavier_normal",
    "flow.cuda": "amp memory_summary nvtx graphs ipc_collect is_bf16_supported nccl comm",
    "flow.distributed": """all_gather_into_tensor reduce_scatter_tensor broadcast_object_list fsdp
        FullyShardedDataParallel tensor rpc elastic new_group all_to_all_single monitored_barrier
        is_nccl_available pipelining device_mesh checkpoint gather_object TCPStore""",
    "flow.autograd": "profiler forward_ad profile emit_nvtx set_multithreading_enabled",
    "flow.utils.data": "StackDataset datapipes",
}

# manually reviewed suggestions: the out-of-place function, or the same word in another case
LOOKED_AT = {"selu_": "selu", "threshold_": "threshold",
             "kaiming_uniform": "kaiming_uniform_", "xavier_normal": "xavier_normal_", "graphs": "graph"}
