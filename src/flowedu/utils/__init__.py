"""flow.utils: utilities for training, such as checkpointing and logging. `flow.utils.data` loads data."""
from flowedu.diagnostics.lazy_imports import lazy_import

__getattr__, __dir__ = lazy_import(__name__, {"checkpoint": "flowedu.utils.checkpoint",
                                              "data": "flowedu.utils.data",
                                          "global_view": "flowedu.utils.global_view",
                                          "tensorboard": "flowedu.utils.tensorboard"})
