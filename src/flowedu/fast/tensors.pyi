"""Written by `make stubs`: do not edit."""

