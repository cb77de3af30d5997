"""Chapter 5: modules traced into graphs."""
from flowedu.core.trace.graph import Graph
