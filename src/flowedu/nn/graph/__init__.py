"""flow.nn.Graph and its helpers, including graphs saved by flow.save and loaded by flow.load_graph."""
from flowedu.nn.graph.config import GraphConfig
from flowedu.nn.graph.graph import Graph
from flowedu.nn.graph.proxies import GraphModule, GraphTensor, ProxyModule, ProxyState
from flowedu.saving.graph import LoadedGraph, load_graph, save_graph
from flowedu.show.schedule import Schedule, Stage
from flowedu.show.trace import Span, Trace

__all__ = ["Graph", "GraphConfig", "GraphModule", "GraphTensor", "LoadedGraph", "ProxyModule", "ProxyState",
           "Schedule", "Span", "Stage", "Trace", "load_graph", "save_graph"]
