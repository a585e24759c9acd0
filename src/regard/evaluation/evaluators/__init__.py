"""Evaluations that are not of outputs against references; one per file. base.py has the interface."""
