"""For instructors: trees to hand out, grades, and proofs that both are what they claim to be."""
