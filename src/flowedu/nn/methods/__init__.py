"""What PyTorch users do with a module besides calling it. `import flowedu.nn` attaches it to core's Module."""
