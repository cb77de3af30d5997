"""Ops that only passes put into graphs: several ops of a model done in one."""
