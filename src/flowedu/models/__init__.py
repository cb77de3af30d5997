"""Networks for text: flow.models.GPT. flow.vision.models contains networks for images."""
from flowedu.diagnostics.lazy_imports import lazy_import

__getattr__, __dir__ = lazy_import(__name__, {"GPT": "flowedu.models.gpt", "gpt": "flowedu.models.gpt"})
