"""What users of OneFlow 0.4 type. They import it as they always did, `import flowedu.typing` (flowedu/faces.py)."""
