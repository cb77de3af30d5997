"""Networks that are not about pictures: flow.models.GPT. (flow.vision.models has the others.)"""
from flowedu.calls.later import later

__getattr__, __dir__ = later(__name__, {"GPT": "flowedu.models.gpt", "gpt": "flowedu.models.gpt"})
