"""Evaluation of outputs against references: metrics, reports, comparisons."""
