"""Decoders: `forward(targets, memory)` for all steps at once, `start(memory)` and `step(tokens, state)` one by one."""
