"""Corral under other libraries' names, with their arguments: one module for each."""
