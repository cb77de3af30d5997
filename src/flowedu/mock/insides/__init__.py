"""Names of the insides of torch and oneflow that programs import, and what they are worth here."""
