"""Internal names of torch and oneflow that programs import, with their equivalents in flowedu."""
