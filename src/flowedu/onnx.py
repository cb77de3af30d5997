"""flow.onnx.export(graph, path): a graph for other runtimes."""
from flowedu.nn.graph.onnx_export import export

__all__ = ["export"]
