"""Chapter 5: nn.Graph."""
from flowedu.core.trace.blocks import GraphModule, GraphTensor, ProxyModule, ProxyState
from flowedu.core.trace.config import GraphConfig
from flowedu.core.trace.graph import Graph
from flowedu.saving.graph import LoadedGraph, load_graph, save_graph
from flowedu.core.trace.state import refuse_proxy_state
from flowedu.saving.state import register_saver

register_saver(Graph, save_graph)
register_saver(ProxyState, refuse_proxy_state)
