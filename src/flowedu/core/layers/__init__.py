"""Chapter 3: what surrounds a computation, and modules with parameters."""
