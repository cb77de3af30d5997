"""flow.linalg (OneFlow 0.4 has one function here)."""
from flowedu.math import matmul

__all__ = ["matmul"]
