"""What is said about a call that failed: `explain` finds the words, `present` gives the public functions their skin."""
