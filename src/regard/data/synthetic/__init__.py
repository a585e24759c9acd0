"""Data made by code, for demonstrations and tests: dates, drawn scenes, spoken digits, notices, stories."""
