"""Linear algebra: products, factorizations, systems of equations, and norms."""
