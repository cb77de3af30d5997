"""Chapter 6 answers what chapters 4 and 5 leave open (graph/devices.py). Nothing is imported before somebody asks."""
from flowedu.graph.devices import connect
from flowedu.graph.passes import SAME
from flowedu.ops.distribute import distribute_hint


def spread(graph, devices: int):
    from flowedu.dist.spread import spread
    return spread(graph, devices)


def program(compiled):
    from flowedu.dist.graph.global_view import GlobalView
    return GlobalView(compiled)


def placing(tracer):
    from flowedu.dist.graph.placing import Placing
    return Placing(tracer)


SAME.add(distribute_hint)            # the pass `simplify`: a hint is its input
connect(spread=spread, program=program, placing=placing)
