"""Networks that are not about pictures: flow.models.GPT. (flow.vision.models has the others.)"""
from flowedu.diagnostics.lazy_imports import lazy_import

__getattr__, __dir__ = lazy_import(__name__, {"GPT": "flowedu.models.gpt", "gpt": "flowedu.models.gpt"})
