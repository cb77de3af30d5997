"""Chapter 5: nn.Graph."""
from flowedu.nn.graph.blocks import GraphModule, GraphTensor, ProxyModule, ProxyState
from flowedu.nn.graph.config import GraphConfig
from flowedu.nn.graph.graph import Graph
from flowedu.nn.graph.save import LoadedGraph, load_graph, save_graph
from flowedu.nn.graph.state import refuse_proxy_state
from flowedu.saving import register_saver

register_saver(Graph, save_graph)
register_saver(ProxyState, refuse_proxy_state)
