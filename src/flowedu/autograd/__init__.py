"""Chapter 2: gradients. `reverse` is the walk; `tape` the same walk over eager calls."""
