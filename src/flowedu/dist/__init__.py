"""Chapter 6: distribution. So far: which signatures an op has."""
