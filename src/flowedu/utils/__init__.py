"""flow.utils: what surrounds training. `flow.utils.data` feeds it."""
from flowedu.calls.later import later

__getattr__, __dir__ = later(__name__, {"checkpoint": "flowedu.utils.checkpoint", "data": "flowedu.utils.data",
                                          "global_view": "flowedu.utils.global_view"})
