"""Kinds of datasets: how the examples of a task are stored, tokenized, batched and shown to the model again."""
