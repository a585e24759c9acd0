"""Synthetic data for demonstrations and tests: dates, drawn scenes, spoken digits, notices, stories."""
