"""Networks that are not about pictures: flow.models.GPT, imported when asked for. (flow.vision.models has the others.)"""


def __getattr__(name: str):
    if name not in ("GPT", "gpt"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib
    gpt = importlib.import_module("flowedu.models.gpt")
    return gpt if name == "gpt" else gpt.GPT
