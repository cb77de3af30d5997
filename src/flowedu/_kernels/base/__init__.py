"""The kernels compiled for any processor; setup.py puts them here."""
