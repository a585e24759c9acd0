"""Numeric series: tables with a time column, regular steps, calendar features and scaling."""
