"""Chapter 2: gradients of eager calls."""
