"""Networks that are not about pictures: flow.models.GPT. (flow.vision.models has the others.)"""
from flowedu.models.gpt import GPT
