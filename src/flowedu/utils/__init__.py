"""flow.utils: what surrounds training. `flow.utils.data`, which feeds it, is imported when it is asked for."""


def __getattr__(name: str):
    if name != "data":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib
    return importlib.import_module("flowedu.utils.data")
