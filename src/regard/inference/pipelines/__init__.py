"""Pipelines: how each kind of model gets from inputs to results."""
