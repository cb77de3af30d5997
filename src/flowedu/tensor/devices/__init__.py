"""Devices, conversion of tensors between devices and dtypes, and memory formats."""
