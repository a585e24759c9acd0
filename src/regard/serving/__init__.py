"""Trained models over HTTP: an API of our own, the two that people's clients already speak, and a page."""
