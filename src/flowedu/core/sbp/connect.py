"""Chapter 6 answers what chapters 4 and 5 leave open (core/graph/devices.py). Nothing is imported before somebody asks."""
from flowedu.core.graph.devices import connect
from flowedu.core.graph.passes import SAME
from flowedu.core.sbp.distribute import distribute_hint


def spread(graph, devices: int):
    from flowedu.core.sbp.spread import spread
    return spread(graph, devices)


def program(compiled):
    from flowedu.core.sbp.graph.view import GlobalView
    return GlobalView(compiled)


def placing(tracer):
    from flowedu.core.sbp.graph.placing import Placing
    return Placing(tracer)


SAME.add(distribute_hint)            # the pass `simplify`: a hint is its input
connect(spread=spread, program=program, placing=placing)
