"""Inputs: texts, media and prompts, each checked and encoded into requests for a model."""
